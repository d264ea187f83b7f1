"""Decisions in `refs/accord/decisions`, found again by their id, by patch and by commit.

A rebase changes the commit, a note is lost in a clone; the patch and the id stay.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from accord.core.provenance.note import Note, merged

from . import notes
from .history import History, text
from .ledger import DECISIONS, Change, save

_id = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{7,100}").fullmatch
_hex = re.compile(r"[0-9a-f]{40,64}").fullmatch
MOST_IDS = 1000


class Link(NamedTuple):
    """Which decisions led to a commit, and by which patches it is known."""

    ids: frozenset[str]
    patches: frozenset[str] = frozenset()


def is_id(word: str) -> bool:
    """Whether it can be the name of a file of ours."""
    return bool(_id(word)) and not word.endswith((".", ".lock")) and ".." not in word


def by_id(id: str) -> str:
    """Where the record is; the end of an id is random, its beginning a time."""
    return f"by-id/{id[-2:].lower().replace('.', '_')}/{id}.json"


def by_patch(patch: str) -> str:
    """Where a patch's decisions are named."""
    return f"by-patch/{patch[:2]}/{patch}"


def by_commit(sha: str) -> str:
    """Where a commit's decisions are named."""
    return f"by-commit/{sha[:2]}/{sha}"


def read(repo: History, paths: Iterable[str]) -> dict[str, bytes]:
    """Files of the ref."""
    names = {f"{DECISIONS}:{path}": path for path in paths}
    return {names[name]: content for name, content in repo.objects(names).items()}


def there(repo: History) -> bool:
    """Whether this repository has decisions at all."""
    return repo.run("rev-parse", "--verify", "--quiet", DECISIONS).code == 0


def ids_in(content: bytes) -> frozenset[str]:
    """The ids that a file of the index names."""
    return frozenset(filter(is_id, text(content).split()[:MOST_IDS]))


def of_commits(repo: History, shas: Iterable[str]) -> dict[str, frozenset[str]]:
    """Which decisions are on record for each commit."""
    return _index(repo, {by_commit(sha): sha for sha in shas if _hex(sha)})


def of_patches(repo: History, patches: Iterable[str]) -> dict[str, frozenset[str]]:
    """Which decisions are on record for each patch."""
    return _index(repo, {by_patch(patch): patch for patch in patches if _hex(patch)})


def _index(repo: History, wanted: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {wanted[path]: ids_in(content) for path, content in read(repo, wanted).items()}


def records(repo: History, ids: Iterable[str]) -> dict[str, Note]:
    """The whole records, as notes with one decision each."""
    wanted = {by_id(id): id for id in ids if is_id(id)}
    found = read(repo, wanted)
    return {wanted[path]: notes.parsed(text(content)) for path, content in found.items()}


def known(repo: History) -> tuple[str, ...]:
    """The ids of all decisions."""
    listed = repo.maybe("ls-tree", "-r", "-z", "--name-only", DECISIONS, "--", "by-id/") or ""
    names = (path.rpartition("/")[2] for path in listed.split("\0") if path.endswith(".json"))
    return tuple(sorted(name.removesuffix(".json") for name in names))


def links(repo: History) -> dict[str, frozenset[str]]:
    """Every commit on record with its decisions."""
    listed = repo.maybe("ls-tree", "-r", "-z", "--name-only", DECISIONS, "--", "by-commit/") or ""
    return of_commits(repo, (path.rpartition("/")[2] for path in listed.split("\0") if path))


def attach(repo: History, links: Mapping[str, Link], new: Mapping[str, Note] | None = None) -> bool:
    """Tie commits to decisions, in notes and in our ref; whatever is there already stays.

    `new` are records that are not stored yet, by decision id.
    """
    return save(repo, lambda: _change(repo, links, new or {}))


def _change(repo: History, links: Mapping[str, Link], new: Mapping[str, Note]) -> Change:
    ids = {id for link in links.values() for id in link.ids} | set(new)
    stored = records(repo, ids)
    whole = {id: _both(stored.get(id), new.get(id)) for id in ids}
    before = notes.raw(repo, links)
    wanted = {
        sha: notes.stored(*_parts(before.get(sha), (whole[id] for id in sorted(link.ids))))
        for sha, link in links.items()
        if link.ids
    }
    changed = {sha: note for sha, note in wanted.items() if before.get(sha) != note}
    return Change(changed, _files(repo, links, {id: whole[id] for id in new}))


def _parts(before: bytes | None, found: Iterable[Note | None]) -> list[Note]:
    known = [note for note in found if note]
    return known if before is None else [notes.parsed(text(before)), *known]


def _both(one: Note | None, other: Note | None) -> Note | None:
    found = [note for note in (one, other) if note]
    return merged(*found) if found else None


def _files(
    repo: History, links: Mapping[str, Link], new: Mapping[str, Note | None]
) -> dict[str, bytes]:
    wanted: dict[str, set[str]] = {}
    for sha, link in links.items():
        for path in (by_commit(sha), *map(by_patch, link.patches)):
            wanted.setdefault(path, set()).update(link.ids)
    bodies = {by_id(id): notes.stored(note) for id, note in new.items() if note and is_id(id)}
    before = read(repo, [*wanted, *bodies])
    index = {path: listed(ids | ids_in(before.get(path, b""))) for path, ids in wanted.items()}
    return {path: body for path, body in {**index, **bodies}.items() if before.get(path) != body}


def listed(ids: Iterable[str]) -> bytes:
    """The content of a file of the index."""
    return "".join(f"{id}\n" for id in sorted(filter(is_id, ids))).encode()


def index(repo: History, entries: Mapping[str, frozenset[str]]) -> bool:
    """Name decisions under further paths of the index."""

    def change() -> Change:
        before = read(repo, entries)
        wanted = {
            path: listed(ids | ids_in(before.get(path, b""))) for path, ids in entries.items()
        }
        return Change({}, {path: body for path, body in wanted.items() if before.get(path) != body})

    return save(repo, change)


def shown(path: str) -> str:
    """A path that JSON can hold."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
