"""The limit on the nesting depth of payloads.

A payload is decoded once and later encoded, compared and decoded again, with other stack depths.
Without a limit a payload that just fits the first time could become a stored record that can no
longer be read.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, inspect

MAX_NESTING_DEPTH = 64

FLAT_TYPES = (
    inspect.StrType,
    inspect.IntType,
    inspect.FloatType,
    inspect.BoolType,
    inspect.NoneType,
    inspect.LiteralType,
    inspect.EnumType,
)


def can_nest(kind: inspect.Type, outer: frozenset[type] = frozenset()) -> bool:
    """Whether values of this type can be nested to any depth."""
    match kind:
        case inspect.StructType(cls=cls, fields=fields):
            return cls in outer or any(can_nest(field.type, outer | {cls}) for field in fields)
        case inspect.UnionType(types=kinds):
            return any(can_nest(member, outer) for member in kinds)
        case inspect.CollectionType(item_type=item) | inspect.DictType(value_type=item):
            return can_nest(item, outer)
        case _:
            return not isinstance(kind, FLAT_TYPES)


def is_too_deep(value: Any) -> bool:
    """Whether the value is nested deeper than the limit."""
    layer = [value]
    for _ in range(MAX_NESTING_DEPTH + 1):
        layer = [child for parent in layer for child in children_of(parent)]
    return bool(layer)


def children_of(value: Any) -> Iterable[Any]:
    match value:
        case dict():
            return value.values()
        case list() | tuple():
            return value
        case Struct():
            return (getattr(value, name) for name in value.__struct_fields__)
        case _:
            return ()
