"""Decisions in `refs/accord/decisions`, found again by their id, by patch and by commit.

A rebase changes the commit, a note is lost in a clone; the patch and the id stay.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, NamedTuple

from accord.core.kernel.refusal import Refused
from accord.core.provenance.note import Note, merged

from . import notes
from .ledger import DECISIONS, Change, Seen, by_commit, by_id, by_patch, look, save
from .repository import Repository, is_object, text

SHORTEST, LONGEST = 8, 101
IN_IDS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
MOST_IDS = 1000


class Link(NamedTuple):
    """Which decisions led to a commit, and by which patches it is known."""

    ids: frozenset[str]
    patches: frozenset[str] = frozenset()


def is_id(word: str) -> bool:
    """Whether it can be the name of a file of ours."""
    fits = SHORTEST <= len(word) <= LONGEST and not word.strip(IN_IDS)
    named = fits and word[0] not in "_.-" and not word.endswith((".", ".lock"))
    return named and ".." not in word


def read(repo: Repository, paths: Iterable[str]) -> Mapping[str, bytes]:
    """Files of the ref."""
    wanted = list(paths)
    return look(repo, wanted).files if wanted else {}


def ids_in(content: bytes) -> frozenset[str]:
    """The ids that a file of the index names."""
    return frozenset(filter(is_id, text(content).split()[:MOST_IDS]))


def of_commits(repo: Repository, shas: Iterable[str]) -> dict[str, frozenset[str]]:
    """Which decisions are on record for each commit."""
    return _index(repo, {by_commit(sha): sha for sha in shas if is_object(sha)})


def of_patches(repo: Repository, patches: Iterable[str]) -> dict[str, frozenset[str]]:
    """Which decisions are on record for each patch."""
    return _index(repo, {by_patch(patch): patch for patch in patches if is_object(patch)})


def _index(repo: Repository, wanted: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {wanted[path]: ids_in(content) for path, content in read(repo, wanted).items()}


def on_record(
    repo: Repository, shas: Iterable[str]
) -> tuple[dict[str, frozenset[str]], dict[str, Note]]:
    """Of these commits, the decisions that our ref names and the notes."""
    wanted = {sha for sha in shas if is_object(sha)}
    return told(look(repo, map(by_commit, wanted), wanted)) if wanted else ({}, {})


def told(seen: Seen) -> tuple[dict[str, frozenset[str]], dict[str, Note]]:
    """The same of what was read already."""
    linked = {path.rpartition("/")[2]: ids_in(content) for path, content in seen.files.items()}
    return linked, _readable(seen.notes)


def lacking(
    shas: Iterable[str], linked: Mapping[str, AbstractSet[str]], noted: Mapping[str, Note]
) -> set[str]:
    """Of these commits, those without a link or without a note."""
    return {
        sha
        for sha in shas
        if not linked.get(sha) or linked[sha] - set(decision_ids(noted.get(sha, {})))
    }


def records(repo: Repository, ids: Iterable[str]) -> dict[str, Note]:
    """The whole records, as notes with one decision each."""
    wanted = {by_id(id): id for id in ids if is_id(id)}
    found = read(repo, wanted)
    return {wanted[path]: note for path, note in _readable(found).items()}


def known(repo: Repository) -> tuple[str, ...]:
    """The ids of all decisions."""
    listed = repo.maybe("ls-tree", "-r", "-z", "--name-only", DECISIONS, "--", "by-id/") or ""
    names = (path.rpartition("/")[2] for path in listed.split("\0") if path.endswith(".json"))
    return tuple(sorted(name.removesuffix(".json") for name in names))


def commits(repo: Repository) -> list[str]:
    """Every commit on record."""
    listed = repo.maybe("ls-tree", "-r", "-z", "--name-only", DECISIONS, "--", "by-commit/") or ""
    names = (path.rpartition("/")[2] for path in listed.split("\0"))
    return [name for name in names if is_object(name)]


def links(repo: Repository) -> dict[str, frozenset[str]]:
    """The same with its decisions."""
    return of_commits(repo, commits(repo))


def decision_ids(note: Note) -> tuple[str, ...]:
    """The decisions that a note holds."""
    names = (each.get("id") for each in decisions_in(note))
    return tuple(name for name in names if isinstance(name, str) and is_id(name))


def decisions_in(note: Note) -> list[dict[str, Any]]:
    """The same as they stand there."""
    found = note.get("decisions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def attach(
    repo: Repository,
    links: Mapping[str, Link],
    new: Mapping[str, Note] | None = None,
    spare: Mapping[str, Note] | None = None,
) -> bool:
    """Tie commits to decisions, in notes and in our ref; whatever is there already stays.

    `new` are records to store, by decision id; `spare` those to store where there is none.
    """
    return save(repo, lambda: _change(repo, links, new or {}, spare or {}))


def _change(
    repo: Repository, links: Mapping[str, Link], new: Mapping[str, Note], spare: Mapping[str, Note]
) -> Change:
    wanted: dict[str, set[str]] = {}
    for sha, link in links.items():
        for path in (by_commit(sha), *map(by_patch, link.patches)):
            wanted.setdefault(path, set()).update(link.ids)
    ids = {id for link in links.values() for id in link.ids} | {*new, *spare}
    paths = {id: by_id(id) for id in sorted(ids) if is_id(id)}
    seen = look(repo, [*wanted, *paths.values()], links)
    there = {at: seen.files[at] for at in paths.values() if at in seen.files}
    known = _readable(there)
    closed = there.keys() - known.keys()  # a later version wrote it: left alone
    stored = {id: known[at] for id, at in paths.items() if at in known}
    fresh = {**{id: note for id, note in spare.items() if id not in stored}, **new}
    whole = {id: _both(stored.get(id), fresh.get(id)) for id in ids}
    noted = _readable(seen.notes)
    told = {
        sha: notes.stored(*_parts(noted.get(sha), (whole[id] for id in sorted(link.ids))))
        for sha, link in links.items()
        if link.ids and (sha in noted or sha not in seen.notes)
    }
    bodies = {
        paths[id]: notes.stored(note)
        for id in fresh
        if id in paths and paths[id] not in closed and (note := whole[id])
    }
    files = _named(wanted, seen.files) | bodies
    return Change(seen.tips, _differing(told, seen.notes), _differing(files, seen.files))


def _named(wanted: Mapping[str, AbstractSet[str]], before: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files of the index that name these decisions besides those that they name already."""
    return {path: listed(ids | ids_in(before.get(path, b""))) for path, ids in wanted.items()}


def _differing(wanted: Mapping[str, bytes], before: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: each for name, each in wanted.items() if before.get(name) != each}


def _readable(found: Mapping[str, bytes]) -> dict[str, Note]:
    """Those that this version can read; one that it cannot keeps nobody from the others."""
    read: dict[str, Note] = {}
    for name, content in found.items():
        with suppress(Refused):
            read[name] = notes.parsed(text(content))
    return read


def _parts(before: Note | None, found: Iterable[Note | None]) -> list[Note]:
    known = [note for note in found if note]
    return known if before is None else [before, *known]


def _both(one: Note | None, other: Note | None) -> Note | None:
    found = [note for note in (one, other) if note]
    return merged(*found) if found else None


def listed(ids: Iterable[str]) -> bytes:
    """The content of a file of the index."""
    return "".join(f"{id}\n" for id in sorted(filter(is_id, ids))).encode()


def index(repo: Repository, entries: Mapping[str, frozenset[str]]) -> bool:
    """Name decisions under further paths of the index."""

    def change() -> Change:
        seen = look(repo, entries)
        return Change(seen.tips, {}, _differing(_named(entries, seen.files), seen.files))

    return save(repo, change)


def shown(path: str) -> str:
    """A path that JSON can hold."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
