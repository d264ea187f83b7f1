"""Types of fields, in words."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

import msgspec
from msgspec import NODEFAULT, Struct, UnsetType, inspect

from accord.core.kernel.ballot import Quorum
from tools.reference.markdown import code, codes, sentence, table
from tools.reference.words import sentences_of

QUORUM_KINDS = frozenset(get_args(Quorum))
LINKS = {"SessionConfig": "configuration.md#the-rules-of-a-session"}


def fields(struct: type[Struct]) -> Sequence[inspect.Field]:
    """The fields as they are on the wire."""
    found = inspect.type_info(struct)
    return found.fields if isinstance(found, inspect.StructType) else ()


def field_table(struct: type[Struct], name: str) -> Iterator[str]:
    """What may stand in it; `name` is its section among the sentences."""
    said = sentences_of(name, [field.encode_name for field in fields(struct)])
    rows = (
        (
            code(field.encode_name),
            describe_type(field.type),
            presence(field),
            said[field.encode_name],
        )
        for field in fields(struct)
    )
    yield from table(("Field", "Type", "", "Meaning"), rows)


def presence(field: inspect.Field) -> str:
    """Whether it must be there, else what holds without it."""
    if field.required:
        return "required"
    default = plain_value(field)
    return "optional" if default in (None, "", (), [], {}) else f"default {format_default(default)}"


def plain_value(field: inspect.Field) -> Any:
    """The default as JSON has it."""
    if field.default is NODEFAULT:
        factory: Any = field.default_factory
        return None if factory is NODEFAULT else factory()
    if isinstance(field.default, UnsetType | msgspec.Raw):
        return None
    return msgspec.to_builtins(field.default)


def format_default(value: Any) -> str:
    """A value as JSON."""
    return code(msgspec.json.encode(value, order="deterministic").decode())


def describe_type(kind: inspect.Type) -> str:
    """The type for a person."""
    match kind:
        case inspect.UnionType(types=kinds):
            return _union(kinds)
        case inspect.EnumType(cls=cls):
            return codes(each.value for each in cls)
        case inspect.LiteralType(values=values):
            return codes(values)
        case inspect.VarTupleType(item_type=each) | inspect.ListType(item_type=each):
            return _several(describe_type(each), kind.min_length, kind.max_length)
        case inspect.SetType(item_type=each) | inspect.FrozenSetType(item_type=each):
            return _several(describe_type(each), kind.min_length, kind.max_length)
        case inspect.StructType(cls=cls):
            return _struct(cls)
        case _:
            return _scalar(kind)


def _scalar(kind: inspect.Type) -> str:
    match kind:
        case inspect.StrType():
            return _bounded("text", kind.min_length, kind.max_length, "characters")
        case inspect.IntType():
            return _bounded("whole number", kind.ge, kind.le)
        case inspect.FloatType():
            return "number"
        case inspect.BoolType():
            return "`true` or `false`"
        case inspect.DictType():
            return "object"
        case inspect.AnyType() | inspect.RawType():
            return "any JSON"
        case inspect.BytesType():
            return "bytes"
        case _:
            raise TypeError(f"no words for {kind}")


def _union(kinds: Sequence[inspect.Type]) -> str:
    real = [each for each in kinds if not isinstance(each, inspect.NoneType)]
    if all(isinstance(each, inspect.StructType) and each.cls in QUORUM_KINDS for each in real):
        return "a [quorum](quorum.md)"
    return " or ".join(describe_type(each) for each in real)


def _struct(cls: type) -> str:
    where = LINKS.get(cls.__name__, f"#{cls.__name__.lower()}")
    return f"[{cls.__name__}]({where})"


def _several(item: str, least: int | None, most: int | None) -> str:
    bounds = _bounded("", least, most).removeprefix(", ")
    return f"list ({bounds}) of {item}" if bounds else f"list of {item}"


def _bounded(
    what: str, least: float | None = None, most: float | None = None, unit: str = ""
) -> str:
    after = f" {unit}" if unit else ""
    match least, most:
        case None, None:
            return what
        case None, _:
            return f"{what}, up to {most:,}{after}"
        case _, None:
            return f"{what}, {least:,} or more{after}"
        case _:
            return f"{what}, {least:,} to {most:,}{after}"


def nested(struct: type[Struct]) -> Iterator[type[Struct]]:
    """Structs that its fields are made of, quorums aside, in the order of the fields."""
    for field in fields(struct):
        for each in _structs(field.type):
            if each not in QUORUM_KINDS:
                yield each
                yield from nested(each)


def _structs(kind: inspect.Type) -> Iterator[type[Struct]]:
    match kind:
        case inspect.StructType(cls=cls):
            yield cls
        case inspect.UnionType(types=kinds):
            for each in kinds:
                yield from _structs(each)
        case inspect.VarTupleType(item_type=each) | inspect.ListType(item_type=each):
            yield from _structs(each)
        case _:
            return


def first_sentence(struct: type[Any]) -> str:
    """What the docstring says."""
    return sentence(struct.__doc__)
