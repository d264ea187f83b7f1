"""Writes to our refs: notes and decisions in one go, or not at all when somebody was quicker.

`git fast-import` builds trees without index and work tree, and moves a ref only if the new
commit contains the old one: compare and swap. Whoever loses reads again and tries again.
"""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .history import History, refusal
from .repository import GitError

NOTES = "refs/notes/pvp"
DECISIONS = "refs/accord/decisions"
TRIES = 12
WHO = "Accord <accord@localhost>"


class Change(NamedTuple):
    """What shall stand in the two refs, whole: notes by commit, files of the decisions by path."""

    notes: Mapping[str, bytes]
    files: Mapping[str, bytes]
    merged: str | None = None  # decisions from elsewhere, whose history becomes ours as well


def save(repo: History, change: Callable[[], Change]) -> bool:
    """Write what `change` makes of the state as it is; False where there was nothing to write."""
    for turn in range(TRIES):
        tips = _tips(repo)
        wanted = change()
        stream = _stream(wanted, tips)
        if not stream:
            return False
        done = repo.run("fast-import", "--quiet", "--date-format=raw", data=stream)
        if done.code == 0:
            return True
        if not (_tips(repo) != tips or "Not updating" in done.err or "lock" in done.err):
            raise refusal(done)
        time.sleep(0.01 * turn)
    raise GitError("too many others write to the decisions of this repository; try again")


def _tips(repo: History) -> dict[str, str | None]:
    listed = repo.ask("for-each-ref", "--format=%(refname) %(objectname)", NOTES, DECISIONS)
    found = dict(line.split(" ") for line in listed.splitlines())
    return {ref: found.get(ref) for ref in (NOTES, DECISIONS)}


def _stream(change: Change, tips: Mapping[str, str | None]) -> bytes:
    parts: list[bytes] = []
    if change.notes:
        parts += _begin(NOTES, tips[NOTES], "Notes by Accord")
        for sha, note in sorted(change.notes.items()):
            parts += [f"N inline {sha}\n".encode(), _data(note)]
    if change.files or change.merged:
        parts += _begin(DECISIONS, tips[DECISIONS], "Decisions by Accord")
        parts += [f"merge {change.merged}\n".encode()] if change.merged else []
        for path, content in sorted(change.files.items()):
            parts += [f"M 100644 inline {path}\n".encode(), _data(content)]
    return b"".join(parts)


def _begin(ref: str, tip: str | None, why: str) -> list[bytes]:
    head = f"commit {ref}\ncommitter {WHO} {int(time.time())} +0000\n".encode()
    return [head, _data(why.encode()), *([f"from {tip}\n".encode()] if tip else [])]


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)
