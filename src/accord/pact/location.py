"""Locate a pact: its directory, the repository around it, and its private files."""

import os
from pathlib import Path

from accord.core.kernel.refusal import Reason, Refused
from accord.git.repository import Repository, find_repository
from accord.pact.ledger import BASE_LOCK_FILE, LOG_LOCK_FILE

DEFAULT_DIRECTORY = ".pact"


class PactLocation:
    """The directory of one pact and the paths derived from it."""

    def __init__(self, directory: Path, repository: Repository | None) -> None:
        self.directory = directory
        self.repository = repository
        self.root = repository.root if repository else directory.parent
        self.log_path = directory / "log.jsonl"
        self.state_path = directory / "STATE.yml"

    def relative_path(self, path: Path) -> str:
        """A path relative to the repository's root, with forward slashes."""
        return Path(os.path.relpath(path, self.root)).as_posix()

    @property
    def lock_path(self) -> Path:
        """The file other tools lock; outside git they lock nothing, and Accord locks the root."""
        return self.repository.git_directory / LOG_LOCK_FILE if self.repository else self.root

    @property
    def base_lock_path(self) -> Path:
        """The file that other tools lock while they merge."""
        return (
            self.repository.common_git_directory / BASE_LOCK_FILE if self.repository else self.root
        )

    def private_path(self, name: str) -> Path | None:
        """A private file in the git directory, which is never committed; None without git."""
        return self.repository.git_directory / "accord" / name if self.repository else None


def find_location(here: Path, wanted: str = "") -> PactLocation:
    """Locate the pact for a caller in directory `here`; `wanted` is PACT_DIR."""
    if wanted and Path(wanted).is_absolute():
        directory = Path(wanted)
        return PactLocation(directory, find_repository(directory.parent))
    repository = find_repository(here)
    if not repository and (bare := next(filter(is_bare_repository, (here, *here.parents)), None)):
        detail = f"{bare} is a git directory without a work tree; run this in a work tree"
        raise Refused(Reason.WRONG_STATE, detail)
    root = repository.root if repository else nearest_root(here, wanted or DEFAULT_DIRECTORY)
    directory = root / (wanted or DEFAULT_DIRECTORY)
    if not wanted and directory.is_symlink() and not directory.resolve().is_relative_to(root):
        detail = f"{directory} points outside the repository; set PACT_DIR if that is intended"
        raise Refused(Reason.WRONG_STATE, detail)
    return PactLocation(directory, repository)


def is_bare_repository(directory: Path) -> bool:
    """Whether the directory is itself a git directory without a work tree."""
    return (directory / "HEAD").is_file() and all(
        (directory / name).is_dir() for name in ("objects", "refs")
    )


def nearest_root(here: Path, name: str) -> Path:
    """The nearest directory at or above `here` that has a pact; `here` if none has."""
    return next((root for root in (here, *here.parents) if (root / name).is_dir()), here)
