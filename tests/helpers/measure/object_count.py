"""Counts the objects reachable from an object, to find leaks."""

import asyncio
import gc
from collections import Counter
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import msgspec

# Shared by all objects, or leading from the object to the event loop.
EXCLUDED_TYPES = (type, ModuleType, FunctionType, BuiltinFunctionType, asyncio.AbstractEventLoop)


def count_reachable(thing: object, *, exclude: tuple[type, ...] = ()) -> Counter[str]:
    """Reachable objects by class name, without instances of `exclude` and what only they hold."""
    outside = (*EXCLUDED_TYPES, *exclude)
    seen: dict[int, object] = {}
    pending: list[object] = [thing]
    while pending:
        item = pending.pop()
        if id(item) not in seen and not isinstance(item, outside):
            seen[id(item)] = item
            pending.extend(referents(item))
    return Counter(type(item).__qualname__ for item in seen.values())


def referents(thing: Any) -> Iterable[object]:
    """What an object refers to; gc alone omits untracked structs and keys."""
    if isinstance(thing, msgspec.Struct):
        return [getattr(thing, name) for name in thing.__struct_fields__]
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()]
    return gc.get_referents(thing)
