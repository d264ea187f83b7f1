"""How deep a payload may be nested.

What is decoded once is encoded, compared and read back later, at other depths of the stack. So
nothing may come in that only just fitted: it would be a record that nobody can open again.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Raw, Struct, inspect
from msgspec.json import Decoder

from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Refused, Why

DEEPEST = 64

FLAT = (
    inspect.StrType,
    inspect.IntType,
    inspect.FloatType,
    inspect.BoolType,
    inspect.NoneType,
    inspect.LiteralType,
    inspect.EnumType,
)

Read = Callable[[Raw], Body]


def decoder(body: type[Body]) -> Read:
    """Reads a payload of this type; only where it can nest at all, its depth is looked at."""
    read = Decoder(body).decode
    return bounded(read) if nests(inspect.type_info(body)) else read


def bounded(read: Read) -> Read:
    """The same with the bound; few brackets cannot be deep, so most payloads are not walked."""

    def read_bounded(raw: Raw) -> Body:
        body, text = read(raw), bytes(raw)
        if text.count(b"{") + text.count(b"[") > DEEPEST and too_deep(body):
            detail = f"A payload may be nested {DEEPEST} levels deep"
            raise Refused(Why.MALFORMED, detail, {"limit": "depth", "most": DEEPEST})
        return body

    return read_bounded


def nests(kind: inspect.Type, above: frozenset[type] = frozenset()) -> bool:
    """Whether a value of this type may be nested as deep as its sender likes."""
    match kind:
        case inspect.StructType(cls=cls, fields=fields):
            return cls in above or any(nests(field.type, above | {cls}) for field in fields)
        case inspect.UnionType(types=kinds):
            return any(nests(each, above) for each in kinds)
        case inspect.CollectionType(item_type=each) | inspect.DictType(value_type=each):
            return nests(each, above)
        case _:
            return not isinstance(kind, FLAT)


def too_deep(value: Any) -> bool:
    """Whether there is something below the deepest level."""
    layer = [value]
    for _ in range(DEEPEST + 1):
        layer = [part for each in layer for part in parts(each)]
    return bool(layer)


def parts(value: Any) -> Iterable[Any]:
    """What a value is made of."""
    match value:
        case dict():
            return value.values()
        case list() | tuple():
            return value
        case Struct():
            return (getattr(value, name) for name in value.__struct_fields__)
        case _:
            return ()
