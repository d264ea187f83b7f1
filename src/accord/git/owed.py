"""Whether a commit may lack its record: a file says so from its draft on, until there is one.

A hook that is killed says nothing; what it left undone is seen here without asking git.
"""

from __future__ import annotations

import os

from .repository import Repository

OURS = "accord-owed"


def note(repo: Repository) -> None:
    """A commit is about to be made."""
    try:
        with open(repo.file(OURS), "xb"):  # noqa: PTH123 - hooks have no `pathlib`
            pass
    except OSError:  # it is noted already, or cannot be: `accord git heal` looks by itself
        pass


def taken(repo: Repository) -> bool:
    """Whether one was noted; from now on none is."""
    try:
        os.unlink(repo.file(OURS))  # noqa: PTH108 - the same
    except OSError:
        return False
    return True
