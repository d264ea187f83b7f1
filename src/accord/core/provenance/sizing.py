"""A note that is too large is shortened, and says so (OPEN-74)."""

from collections.abc import Callable, Iterator
from typing import Any

from .note import VERSION, Note, write

MOST_BYTES = 256 << 10
# How much of a text is left, one step after another, until the note fits; ids are all shorter.
STEPS = (16_384, 4096, 1024, 256)
CUT = "…"


def size(note: Note) -> int:
    """Bytes of the note as it is stored."""
    return len(write(note).encode())


def fitted(note: Note, most: int = MOST_BYTES) -> Note:
    """The note itself if it fits; else as much of it as does, with `truncated` set.

    First long texts are shortened, then lists lose their middle, then only the decisions stay.
    """
    if size(note) <= most:
        return note
    return next(short for short in _shorter(note) if size(short) <= most)


def _shorter(note: Note) -> Iterator[Note]:
    for length in STEPS:
        yield {**_cut(note, length), "truncated": True}
    short = _cut(note, STEPS[-1])
    for count in (256, 64, 16, 4):
        yield {**_thin(short, count), "truncated": True}
    for count in (64, 8, 1):
        yield _bare(short, count)
    yield _bare(short, 0)


def _cut(value: Any, length: int) -> Any:
    """Every text at most that long; an entry that lost something says so."""
    match value:
        case str():
            return value if len(value) <= length else value[: length - 1] + CUT
        case list():
            return [_cut(each, length) for each in value]
        case dict():
            return _marked(value, lambda each: _cut(each, length))
        case _:
            return value


def _thin(value: Any, count: int) -> Any:
    """Lists keep their beginning and end: the question and the answer."""
    match value:
        case list() if len(value) > count:
            half = count // 2
            return [_thin(each, count) for each in (*value[:half], *value[-half:])]
        case list():
            return [_thin(each, count) for each in value]
        case dict():
            return _marked(value, lambda each: _thin(each, count))
        case _:
            return value


def _marked(value: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    short = {key: change(each) for key, each in value.items()}
    return {**short, "truncated": True} if short != value else short


def _bare(note: Note, count: int) -> Note:
    """Nothing but which decisions there were; the whole record may be elsewhere."""
    decisions = note.get("decisions")
    known = decisions if isinstance(decisions, list) else []
    names = ("id", "git_sha", "pvp_session", "decision_type")
    kept = [
        {name: str(each[name])[:128] for name in names if name in each} | {"truncated": True}
        for each in known[:count]
        if isinstance(each, dict)
    ]
    left_out = len(known) - len(kept)
    return {"version": VERSION, "decisions": kept, "truncated": True, "left_out": left_out}
