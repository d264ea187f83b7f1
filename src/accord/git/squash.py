"""Which commits a `merge --squash` brings; git forgets it before `post-commit` runs."""

from __future__ import annotations

import os

from .repository import Repository, is_object

FROM, OURS = "SQUASH_MSG", "accord-squashed"
MARK = "commit "
MOST = 1000


def remember(repo: Repository) -> None:
    """Note them beside git's own file, for the commit that comes of it."""
    place = repo.file(OURS)
    try:  # noqa: SIM105 - hooks have no `contextlib`, which takes longer to import
        os.unlink(place)  # noqa: PTH108 - nor `pathlib`
    except OSError:
        pass
    try:
        with open(repo.file(FROM), encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            said = file.read()
    except OSError:
        return
    rows = (line.removeprefix(MARK) for line in said.split("\n") if line.startswith(MARK))
    found = [sha for sha in rows if is_object(sha)]
    try:
        with open(place, "x", encoding="ascii") as file:  # noqa: PTH123 - the same
            file.write("\n".join(found[:MOST]))
    except OSError:  # a directory lies there: what else is known of the commit is not lost
        pass


def taken(repo: Repository) -> list[str]:
    """Those that were noted; the next commit has nothing to do with them."""
    place = repo.file(OURS)
    if not os.path.isfile(place):  # noqa: PTH113 - the same; nobody may ever write to a pipe
        return []
    try:
        with open(place, encoding="ascii") as file:  # noqa: PTH123 - the same
            found = file.read().split()
        os.unlink(place)  # noqa: PTH108 - the same
    except (OSError, ValueError):
        return []
    return found
