"""Judgements as models and people write them: what fits is taken, what does not is named."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import inspect

from accord.core.docket.diags import Diag
from accord.core.docket.judge import Judge
from accord.core.docket.text import one_line
from accord.core.docket.words import Word

_SHAPE = inspect.type_info(Judge)
_LONGEST = 60
# Where a word would do for a thing, and deeper than this nobody judges.
_DEEPEST = 12
Say = Callable[[str, str], None]


def read(text: str, say: Callable[[Diag], None], item: str = "-", line: int = 0) -> Judge | None:
    """The judgement in a JSON text; None where there is none, and each flaw said."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        say(Diag("JUDGE_SYNTAX", item, str(error), line))
        return None
    if not isinstance(data, dict):
        say(Diag("JUDGE_SYNTAX", item, "it is no object", line))
        return None
    return judge(data, lambda code, detail: say(Diag(code, item, detail, line)))


def judge(data: dict[str, Any], say: Say) -> Judge:
    """The judgement in an object."""
    found = _fitted(_SHAPE, data, "", say, 0)
    return found if isinstance(found, Judge) else Judge()


def _fitted(shape: inspect.Type, value: object, path: str, say: Say, depth: int) -> Any:
    """The value as the shape wants it; None where it cannot be."""
    if value is None or depth > _DEEPEST:
        return None
    match shape:
        case inspect.Metadata(type=inner):
            return _fitted(inner, value, path, say, depth)
        case inspect.UnionType(types):
            return _fitted(_choice(types, value), value, path, say, depth)
        case inspect.StructType():
            return _struct(shape, value, path, say, depth)
        case inspect.ListType(item_type=inner):
            many = value if isinstance(value, list) else [value]
            places = [(each, f"{path}[{place}]") for place, each in enumerate(many)]
            found = [_fitted(inner, each, at, say, depth + 1) for each, at in places]
            return [each for each in found if each is not None]
        case inspect.DictType(key_type=key, value_type=inner):
            return _table(key, inner, value, path, say, depth)
        case inspect.EnumType(cls) if issubclass(cls, Word):
            return _word(cls, value, path, say)
        case _:
            return _text(value, path, say)


def _choice(types: tuple[inspect.Type, ...], value: object) -> inspect.Type:
    """Of what a field may be, what this value looks like."""
    real = [each for each in types if not isinstance(each, inspect.NoneType)]
    things = [each for each in real if isinstance(each, inspect.StructType)]
    return things[0] if things and isinstance(value, dict) else real[0]


def _struct(shape: inspect.StructType, value: object, path: str, say: Say, depth: int) -> Any:
    if not isinstance(value, dict):
        say("JUDGE_VALUE", f"{path} should be an object, not {_quoted(value)}")
        return None
    fields = {each.encode_name: each for each in shape.fields}
    for key in value:
        if key not in fields:
            say("JUDGE_UNKNOWN", f"there is no {_at(path, str(key))}")
    given = {
        field.name: _fitted(field.type, value[name], _at(path, name), say, depth + 1)
        for name, field in fields.items()
        if name in value
    }
    return shape.cls(**given)


def _table(
    key: inspect.Type, inner: inspect.Type, value: object, path: str, say: Say, depth: int
) -> dict[Any, Any] | None:
    if not isinstance(value, dict):
        say("JUDGE_VALUE", f"{path} should be an object, not {_quoted(value)}")
        return None
    found = {}
    for name, each in value.items():
        word = _fitted(key, name, _at(path, str(name)), say, depth + 1)
        fitted = _fitted(inner, each, _at(path, str(name)), say, depth + 1)
        if word is not None and fitted is not None:
            found[word] = fitted
    return found


def _word(cls: type[Word], value: object, path: str, say: Say) -> Word | None:
    word = cls.read(value)
    if word is None:
        choice = ", ".join(cls)
        say("JUDGE_VALUE", f"{path} is {_quoted(value)}; it takes {choice}")
    return word


def _text(value: object, path: str, say: Say) -> str | None:
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
