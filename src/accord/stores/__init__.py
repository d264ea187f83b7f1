"""Where the log lives: a URL names the store, and every store keeps the same promises."""

from collections.abc import Awaitable, Callable

from accord.engine.ports import EventLog, UnknownStoreError

Opener = Callable[[str, str], Awaitable[EventLog]]


async def _memory(_place: str, _durability: str) -> EventLog:
    from accord.stores.memory import MemoryLog

    return MemoryLog()


async def _sqlite(place: str, durability: str) -> EventLog:
    from accord.stores.sqlite import SqliteLog

    return await SqliteLog.open(place, durability=durability)


OPENERS: dict[str, Opener] = {
    "memory": _memory,
    "sqlite": _sqlite,
}


async def open_log(url: str, *, durability: str = "full") -> EventLog:
    """The log that `url` names, ready to use; `close` it when done."""
    scheme, colon, place = url.partition(":")
    if not colon or scheme not in OPENERS:
        known = ", ".join(f"{name}:" for name in OPENERS)
        detail = f"{url!r} names no store I know; a store begins with one of {known}"
        raise UnknownStoreError(detail)
    return await OPENERS[scheme](place, durability)
