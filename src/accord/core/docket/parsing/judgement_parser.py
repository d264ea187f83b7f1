"""Parses judgements leniently: valid fields are kept, each invalid one gets a diagnostic."""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import msgspec
from msgspec import inspect

from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.judgement import Judgement
from accord.core.docket.text_values import to_one_line
from accord.core.docket.vocabulary import LenientEnum

_MAX_QUOTED_CHARS = 60
_BYTE = re.compile(r"byte (\d+)")
_KEY = re.compile(r'"([^"\\]*+)"\s*+:')
_INDEX = re.compile(r"\[\d+\]")
# No judgement nests deeper than this.
_MAX_DEPTH = 12
FlawSink = Callable[[str, str], None]
# Takes the value, its path, the function that reports diagnostics, and the depth.
Converter = Callable[[object, str, FlawSink, int], Any]


def parse_judgement(
    text: str, say: Callable[[Diagnostic], None], item: str = "-", line: int = 0
) -> Judgement | None:
    """The judgement in a JSON text that begins on `line`, or None if it is not a JSON object."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        say(
            Diagnostic(
                "JUDGE_SYNTAX", item, str(error), line and line + _error_line(text, str(error))
            )
        )
        return None
    if not isinstance(data, dict):
        say(Diagnostic("JUDGE_SYNTAX", item, "it is not an object", line))
        return None
    flaws: list[tuple[str, str]] = []
    found = judgement_of(data, lambda code, detail: flaws.append((code, detail)))
    places = _line_of_keys(text) if flaws else {}
    for code, detail in flaws:
        say(Diagnostic(code, item, detail, line and line + places.get(_key_of_detail(detail), 0)))
    return found


def _error_line(text: str, error: str) -> int:
    """The line of the syntax error, from 0."""
    at = _BYTE.search(error)
    return text.encode("utf-8", "replace")[: int(at[1])].count(b"\n") if at else 0


def _line_of_keys(text: str) -> dict[str, int]:
    """The line at which each key first appears, from 0."""
    found: dict[str, int] = {}
    for place, line in enumerate(text.split("\n")):
        for key in _KEY.findall(line):
            found.setdefault(key, place)
    return found


def _key_of_detail(detail: str) -> str:
    """The key that a diagnostic is about."""
    path = detail.removeprefix("there is no ").split(" ")[0]
    return _INDEX.sub("", path).rpartition(".")[2]


def judgement_of(data: dict[str, Any], say: FlawSink) -> Judgement:
    """The judgement in a decoded JSON object."""
    found = _convert_struct(Judgement, data, "", say, 0)
    return found if isinstance(found, Judgement) else Judgement()


def _converter_of(shape: inspect.Type) -> Converter:
    """The function that converts a value to a type, or to None if it does not fit."""
    match shape:
        case inspect.Metadata(type=inner):
            return _converter_of(inner)
        case inspect.UnionType(types):
            return _union_converter(
                [each for each in types if not isinstance(each, inspect.NoneType)]
            )
        case inspect.StructType(cls):
            return partial(_convert_struct, cls)
        case inspect.ListType(item_type=inner):
            return partial(_convert_list, _converter_of(inner))
        case inspect.DictType(key_type=key, value_type=inner):
            return partial(_convert_dict, _converter_of(key), _converter_of(inner))
        case inspect.EnumType(cls) if issubclass(cls, LenientEnum):
            return partial(_convert_enum, cls)
        case _:
            return _convert_text


def _union_converter(shapes: list[inspect.Type]) -> Converter:
    """A converter that picks the member of the union by the kind of the value."""
    usual = _converter_of(shapes[0])
    things = [_converter_of(each) for each in shapes if isinstance(each, inspect.StructType)]
    if not things or len(shapes) == 1:
        return usual
    return lambda value, *rest: (things[0] if isinstance(value, dict) else usual)(value, *rest)


@cache
def _field_converters(cls: type) -> dict[str, tuple[str, Converter]]:
    """The converter of each field, by its name in JSON."""
    shape = inspect.type_info(cls)
    found = shape.fields if isinstance(shape, inspect.StructType) else ()
    return {each.encode_name: (each.name, _converter_of(each.type)) for each in found}


def _convert_struct(cls: type, value: object, path: str, say: FlawSink, depth: int) -> Any:
    if not isinstance(value, dict):
        say("JUDGE_VALUE", f"{path} should be an object, not {_quote(value)}")
        return None
    if depth > _MAX_DEPTH:
        return None
    fields = _field_converters(cls)
    for key in value:
        if key not in fields:
            say("JUDGE_UNKNOWN", f"there is no {_join_path(path, str(key))}")
    given = {
        name: fit(value[key], _join_path(path, key), say, depth + 1)
        for key, (name, fit) in fields.items()
        if value.get(key) is not None
    }
    return cls(**given)


def _convert_list(fit: Converter, value: object, path: str, say: FlawSink, depth: int) -> list[Any]:
    many = value if isinstance(value, list) else [value]
    there = ((place, each) for place, each in enumerate(many) if each is not None)
    found = [fit(each, f"{path}[{place}]", say, depth + 1) for place, each in there]
    return [each for each in found if each is not None]


def _convert_dict(
    key: Converter, inner: Converter, value: object, path: str, say: FlawSink, depth: int
) -> dict[Any, Any] | None:
    if not isinstance(value, dict):
        say("JUDGE_VALUE", f"{path} should be an object, not {_quote(value)}")
        return None
    found = {}
    for name, each in value.items():
        at = _join_path(path, str(name))
        word = key(name, at, say, depth + 1)
        fitted = None if each is None else inner(each, at, say, depth + 1)
        if word is not None and fitted is not None:
            found[word] = fitted
    return found


def _convert_enum(
    cls: type[LenientEnum], value: object, path: str, say: FlawSink, depth: int
) -> LenientEnum | None:
    word = cls.parse(value)
    if word is None:
        choice = ", ".join(cls)
        say("JUDGE_VALUE", f"{path} is {_quote(value)}; it takes {choice}")
    return word


def _convert_text(value: object, path: str, say: FlawSink, depth: int) -> str | None:
    if isinstance(value, dict | list):
        say("JUDGE_VALUE", f"{path} should be a text, not {_quote(value)}")
        return None
    if isinstance(value, bool):
        value = "YES" if value else "NO"
    return to_one_line(value) or None


def _join_path(path: str, name: str) -> str:
    return f"{path}.{to_one_line(name)}" if path else to_one_line(name)


def _quote(value: object) -> str:
    text = to_one_line(repr(value))
    return text if len(text) <= _MAX_QUOTED_CHARS else f"{text[:_MAX_QUOTED_CHARS]}…"
