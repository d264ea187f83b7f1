"""Where a repository lies, as far as its files and the environment say it; git takes longer to ask.

What is not plain here is None, and git is to be asked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from .tuples import NamedTuple

BRANCHES = "refs/heads/"
NO_BRANCH = f"{BRANCHES}.invalid"  # what `HEAD` says where refs are kept in other files


class Directories(NamedTuple):
    """Where it lies: the work tree (empty for a bare one), its git directory, that of them all."""

    root: str
    own: str
    common: str


def at(root: str) -> Directories | None:
    """The directories of the work tree whose top this is."""
    git = _join(root, ".git")
    if os.path.isfile(git):  # noqa: PTH113 - hooks have no `pathlib`: it takes longer than this
        word, _, there = _read(git).strip().partition(": ")
        git = _join(root, there) if word == "gitdir" else ""
    return _directories(root, git) if git else None


def around(env: Mapping[str, str]) -> Directories | None:
    """Of the hook that runs: git starts it at the top, and names what is not `.git` there."""
    own = env.get("GIT_DIR")
    if not own:
        return at(os.curdir)
    within = os.path.realpath(own) == os.path.realpath(os.curdir)  # a bare one
    return None if within else _directories(os.curdir, own, env.get("GIT_COMMON_DIR"))


def _directories(root: str, own: str, common: str | None = None) -> Directories | None:
    if not os.path.exists(_join(own, "HEAD")):  # noqa: PTH110 - the same
        return None
    return Directories(root, own, common or _join(own, _read(_join(own, "commondir")).strip()))


def head(own: str) -> str | None:
    """The ref that is checked out, empty on a detached head."""
    file = _join(own, "HEAD")
    said = "" if os.path.islink(file) else _read(file)  # noqa: PTH114 - the same
    if said.startswith("ref:"):
        ref = said.removeprefix("ref:").strip()
        return ref if ref.startswith(BRANCHES) and ref != NO_BRANCH else None
    return "" if said.strip() and not said.strip().strip("0123456789abcdef") else None


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:  # noqa: PTH123
            return opened.read()
    except OSError:
        return ""


def _join(folder: str, name: str) -> str:
    return os.path.join(folder, name) if name else folder  # noqa: PTH118 - the same
