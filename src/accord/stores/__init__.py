"""Stores of the log, selected by a URL; all of them pass the same contract suite."""

from collections.abc import Awaitable, Callable

from accord.engine.ports import EventLog, UnknownStoreError

StoreOpener = Callable[[str, str], Awaitable[EventLog]]


async def _memory(_place: str, _durability: str) -> EventLog:
    from accord.stores.memory import MemoryLog

    return MemoryLog()


async def _sqlite(place: str, durability: str) -> EventLog:
    from accord.stores.sqlite import SqliteLog

    return await SqliteLog.open(place, durability=durability)


async def _postgresql(place: str, durability: str) -> EventLog:
    from accord.stores.postgres import PostgresLog

    return await PostgresLog.open(f"postgresql:{place}", durability=durability)


async def _nats(place: str, durability: str) -> EventLog:
    from accord.stores.nats import NatsLog

    return await NatsLog.open(f"nats:{place}", durability=durability)


OPENERS: dict[str, StoreOpener] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "postgres": _postgresql,
    "nats": _nats,
}


async def open_log(url: str, *, durability: str = "full") -> EventLog:
    """Open the log that `url` names; the caller must `close` it."""
    scheme, colon, place = url.partition(":")
    if not colon or scheme not in OPENERS:
        known = ", ".join(f"{name}:" for name in OPENERS)
        detail = f"{url!r} is not a known store; a store URL begins with one of {known}"
        raise UnknownStoreError(detail)
    return await OPENERS[scheme](place, durability)
