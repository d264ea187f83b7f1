"""Which commits a `merge --squash` brings; git forgets it before `post-commit` runs."""

import os
import re
from contextlib import suppress

from .repository import Repository

FROM, OURS = "SQUASH_MSG", "accord-squashed"
MOST = 1000


def remember(repo: Repository) -> None:
    """Note them beside git's own file, for the commit that comes of it."""
    try:
        with open(repo.file(FROM), encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            said = file.read()
    except OSError:
        with suppress(OSError):
            os.unlink(repo.file(OURS))  # noqa: PTH108 - hooks have no `pathlib`
        return
    found = re.findall(r"^commit ([0-9a-f]{40,64})$", said, re.MULTILINE)
    with open(repo.file(OURS), "w", encoding="ascii") as file:  # noqa: PTH123 - the same
        file.write("\n".join(found[:MOST]))


def taken(repo: Repository) -> list[str]:
    """Those that were noted; the next commit has nothing to do with them."""
    place = repo.file(OURS)
    try:
        with open(place, encoding="ascii") as file:  # noqa: PTH123 - the same
            found = file.read().split()
        os.unlink(place)  # noqa: PTH108 - the same
    except (OSError, ValueError):
        return []
    return found
