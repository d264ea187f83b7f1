"""The note of a commit: JSON in `refs/notes/pvp`, merged and never concatenated.

Standard library alone, because hooks merge notes.
"""

import json
from collections.abc import Iterable
from math import isfinite
from typing import Any

from accord.core.kernel.refusal import Refused, Why

VERSION = 1
DEEPEST = 32
Note = dict[str, Any]


def read(text: str) -> Note:
    """The note in this text; what is no note of ours is kept whole, as `foreign` (OPEN-74).

    A version that this Accord does not know is refused, so that nobody overwrites it.
    """
    value = _loads(text)
    if not isinstance(value, dict) or "version" not in value:
        return {"version": VERSION, "foreign": [text]} if text.strip() else {"version": VERSION}
    version = value["version"]
    if type(version) is not int or version != VERSION:
        said = json.dumps(version)[:20]
        detail = f"The note has version {said}; this Accord reads {VERSION}. Update Accord"
        raise Refused(Why.VERSION, detail)
    return value


def _loads(text: str) -> Any:
    """JSON, or None for what is none or nests too deep to be handled safely."""
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return None if _deeper(value, DEEPEST) else value


def _no_number(name: str) -> float:
    raise ValueError(name)


def _finite(text: str) -> float:
    """A number that can be written again; `1e999` cannot."""
    number = float(text)
    return number if isfinite(number) else _no_number(text)


def _deeper(value: Any, most: int) -> bool:
    """Whether it nests deeper than `most`."""
    level = [value]
    for _ in range(most):
        level = [each for one in level for each in _inside(one)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()


def write(note: Note) -> str:
    """The same text for the same note, to be read by people as well."""
    text = json.dumps(note, ensure_ascii=False, indent=1, sort_keys=True)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a pair of surrogates has no UTF-8
        text = json.dumps(note, indent=1, sort_keys=True)
    return f"{text}\n"


def merged(*notes: Note) -> Note:
    """One note with what any of them says, whatever the order they come in.

    Entries of one id are one entry; a whole copy wins over a truncated one.
    """
    whole: Note = {"version": VERSION}
    for note in notes:
        whole = _both(whole, note)
    return whole


def _both(one: Any, other: Any) -> Any:
    if one == other and type(one) is type(other):
        return one
    match one, other:
        case dict(), dict():
            return _objects(one, other)
        case list(), list():
            return _lists(one, other)
        case _:
            return max(one, other, key=_rank)


def _objects(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    shared = {key: _both(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **shared}


def _lists(one: list[Any], other: list[Any]) -> list[Any]:
    found: dict[str, Any] = {}
    for each in (*one, *other):
        key = _key(each)
        found[key] = _entry(found[key], each) if key in found else each
    return sorted(found.values(), key=_order)


def _entry(one: Any, other: Any) -> Any:
    """Two of one id: the one that is whole, or both together."""
    cut = [isinstance(each, dict) and bool(each.get("truncated")) for each in (one, other)]
    if cut[0] is cut[1]:
        return _both(one, other)
    return other if cut[0] else one


def _key(value: Any) -> str:
    """Entries of the same id, at the same time, are the same entry."""
    if isinstance(value, dict) and isinstance(value.get("id"), str):
        return _canonical([value["id"], value.get("type"), value.get("timestamp")])
    return _canonical(value)


def _order(value: Any) -> tuple[str, str]:
    """By time, where there is one; a time is ISO 8601 in UTC, so text sorts as time does."""
    when = value.get("timestamp") or value.get("decided_at") if isinstance(value, dict) else ""
    return str(when or ""), _key(value)


def _rank(value: Any) -> tuple[int, str]:
    """Any fixed order will do, so that both sides of a merge choose the same."""
    kind = 2 if isinstance(value, dict) else 1 if isinstance(value, list) else 0
    return kind, _canonical(value)


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
