"""Where a pact lies: its directory, the repository around it, and what git keeps for us."""

import os
from pathlib import Path

from accord.core.kernel.refusal import Refused, Why
from accord.git.repository import Repository, find
from accord.stores.ledger import BASE_LOCK, LOG_LOCK

DEFAULT = ".pact"


class Place:
    """The directory of one pact."""

    def __init__(self, directory: Path, repository: Repository | None) -> None:
        self.directory = directory
        self.repository = repository
        self.root = repository.root if repository else directory.parent
        self.log = directory / "log.jsonl"
        self.state = directory / "STATE.yml"

    def name(self, path: Path) -> str:
        """A path as git and people in the repository call it."""
        return Path(os.path.relpath(path, self.root)).as_posix()

    @property
    def lock(self) -> Path:
        """What other tools lock; outside git they lock nothing, and we the directory above."""
        return self.repository.directory / LOG_LOCK if self.repository else self.root

    @property
    def base_lock(self) -> Path:
        """What other tools lock while they merge."""
        return self.repository.common / BASE_LOCK if self.repository else self.root

    def private(self, name: str) -> Path | None:
        """A file of ours inside the git directory, which is never committed."""
        return self.repository.directory / "accord" / name if self.repository else None


def place(here: Path, wanted: str = "") -> Place:
    """The pact for whoever works in `here`; `wanted` is PACT_DIR."""
    if wanted and Path(wanted).is_absolute():
        directory = Path(wanted)
        return Place(directory, find(directory.parent))
    repository = find(here)
    if not repository and (bare := next(filter(is_bare, (here, *here.parents)), None)):
        detail = f"{bare} is a git directory without a working tree, and a pact needs one"
        raise Refused(Why.WRONG_STATE, detail)
    root = repository.root if repository else nearest(here, wanted or DEFAULT)
    directory = root / (wanted or DEFAULT)
    if not wanted and directory.is_symlink() and not directory.resolve().is_relative_to(root):
        detail = f"{directory} leads out of the repository; set PACT_DIR if that is meant"
        raise Refused(Why.WRONG_STATE, detail)
    return Place(directory, repository)


def is_bare(directory: Path) -> bool:
    """Whether this is what git itself keeps, with no files of a project around it."""
    return (directory / "HEAD").is_file() and all(
        (directory / name).is_dir() for name in ("objects", "refs")
    )


def nearest(here: Path, name: str) -> Path:
    """The closest directory above that has a pact, else `here`."""
    return next((root for root in (here, *here.parents) if (root / name).is_dir()), here)
