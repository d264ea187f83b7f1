"""Judgements as models and people write them: what fits is taken, what does not is named."""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import msgspec
from msgspec import inspect

from accord.core.docket.diags import Diag
from accord.core.docket.judge import Judge
from accord.core.docket.text import one_line
from accord.core.docket.word import Word

_LONGEST = 60
_BYTE = re.compile(r"byte (\d+)")
_KEY = re.compile(r'"([^"\\]*+)"\s*+:')
_INDEX = re.compile(r"\[\d+\]")
# Deeper than this nobody judges.
_DEEPEST = 12
Say = Callable[[str, str], None]
# A value, where it stands, whom to tell, and how deep that is.
Fit = Callable[[object, str, Say, int], Any]


def read(text: str, say: Callable[[Diag], None], item: str = "-", line: int = 0) -> Judge | None:
    """The judgement in a JSON text that begins on a line; None where there is none."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        say(Diag("JUDGE_SYNTAX", item, str(error), line and line + _broken(text, str(error))))
        return None
    if not isinstance(data, dict):
        say(Diag("JUDGE_SYNTAX", item, "it is no object", line))
        return None
    flaws: list[tuple[str, str]] = []
    found = judge(data, lambda code, detail: flaws.append((code, detail)))
    places = _places(text) if flaws else {}
    for code, detail in flaws:
        say(Diag(code, item, detail, line and line + places.get(_key(detail), 0)))
    return found


def _broken(text: str, error: str) -> int:
    """How many lines down a text stops being JSON."""
    at = _BYTE.search(error)
    return text.encode("utf-8", "replace")[: int(at[1])].count(b"\n") if at else 0


def _places(text: str) -> dict[str, int]:
    """How many lines down each key stands first."""
    found: dict[str, int] = {}
    for place, line in enumerate(text.split("\n")):
        for key in _KEY.findall(line):
            found.setdefault(key, place)
    return found


def _key(detail: str) -> str:
    """The key that a remark begins with."""
    path = detail.removeprefix("there is no ").split(" ")[0]
    return _INDEX.sub("", path).rpartition(".")[2]


def judge(data: dict[str, Any], say: Say) -> Judge:
    """The judgement in an object."""
    found = _struct(Judge, data, "", say, 0)
    return found if isinstance(found, Judge) else Judge()


def _fit(shape: inspect.Type) -> Fit:
    """How a value becomes what the shape wants; where it cannot, None comes of it."""
    match shape:
        case inspect.Metadata(type=inner):
            return _fit(inner)
        case inspect.UnionType(types):
            return _either([each for each in types if not isinstance(each, inspect.NoneType)])
        case inspect.StructType(cls):
            return partial(_struct, cls)
        case inspect.ListType(item_type=inner):
            return partial(_list, _fit(inner))
        case inspect.DictType(key_type=key, value_type=inner):
            return partial(_table, _fit(key), _fit(inner))
        case inspect.EnumType(cls) if issubclass(cls, Word):
            return partial(_word, cls)
        case _:
            return _text


def _either(shapes: list[inspect.Type]) -> Fit:
    """Of what a field may be, what the value looks like."""
    usual = _fit(shapes[0])
    things = [_fit(each) for each in shapes if isinstance(each, inspect.StructType)]
    if not things or len(shapes) == 1:
        return usual
    return lambda value, *rest: (things[0] if isinstance(value, dict) else usual)(value, *rest)


@cache
def _fields(cls: type) -> dict[str, tuple[str, Fit]]:
    """The fields of a thing as they are written."""
    shape = inspect.type_info(cls)
    found = shape.fields if isinstance(shape, inspect.StructType) else ()
    return {each.encode_name: (each.name, _fit(each.type)) for each in found}


def _struct(cls: type, value: object, path: str, say: Say, depth: int) -> Any:
    if not isinstance(value, dict):
        say("JUDGE_VALUE", f"{path} should be an object, not {_quoted(value)}")
        return None
    if depth > _DEEPEST:
        return None
    fields = _fields(cls)
    for key in value:
        if key not in fields:
            say("JUDGE_UNKNOWN", f"there is no {_at(path, str(key))}")
    given = {
        name: fit(value[key], _at(path, key), say, depth + 1)
        for key, (name, fit) in fields.items()
        if value.get(key) is not None
    }
    return cls(**given)


def _list(fit: Fit, value: object, path: str, say: Say, depth: int) -> list[Any]:
    many = value if isinstance(value, list) else [value]
    there = ((place, each) for place, each in enumerate(many) if each is not None)
    found = [fit(each, f"{path}[{place}]", say, depth + 1) for place, each in there]
    return [each for each in found if each is not None]


def _table(
    key: Fit, inner: Fit, value: object, path: str, say: Say, depth: int
) -> dict[Any, Any] | None:
    if not isinstance(value, dict):
        say("JUDGE_VALUE", f"{path} should be an object, not {_quoted(value)}")
        return None
    found = {}
    for name, each in value.items():
        at = _at(path, str(name))
        word = key(name, at, say, depth + 1)
        fitted = None if each is None else inner(each, at, say, depth + 1)
        if word is not None and fitted is not None:
            found[word] = fitted
    return found


def _word(cls: type[Word], value: object, path: str, say: Say, depth: int) -> Word | None:
    word = cls.read(value)
    if word is None:
        choice = ", ".join(cls)
        say("JUDGE_VALUE", f"{path} is {_quoted(value)}; it takes {choice}")
    return word


def _text(value: object, path: str, say: Say, depth: int) -> str | None:
    if isinstance(value, dict | list):
        say("JUDGE_VALUE", f"{path} should be a text, not {_quoted(value)}")
        return None
    if isinstance(value, bool):
        value = "YES" if value else "NO"
    return one_line(value) or None


def _at(path: str, name: str) -> str:
    return f"{path}.{one_line(name)}" if path else one_line(name)


def _quoted(value: object) -> str:
    text = one_line(repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
