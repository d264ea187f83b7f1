"""A TokenService on a real engine and an in-memory log, with a manual clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from accord.api.tokens import IssuedToken, TokenRequest
from accord.core import room
from accord.core.dialects import stored_records
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.kernel.ulid import derive_ulid
from accord.core.people import context
from accord.core.room.room_settings import ServerPolicy
from accord.engine.engine import Engine
from accord.engine.ports import EnginePorts
from accord.identity.token_service import TokenService
from accord.identity.token_signing import Keyring
from accord.stores.memory import MemoryLog
from accord.transports.http.session_index import SessionIndex

T0 = 1_750_000_000_000


class ManualClock:
    """A clock that moves only when the test sets it."""

    def __init__(self, at: int = T0) -> None:
        self.at = at

    def now(self) -> int:
        return self.at


class SequentialIds:
    """Generates ids in increasing order."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return derive_ulid(T0, str(self.count))


@asynccontextmanager
async def open_token_service(
    home: Path, log: MemoryLog | None = None, clock: ManualClock | None = None
) -> AsyncIterator[TokenService]:
    """A TokenService that signs with the keys in `home`."""
    clock = clock or ManualClock()
    world = EnginePorts(stored_records, clock, SequentialIds(), ServerPolicy())
    engine = Engine(log or MemoryLog(), [context.CONTEXT, room.CONTEXT], world, check=True)
    try:
        yield TokenService(
            engine,
            Keyring.open(home / "keys", clock.now),
            clock,
            SessionIndex(engine).sessions_of,
        )
        await engine.wait_until_idle()
        assert engine.failures == []
    finally:
        engine.scheduler.stop()


async def run_due_jobs(desk: TokenService) -> None:
    """Run all jobs that are due at the clock's time."""
    engine = desk._engine
    assert isinstance(engine, Engine)
    engine.scheduler.run_due()
    await engine.wait_until_idle()


def token_request(
    id: str = "alice", *roles: Role, kind: Kind = Kind.HUMAN, **more: object
) -> TokenRequest:
    """A request for a token."""
    return TokenRequest(id=id, kind=kind, roles=frozenset(roles or {Role.DRIVER}), **more)  # type: ignore[arg-type]


async def issue_operator_token(
    desk: TokenService, id: str = "olga", workspace: str = "default"
) -> IssuedToken:
    """An operator's token, issued with the server's own authority."""
    return await desk.admin_for().issue(token_request(id, Role.ADMIN, workspace=workspace))
