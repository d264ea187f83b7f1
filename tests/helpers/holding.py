"""What something holds: every object that can be reached from it, counted by kind."""

import asyncio
import gc
from collections import Counter
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import msgspec

# What is the same for all, and what leads out of the thing to the loop that runs it.
ELSEWHERE = (type, ModuleType, FunctionType, BuiltinFunctionType, asyncio.AbstractEventLoop)


def holding(thing: object, *, apart_from: tuple[type, ...] = ()) -> Counter[str]:
    """How many objects of each kind; not those of these types, nor what they hold."""
    outside = (*ELSEWHERE, *apart_from)
    found: dict[int, object] = {}
    waiting: list[object] = [thing]
    while waiting:
        each = waiting.pop()
        if id(each) not in found and not isinstance(each, outside):
            found[id(each)] = each
            waiting.extend(parts(each))
    return Counter(type(each).__qualname__ for each in found.values())


def parts(thing: Any) -> Iterable[object]:
    """What it refers to; the collector skips structures and keys that cannot be in a circle."""
    if isinstance(thing, msgspec.Struct):
        return [getattr(thing, name) for name in thing.__struct_fields__]
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()]
    return gc.get_referents(thing)
