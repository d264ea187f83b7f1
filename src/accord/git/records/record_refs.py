"""Atomic reads and writes of the two refs that hold notes and decisions.

Concurrent writers must not lose each other's records. `git fast-import` builds trees without an
index or work tree and moves a ref only if the new commit contains the old one, which amounts to
compare-and-swap. A writer that loses the race reads again and retries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from accord.git.light_namedtuple import NamedTuple
from accord.git.process import GitError
from accord.git.repository import Repository, decode_git, error_from_result

NOTES_REF = "refs/notes/pvp"
DECISIONS_REF = "refs/accord/decisions"
MAX_WRITE_ATTEMPTS = 12
LOCK_TIMEOUT_S = 1.0  # how long to retry against a lock while the refs do not move
COMMITTER = "Accord <accord@localhost>"
NOTES_LIST_THRESHOLD = 200  # above this, listing all notes is faster
MAX_NOTE_FANOUT = 3  # levels of directories that git spreads notes over; three hold millions

RefTips = Mapping[str, str | None]


class RefContents(NamedTuple):
    """Content read from the two refs, and the tips it was read at."""

    tips: RefTips
    notes: Mapping[str, bytes]
    files: Mapping[str, bytes]


class RefChange(NamedTuple):
    """Complete new content: notes by commit, decision files by path."""

    tips: RefTips  # the tips that the change is based on
    notes: Mapping[str, bytes]
    files: Mapping[str, bytes]
    merged_tip: str | None = None  # a fetched tip to record as a second parent


def decision_path(id: str) -> str:
    """Path of a record, spread by the end of the id, which is random; ids begin with a time."""
    return f"by-id/{id[-2:].lower().replace('.', '_')}/{id}.json"


def patch_index_path(patch: str) -> str:
    """Path of the index file for a patch id."""
    return f"by-patch/{patch[:2]}/{patch}"


def commit_index_path(sha: str) -> str:
    """Path of the index file for a commit."""
    return f"by-commit/{sha[:2]}/{sha}"


def read_refs(
    repo: Repository, paths: Iterable[str] = (), shas: Collection[str] = ()
) -> RefContents:
    """Read these decision files and the notes of these commits; missing ones are left out."""
    files = {f"{DECISIONS_REF}:{path}": path for path in paths}
    is_few = len(shas) <= NOTES_LIST_THRESHOLD
    note_paths = (
        {f"{NOTES_REF}:{place}": sha for sha in shas for place in _note_paths(sha)}
        if is_few
        else {}
    )
    objects = repo.read_objects([NOTES_REF, DECISIONS_REF, *files, *note_paths])
    return RefContents(
        {ref: objects[ref].sha if ref in objects else None for ref in (NOTES_REF, DECISIONS_REF)},
        {sha: objects[name].content for name, sha in note_paths.items() if name in objects}
        if is_few
        else dict(_list_notes(repo, shas)),
        {path: objects[name].content for name, path in files.items() if name in objects},
    )


def _note_paths(sha: str) -> Iterator[str]:
    """The paths that a note may have, by fan-out depth."""
    for depth in range(MAX_NOTE_FANOUT + 1):
        yield "/".join(
            [*(sha[2 * level : 2 * level + 2] for level in range(depth)), sha[2 * depth :]]
        )


def _list_notes(repo: Repository, shas: Collection[str]) -> Iterator[tuple[str, bytes]]:
    listed = repo.run("notes", f"--ref={NOTES_REF}", "list")
    rows = (row.split(" ") for row in decode_git(listed.out).splitlines())
    blobs = {row[1]: row[0] for row in rows if len(row) == 2 and row[1] in shas}
    contents = repo.read_objects(set(blobs.values()))
    yield from ((sha, contents[blob].content) for sha, blob in blobs.items() if blob in contents)


def read_tips(repo: Repository) -> RefTips:
    """The current tips of the two refs."""
    found = repo.existing_refs(NOTES_REF, DECISIONS_REF)
    return {ref: found.get(ref) for ref in (NOTES_REF, DECISIONS_REF)}


def has_records(repo: Repository) -> bool:
    """Whether the repository has any records."""
    return any(read_tips(repo).values())


def write_refs(repo: Repository, change: Callable[[], RefChange]) -> bool:
    """Compute and write a change, retrying on conflicts; False if there was nothing to write."""
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    for attempt in range(MAX_WRITE_ATTEMPTS):
        planned = change()
        stream = _fast_import_stream(planned)
        if not stream:
            return False
        result = repo.run("fast-import", "--quiet", "--date-format=raw", data=stream)
        if result.code == 0:
            return True
        moved = read_tips(repo) != planned.tips
        if not (moved or "Not updating" in result.err or "lock" in result.err):
            raise error_from_result(result)
        if not moved and time.monotonic() > deadline:
            raise error_from_result(result)  # a stale lock
        time.sleep(0.01 * attempt)
    raise GitError("too many processes are writing decisions to this repository; try again")


def _fast_import_stream(change: RefChange) -> bytes:
    parts: list[bytes] = []
    if change.notes:
        parts += _commit_header(NOTES_REF, change.tips[NOTES_REF], "Notes by Accord")
        for sha, note in sorted(change.notes.items()):
            parts += [f"N inline {sha}\n".encode(), _data_block(note)]
    if change.files or change.merged_tip:
        parts += _commit_header(DECISIONS_REF, change.tips[DECISIONS_REF], "Decisions by Accord")
        parts += [f"merge {change.merged_tip}\n".encode()] if change.merged_tip else []
        for path, content in sorted(change.files.items()):
            parts += [f"M 100644 inline {path}\n".encode(), _data_block(content)]
    return b"".join(parts)


def _commit_header(ref: str, tip: str | None, why: str) -> list[bytes]:
    head = f"commit {ref}\ncommitter {COMMITTER} {int(time.time())} +0000\n".encode()
    return [head, _data_block(why.encode()), *([f"from {tip}\n".encode()] if tip else [])]


def _data_block(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)
