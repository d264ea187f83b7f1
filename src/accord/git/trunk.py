"""Where branches go back to."""

from collections.abc import Mapping

from .places import BRANCHES
from .repository import Repository

SETTINGS = r"^(accord\.|init\.defaultbranch$)"


def names(settings: Mapping[str, str]) -> list[str]:
    """Refs that may be it, the surest first; `settings` has `accord.` and `init.`."""
    usual = settings.get("accord.trunk") or settings.get("init.defaultbranch")
    local = (f"{BRANCHES}{name}" for name in (usual, "main", "master") if name)
    return ["refs/remotes/origin/HEAD", *dict.fromkeys(local)]


def of(repo: Repository) -> str | None:
    """The commit where it is."""
    return next(iter(repo.refs(*names(repo.settings(SETTINGS))).values()), None)
