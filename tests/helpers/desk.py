"""A desk over a real engine and a log in memory, at a time that stands still."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from accord.core import people
from accord.core.dialects import canonical
from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.ids import derived
from accord.core.room.state import House
from accord.desk import LocalDesk, Wish
from accord.engine.engine import Engine, World
from accord.stores.memory import MemoryLog
from accord.transports.identity import Issued, Keyring

T0 = 1_750_000_000_000


class StillClock:
    """Time moves when the test says so."""

    def __init__(self, at: int = T0) -> None:
        self.at = at

    def now(self) -> int:
        return self.at


class Ids:
    """Ids in order."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> str:
        self.made += 1
        return derived(T0, str(self.made))


@asynccontextmanager
async def a_desk(
    home: Path, log: MemoryLog | None = None, clock: StillClock | None = None
) -> AsyncIterator[LocalDesk]:
    """A desk that signs with the keys in `home`."""
    clock = clock or StillClock()
    world = World(canonical, clock, Ids(), House())
    engine = Engine(log or MemoryLog(), [people.CONTEXT], world, check=True)
    try:
        yield LocalDesk(engine, Keyring.open(home / "keys", clock.now), clock)
        await engine.settle()
        assert engine.failures == []
    finally:
        engine.scheduler.stop()


async def when_due(desk: LocalDesk) -> None:
    """Whatever is due at the clock's time has been done."""
    engine = desk._engine
    assert isinstance(engine, Engine)
    engine.scheduler.run_due()
    await engine.settle()


def wish(id: str = "alice", *roles: Role, kind: Kind = Kind.HUMAN, **more: object) -> Wish:
    """A token somebody should get."""
    return Wish(id=id, kind=kind, roles=frozenset(roles or {Role.DRIVER}), **more)  # type: ignore[arg-type]


async def operator(desk: LocalDesk, id: str = "olga", workspace: str = "default") -> Issued:
    """An operator's token, issued by the server itself."""
    return await desk.office().issue(wish(id, Role.ADMIN, workspace=workspace))
