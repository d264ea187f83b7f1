"""Decisions in `refs/accord/decisions`, indexed by id, patch and commit.

A rebase changes commit ids and a clone does not copy notes, but patch ids and decision ids stay the
same; hence the three indexes.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, NamedTuple

from accord.core.kernel.refusal import Refused
from accord.core.provenance.notes.note import (
    MAX_NOTE_BYTES,
    Note,
    format_note,
    merge_notes,
    parse_note,
    shrink_to_fit,
)
from accord.git.records.record_refs import (
    DECISIONS_REF,
    RefChange,
    RefContents,
    commit_index_path,
    decision_path,
    patch_index_path,
    read_refs,
    write_refs,
)
from accord.git.repository import Repository, decode_git, is_object_id

MIN_ID_LENGTH, MAX_ID_LENGTH = 8, 101
ID_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
MAX_IDS = 1000


class DecisionLink(NamedTuple):
    """The decisions that led to a commit, and its patch ids."""

    ids: frozenset[str]
    patches: frozenset[str] = frozenset()


def is_decision_id(word: str) -> bool:
    """Whether the word is safe as a decision id, which becomes part of a path."""
    fits = MIN_ID_LENGTH <= len(word) <= MAX_ID_LENGTH and not word.strip(ID_CHARACTERS)
    named = fits and word[0] not in "_.-" and not word.endswith((".", ".lock"))
    return named and ".." not in word


def read_files(repo: Repository, paths: Iterable[str]) -> Mapping[str, bytes]:
    """Read files of the decisions ref; missing ones are left out."""
    wanted = list(paths)
    return read_refs(repo, wanted).files if wanted else {}


def parse_ids(content: bytes) -> frozenset[str]:
    """The ids listed in an index file."""
    return frozenset(filter(is_decision_id, decode_git(content).split()[:MAX_IDS]))


def ids_by_commit(repo: Repository, shas: Iterable[str]) -> dict[str, frozenset[str]]:
    """The decisions on record for each commit."""
    return _read_index(repo, {commit_index_path(sha): sha for sha in shas if is_object_id(sha)})


def ids_by_patch(repo: Repository, patches: Iterable[str]) -> dict[str, frozenset[str]]:
    """The decisions on record for each patch id."""
    return _read_index(
        repo, {patch_index_path(patch): patch for patch in patches if is_object_id(patch)}
    )


def _read_index(repo: Repository, wanted: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {wanted[path]: parse_ids(content) for path, content in read_files(repo, wanted).items()}


def links_and_notes(
    repo: Repository, shas: Iterable[str]
) -> tuple[dict[str, frozenset[str]], dict[str, Note]]:
    """The linked decisions and the notes of these commits."""
    wanted = {sha for sha in shas if is_object_id(sha)}
    return (
        links_and_notes_in(read_refs(repo, map(commit_index_path, wanted), wanted))
        if wanted
        else ({}, {})
    )


def links_and_notes_in(seen: RefContents) -> tuple[dict[str, frozenset[str]], dict[str, Note]]:
    """Like `links_and_notes`, from contents that were already read."""
    linked = {path.rpartition("/")[2]: parse_ids(content) for path, content in seen.files.items()}
    return linked, _parse_readable(seen.notes)


def commits_without_record(
    shas: Iterable[str], linked: Mapping[str, AbstractSet[str]], noted: Mapping[str, Note]
) -> set[str]:
    """Commits with no link, or whose note lacks a linked decision."""
    return {
        sha
        for sha in shas
        if not linked.get(sha) or linked[sha] - set(decision_ids_of(noted.get(sha, {})))
    }


def read_records(repo: Repository, ids: Iterable[str]) -> dict[str, Note]:
    """The full records by id, as notes with one decision each."""
    wanted = {decision_path(id): id for id in ids if is_decision_id(id)}
    contents = read_files(repo, wanted)
    return {wanted[path]: note for path, note in _parse_readable(contents).items()}


def all_decision_ids(repo: Repository) -> tuple[str, ...]:
    """The ids of all decisions in the repository."""
    listed = (
        repo.try_text("ls-tree", "-r", "-z", "--name-only", DECISIONS_REF, "--", "by-id/") or ""
    )
    names = (path.rpartition("/")[2] for path in listed.split("\0") if path.endswith(".json"))
    return tuple(sorted(name.removesuffix(".json") for name in names))


def recorded_commits(repo: Repository) -> list[str]:
    """All commits that have a record."""
    listed = (
        repo.try_text("ls-tree", "-r", "-z", "--name-only", DECISIONS_REF, "--", "by-commit/") or ""
    )
    names = (path.rpartition("/")[2] for path in listed.split("\0"))
    return [name for name in names if is_object_id(name)]


def all_links(repo: Repository) -> dict[str, frozenset[str]]:
    """All commits that have a record, with their decisions."""
    return ids_by_commit(repo, recorded_commits(repo))


def decision_ids_of(note: Note) -> tuple[str, ...]:
    """The ids of the decisions in a note."""
    names = (decision.get("id") for decision in decisions_in(note))
    return tuple(name for name in names if isinstance(name, str) and is_decision_id(name))


def decisions_in(note: Note) -> list[dict[str, Any]]:
    """The decisions in a note, as raw objects."""
    entries = note.get("decisions")
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )


def attach_decisions(
    repo: Repository,
    links: Mapping[str, DecisionLink],
    new: Mapping[str, Note] | None = None,
    spare: Mapping[str, Note] | None = None,
    replaced: AbstractSet[str] = frozenset(),
) -> bool:
    """Link commits to decisions in notes and the decisions ref; existing links are kept.

    `new` holds records to store, by decision id; `spare` those to store only if none exists.
    `replaced` are decisions to which these commits are linked no longer.
    """
    return write_refs(repo, lambda: _plan_change(repo, links, new or {}, spare or {}, replaced))


def _plan_change(
    repo: Repository,
    links: Mapping[str, DecisionLink],
    new: Mapping[str, Note],
    spare: Mapping[str, Note],
    replaced: AbstractSet[str],
) -> RefChange:
    wanted: dict[str, set[str]] = {}
    for sha, link in links.items():
        for path in (commit_index_path(sha), *map(patch_index_path, link.patches)):
            wanted.setdefault(path, set()).update(link.ids)
    ids = {id for link in links.values() for id in link.ids} | {*new, *spare}
    paths = {id: decision_path(id) for id in sorted(ids) if is_decision_id(id)}
    seen = read_refs(repo, [*wanted, *paths.values()], links)
    stored_files = {path: seen.files[path] for path in paths.values() if path in seen.files}
    parsed = _parse_readable(stored_files)
    unreadable = stored_files.keys() - parsed.keys()  # written by a later version: not touched
    stored = {id: parsed[path] for id, path in paths.items() if path in parsed}
    fresh = {**{id: note for id, note in spare.items() if id not in stored}, **new}
    whole = {id: _merge_two(stored.get(id), fresh.get(id)) for id in ids}
    noted = {
        sha: _without_decisions(note, replaced) for sha, note in _parse_readable(seen.notes).items()
    }
    note_bytes = {
        sha: encode_note(*_notes_to_merge(noted.get(sha), (whole[id] for id in sorted(link.ids))))
        for sha, link in links.items()
        if link.ids and (sha in noted or sha not in seen.notes)
    }
    bodies = {
        paths[id]: encode_note(note)
        for id in fresh
        if id in paths and paths[id] not in unreadable and (note := whole[id])
    }
    files = _index_files(wanted, seen.files, replaced) | bodies
    return RefChange(
        seen.tips, _changed_only(note_bytes, seen.notes), _changed_only(files, seen.files)
    )


def _without_decisions(note: Note, ids: AbstractSet[str]) -> Note:
    kept = [made for made in decisions_in(note) if made.get("id") not in ids]
    return note if len(kept) == len(decisions_in(note)) else {**note, "decisions": kept}


def _index_files(
    wanted: Mapping[str, AbstractSet[str]],
    before: Mapping[str, bytes],
    replaced: AbstractSet[str] = frozenset(),
) -> dict[str, bytes]:
    """Index files with these decisions added to those already listed, but for those replaced."""
    return {
        path: encode_ids((ids | parse_ids(before.get(path, b""))) - replaced)
        for path, ids in wanted.items()
    }


def _changed_only(wanted: Mapping[str, bytes], before: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in wanted.items() if before.get(name) != content}


def _parse_readable(contents: Mapping[str, bytes]) -> dict[str, Note]:
    """Parse the notes that this version understands and skip the others."""
    parsed: dict[str, Note] = {}
    for name, content in contents.items():
        with suppress(Refused):
            parsed[name] = parse_notes(decode_git(content))
    return parsed


def _notes_to_merge(before: Note | None, records: Iterable[Note | None]) -> list[Note]:
    known = [note for note in records if note]
    return known if before is None else [before, *known]


def _merge_two(one: Note | None, other: Note | None) -> Note | None:
    notes_ = [note for note in (one, other) if note]
    return merge_notes(*notes_) if notes_ else None


def encode_ids(ids: Iterable[str]) -> bytes:
    """Encode the content of an index file."""
    return "".join(f"{id}\n" for id in sorted(filter(is_decision_id, ids))).encode()


def index_decisions(repo: Repository, entries: Mapping[str, frozenset[str]]) -> bool:
    """Add decisions to further index files; whether anything changed."""

    def change() -> RefChange:
        seen = read_refs(repo, entries)
        return RefChange(
            seen.tips, {}, _changed_only(_index_files(entries, seen.files), seen.files)
        )

    return write_refs(repo, change)


def escape_invalid_utf8(path: str) -> str:
    """Escape bytes that are not UTF-8, so that JSON can hold the text."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def notes_of(repo: Repository, shas: Collection[str]) -> dict[str, Note]:
    """The notes of those commits that have one."""
    return {
        sha: parse_notes(decode_git(content))
        for sha, content in read_refs(repo, shas=shas).notes.items()
    }


def parse_notes(text: str) -> Note:
    """Parse a note; several JSON values that git concatenated are merged into one."""
    return merge_notes(*(parse_note(part) for part in _split_json(text)))


def _split_json(text: str) -> Iterator[str]:
    """The JSON values in a text; text that is not JSON is returned whole."""
    decoder, position, rest = json.JSONDecoder(), 0, text.strip()
    parts: list[str] = []
    try:
        while position < len(rest):
            _, end = decoder.raw_decode(rest, position)
            parts.append(rest[position:end])
            position = end + len(rest[end:]) - len(rest[end:].lstrip())
    except (ValueError, RecursionError):
        yield text
        return
    yield from parts


def encode_note(*notes: Note) -> bytes:
    """Merge notes into one and encode it, within the size limit."""
    return format_note(shrink_to_fit(merge_notes(*notes), MAX_NOTE_BYTES)).encode()
