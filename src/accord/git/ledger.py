"""Our two refs, read at once and written in one go, or not at all when somebody was quicker.

`git fast-import` builds trees without index and work tree, and moves a ref only if the new
commit contains the old one: compare and swap. Whoever loses reads again and tries again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from .process import GitError
from .repository import Repository, refusal, text
from .tuples import NamedTuple

NOTES = "refs/notes/pvp"
DECISIONS = "refs/accord/decisions"
TRIES = 12
PATIENCE_S = 1.0  # as long as nobody else writes
WHO = "Accord <accord@localhost>"
MANY = 200  # from here on it is quicker to list all notes
DEEPEST = 3  # git spreads notes over folders; with three levels there are millions

Tips = Mapping[str, str | None]


class Seen(NamedTuple):
    """What the two refs hold, and the commits that they stood at before it was read."""

    tips: Tips
    notes: Mapping[str, bytes]
    files: Mapping[str, bytes]


class Change(NamedTuple):
    """What shall stand there, whole: notes by commit, files of the decisions by path."""

    tips: Tips  # as they were when this was thought out
    notes: Mapping[str, bytes]
    files: Mapping[str, bytes]
    merged: str | None = None  # decisions from elsewhere, whose history becomes ours as well


def by_id(id: str) -> str:
    """Where the record is; the end of an id is random, its beginning a time."""
    return f"by-id/{id[-2:].lower().replace('.', '_')}/{id}.json"


def by_patch(patch: str) -> str:
    """Where a patch's decisions are named."""
    return f"by-patch/{patch[:2]}/{patch}"


def by_commit(sha: str) -> str:
    """Where a commit's decisions are named."""
    return f"by-commit/{sha[:2]}/{sha}"


def look(repo: Repository, paths: Iterable[str] = (), shas: Collection[str] = ()) -> Seen:
    """These files of the decisions and the notes of these commits, where there are any."""
    files = {f"{DECISIONS}:{path}": path for path in paths}
    few = len(shas) <= MANY
    places = {f"{NOTES}:{place}": sha for sha in shas for place in _places(sha)} if few else {}
    found = repo.objects([NOTES, DECISIONS, *files, *places])
    return Seen(
        {ref: found[ref].sha if ref in found else None for ref in (NOTES, DECISIONS)},
        {sha: found[name].content for name, sha in places.items() if name in found}
        if few
        else dict(_listed(repo, shas)),
        {path: found[name].content for name, path in files.items() if name in found},
    )


def _places(sha: str) -> Iterator[str]:
    """Where a note may lie."""
    for depth in range(DEEPEST + 1):
        yield "/".join([*(sha[2 * each : 2 * each + 2] for each in range(depth)), sha[2 * depth :]])


def _listed(repo: Repository, shas: Collection[str]) -> Iterator[tuple[str, bytes]]:
    listed = repo.run("notes", f"--ref={NOTES}", "list")
    rows = (row.split(" ") for row in text(listed.out).splitlines())
    blobs = {row[1]: row[0] for row in rows if len(row) == 2 and row[1] in shas}
    contents = repo.objects(set(blobs.values()))
    yield from ((sha, contents[blob].content) for sha, blob in blobs.items() if blob in contents)


def tips(repo: Repository) -> Tips:
    """The commits that the two refs stand at."""
    found = repo.refs(NOTES, DECISIONS)
    return {ref: found.get(ref) for ref in (NOTES, DECISIONS)}


def any_record(repo: Repository) -> bool:
    """Whether this repository has records at all."""
    return any(tips(repo).values())


def save(repo: Repository, change: Callable[[], Change]) -> bool:
    """Write what `change` makes of the state as it is; False where there was nothing to write."""
    until = time.monotonic() + PATIENCE_S
    for turn in range(TRIES):
        wanted = change()
        stream = _stream(wanted)
        if not stream:
            return False
        done = repo.run("fast-import", "--quiet", "--date-format=raw", data=stream)
        if done.code == 0:
            return True
        moved = tips(repo) != wanted.tips
        if not (moved or "Not updating" in done.err or "lock" in done.err):
            raise refusal(done)
        if not moved and time.monotonic() > until:
            raise refusal(done)  # a lock that somebody left behind
        time.sleep(0.01 * turn)
    raise GitError("too many others write to the decisions of this repository; try again")


def _stream(change: Change) -> bytes:
    parts: list[bytes] = []
    if change.notes:
        parts += _begin(NOTES, change.tips[NOTES], "Notes by Accord")
        for sha, note in sorted(change.notes.items()):
            parts += [f"N inline {sha}\n".encode(), _data(note)]
    if change.files or change.merged:
        parts += _begin(DECISIONS, change.tips[DECISIONS], "Decisions by Accord")
        parts += [f"merge {change.merged}\n".encode()] if change.merged else []
        for path, content in sorted(change.files.items()):
            parts += [f"M 100644 inline {path}\n".encode(), _data(content)]
    return b"".join(parts)


def _begin(ref: str, tip: str | None, why: str) -> list[bytes]:
    head = f"commit {ref}\ncommitter {WHO} {int(time.time())} +0000\n".encode()
    return [head, _data(why.encode()), *([f"from {tip}\n".encode()] if tip else [])]


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)
