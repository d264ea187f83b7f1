"""A branch as one patch: what a squash merge makes of it, wherever that is done."""

from collections.abc import Iterable, Mapping

from . import decisions, patches
from .ledger import by_patch
from .repository import Repository

MOST = 1000

Links = Mapping[str, frozenset[str]]


def whole(repo: Repository, base: str, tip: str, linked: Links) -> dict[str, frozenset[str]]:
    """All that changed from one to the other as one patch, with the decisions in between."""
    inside = repo.ask("rev-list", f"--max-count={MOST}", f"{base}..{tip}").splitlines()
    return _named(repo, base, tip, _decided(inside, linked))


def _decided(shas: Iterable[str], linked: Links) -> frozenset[str]:
    return frozenset(id for sha in shas for id in linked.get(sha, ()))


def _named(repo: Repository, base: str, tip: str, ids: frozenset[str]) -> dict[str, frozenset[str]]:
    patch = patches.between(repo, base, tip) if ids else ""
    return {patch: ids} if patch else {}


def remember(repo: Repository, tip: str, trunk: str | None, linked: Links | None = None) -> bool:
    """Keep what a branch changes as one patch, so that its squash is known in every clone.

    `linked` is what is known already of commits on it.
    """
    base, inside = _since(repo, trunk, tip) if trunk and trunk != tip else ("", [])
    if not base or not inside:
        return False
    known = dict(linked or {})
    known |= decisions.of_commits(repo, [sha for sha in inside if sha not in known])
    made = _named(repo, base, tip, _decided(inside, known))
    entries = {by_patch(patch): ids for patch, ids in made.items()}
    return bool(entries) and decisions.index(repo, entries)


def _since(repo: Repository, trunk: str, tip: str) -> tuple[str, list[str]]:
    """Where a branch left the trunk, empty where the two never met, and its commits since."""
    words = ("--boundary", "--right-only", f"--max-count={MOST}", f"{trunk}...{tip}")
    rows = repo.ask("rev-list", *words).splitlines()
    inside = [row for row in rows if not row.startswith("-")]
    ends = [row[1:] for row in rows if row.startswith("-")]
    plain = len(ends) == 1 and len(inside) < MOST
    return (ends[0] if plain else repo.maybe("merge-base", trunk, tip) or ""), inside
