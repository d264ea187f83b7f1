"""The note of a commit: JSON in `refs/notes/pvp`, merged and never concatenated.

Uses the standard library only, because hooks merge notes and must start fast.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from typing import Any, NamedTuple

from accord.core.kernel.refusal import Reason, Refused

NOTE_VERSION = 1
MAX_NOTE_DEPTH = 32
Note = dict[str, Any]


def parse_note(text: str) -> Note:
    """The note in this text; a text in another format is kept as `foreign` (OPEN-74).

    An unknown version is refused, so that a newer note is never overwritten.
    """
    value = _load_json(text)
    if not isinstance(value, dict) or "version" not in value:
        return (
            {"version": NOTE_VERSION, "foreign": [text]}
            if text.strip()
            else {"version": NOTE_VERSION}
        )
    version = value["version"]
    if type(version) is not int or version != NOTE_VERSION:
        shown = json.dumps(version)[:20]
        detail = f"The note has version {shown}; this Accord reads {NOTE_VERSION}. Update Accord"
        raise Refused(Reason.UNSUPPORTED_VERSION, detail)
    return value


def _load_json(text: str) -> Any:
    """The JSON value, or None if the text is not JSON or is nested too deeply."""
    try:
        value = json.loads(text, parse_constant=_reject_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return None if _is_deeper(value, MAX_NOTE_DEPTH) else value


def _reject_number(name: str) -> float:
    raise ValueError(name)


def _finite(text: str) -> float:
    """A number that can be written again; `1e999` would become infinite."""
    number = float(text)
    return number if isfinite(number) else _reject_number(text)


def _is_deeper(value: Any, max_depth: int) -> bool:
    level = [value]
    for _ in range(max_depth):
        level = [child for parent in level for child in _children_of(parent)]
        if not level:
            return False
    return True


def _children_of(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def format_note(note: Note) -> str:
    """Deterministic, indented JSON."""
    text = json.dumps(note, ensure_ascii=False, indent=1, sort_keys=True)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 encoding
        text = json.dumps(note, indent=1, sort_keys=True)
    return f"{text}\n"


def merge_notes(*notes: Note) -> Note:
    """The union of the notes; the result does not depend on their order.

    Entries with the same id are merged; a complete copy wins over a truncated one.
    """
    whole: Note = {"version": NOTE_VERSION}
    for note in notes:
        whole = _merge_values(whole, note)
    return whole


def _merge_values(one: Any, other: Any) -> Any:
    if one == other and type(one) is type(other):
        return one
    match one, other:
        case dict(), dict():
            return _merge_objects(one, other)
        case list(), list():
            return _merge_lists(one, other)
        case _:
            return max(one, other, key=_rank)


def _merge_objects(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    shared = {key: _merge_values(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **shared}


def _merge_lists(one: list[Any], other: list[Any]) -> list[Any]:
    merged: dict[str, Any] = {}
    for entry in (*one, *other):
        key = _key(entry)
        merged[key] = _merge_entries(merged[key], entry) if key in merged else entry
    return sorted(merged.values(), key=_order)


def _merge_entries(one: Any, other: Any) -> Any:
    """Two entries with the same id: the complete one, or both merged."""
    cut = [isinstance(entry, dict) and bool(entry.get("truncated")) for entry in (one, other)]
    if cut[0] is cut[1]:
        return _merge_values(one, other)
    return other if cut[0] else one


def _key(value: Any) -> str:
    """Entries with the same id, type and timestamp are the same entry."""
    if isinstance(value, dict) and isinstance(value.get("id"), str):
        return _canonical([value["id"], value.get("type"), value.get("timestamp")])
    return _canonical(value)


def _order(value: Any) -> tuple[str, str]:
    """Sort by time if there is one; ISO 8601 in UTC sorts as text."""
    when = value.get("timestamp") or value.get("decided_at") if isinstance(value, dict) else ""
    return str(when or ""), _key(value)


def _rank(value: Any) -> tuple[int, str]:
    """An arbitrary but fixed order, so that both sides of a merge choose the same value."""
    kind = 2 if isinstance(value, dict) else 1 if isinstance(value, list) else 0
    return kind, _canonical(value)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


MAX_NOTE_BYTES = 256 << 10
# Maximum text lengths, tried one after the other until the note fits; ids are always shorter.
TEXT_LENGTH_STEPS = (16_384, 4096, 1024, 256)
ELLIPSIS = "…"


def note_size(note: Note) -> int:
    """Size of the stored note in bytes."""
    return len(format_note(note).encode())


def shrink_to_fit(note: Note, max_bytes: int = MAX_NOTE_BYTES) -> Note:
    """The note if it fits; else as much of it as fits, with `truncated` set.

    First long texts are shortened, then the middle of lists is dropped, then all but decisions.
    """
    if note_size(note) <= max_bytes:
        return note
    return next(short for short in _shrunk_versions(note) if note_size(short) <= max_bytes)


def _shrunk_versions(note: Note) -> Iterator[Note]:
    for length in TEXT_LENGTH_STEPS:
        yield {**_truncate_texts(note, length), "truncated": True}
    short = _truncate_texts(note, TEXT_LENGTH_STEPS[-1])
    for count in (256, 64, 16, 4):
        yield {**_thin_lists(short, count), "truncated": True}
    for count in (64, 8, 1):
        yield _decisions_only(short, count)
    yield _decisions_only(short, 0)


def _truncate_texts(value: Any, length: int) -> Any:
    """Cut every text to this length and mark the objects that lost something."""
    match value:
        case str():
            return value if len(value) <= length else value[: length - 1] + ELLIPSIS
        case list():
            return [_truncate_texts(item, length) for item in value]
        case dict():
            return _mark_truncated(value, lambda entry: _truncate_texts(entry, length))
        case _:
            return value


def _thin_lists(value: Any, count: int) -> Any:
    """Keep the beginning and end of long lists: the question and the answer."""
    match value:
        case list() if len(value) > count:
            half = count // 2
            return [_thin_lists(item, count) for item in (*value[:half], *value[-half:])]
        case list():
            return [_thin_lists(item, count) for item in value]
        case dict():
            return _mark_truncated(value, lambda entry: _thin_lists(entry, count))
        case _:
            return value


def _mark_truncated(value: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    short = {key: change(entry) for key, entry in value.items()}
    return {**short, "truncated": True} if short != value else short


def _decisions_only(note: Note, count: int) -> Note:
    """Only the identifying fields of the first `count` decisions."""
    decisions = note.get("decisions")
    known = decisions if isinstance(decisions, list) else []
    names = ("id", "git_sha", "pvp_session", "decision_type")
    kept = [
        {name: str(entry[name])[:128] for name in names if name in entry} | {"truncated": True}
        for entry in known[:count]
        if isinstance(entry, dict)
    ]
    left_out = len(known) - len(kept)
    return {"version": NOTE_VERSION, "decisions": kept, "truncated": True, "left_out": left_out}


REVIEWS_FIELD = "reviews"


class CommitReview(NamedTuple):
    """A reviewer accepted this commit, which was made from this decision."""

    by: str
    commit: str
    decision: str


def reviews_of(note: Note) -> tuple[CommitReview, ...]:
    """The reviews in a note; malformed entries are ignored."""
    entries = note.get(REVIEWS_FIELD)
    if not isinstance(entries, list):
        return ()
    return tuple(review for entry in entries if (review := _read(entry)))


def _read(entry: Any) -> CommitReview | None:
    names = CommitReview._fields
    values = [entry.get(name) for name in names] if isinstance(entry, dict) else [None]
    texts = [value for value in values if isinstance(value, str) and value]
    return CommitReview(*texts) if len(texts) == len(names) else None


def reviews_note(reviews: Iterable[CommitReview]) -> Note:
    """A note with these reviews only."""
    entries = [review._asdict() for review in reviews]
    fields = {REVIEWS_FIELD: entries} if entries else {}
    return {"version": NOTE_VERSION, **fields}
