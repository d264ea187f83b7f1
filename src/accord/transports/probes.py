"""What a balancer asks: whether the server lives, and whether it can work."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import monotonic

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from accord.engine.ports import EventLog, StoreError
from accord.transports.replies import answer

log = logging.getLogger("accord.probes")

# However often somebody asks, it is looked into once in this time.
FRESH_S = 1.0
# A store that takes longer to answer is not one to send people to.
PATIENCE_S = 2.0
# A worker that is behind for so long, and does not move, follows the log no more.
STUCK_S = 15.0
CURSOR = "probe"
STOPPING = "stopping"
Check = Callable[[], Awaitable[bool]]


async def healthz(request: Request) -> Response:
    """Alive."""
    return PlainTextResponse("ok\n")


class Readiness:
    """Which checks fail; at most one look at a time, and what it found holds for a while."""

    def __init__(
        self,
        checks: Mapping[str, Check],
        stopping: Callable[[], bool],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.checks = checks
        self.stopping = stopping
        self.clock = clock
        self.found: tuple[str, ...] = ()
        self.looked: float | None = None
        self.looking: asyncio.Task[None] | None = None

    async def failed(self) -> tuple[str, ...]:
        """The names of the checks that fail; empty when the server is ready."""
        if self.stopping():
            return (STOPPING,)
        if self.looked is None or self.clock() - self.looked >= FRESH_S:
            if self.looking is None:
                self.looking = asyncio.create_task(self._look())
            await asyncio.shield(self.looking)
        return self.found

    async def _look(self) -> None:
        try:
            found = [name for name, check in self.checks.items() if not await passes(check)]
            if tuple(found) != self.found:
                log.warning("ready.changed", extra={"failed": ",".join(found) or "nothing"})
            self.found = tuple(found)
        finally:
            self.looked, self.looking = self.clock(), None

    async def page(self, request: Request) -> Response:  # noqa: ARG002 - a handler's shape
        """200, or 503 with the names of what fails; nothing more for strangers."""
        failed = await self.failed()
        said = {"status": "not ready", "failed": failed} if failed else {"status": "ready"}
        response = answer(said, 503 if failed else 200)
        if failed:
            response.headers["retry-after"] = "1"
        return response


async def passes(check: Check) -> bool:
    """Whether it holds; what takes too long does not."""
    try:
        return await asyncio.wait_for(check(), PATIENCE_S)
    except (StoreError, TimeoutError):
        return False


def store_works(events: EventLog) -> Check:
    """Whether the log can be written, durably, and read; the probe's own cursor is what moves."""

    async def works() -> bool:
        await events.advance(CURSOR, await events.position())
        return True

    return works


class Following:
    """Whether every worker is alive and keeps up with the log."""

    def __init__(
        self,
        events: EventLog,
        workers: Iterable[str],
        alive: Callable[[], bool],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.events = events
        self.workers = tuple(workers)
        self.alive = alive
        self.clock = clock
        self.behind: dict[str, tuple[int, float]] = {}  # where it was, and since when

    async def __call__(self) -> bool:
        """Look once."""
        position = await self.events.position()
        keeps_up = [await self._keeps_up(name, position) for name in self.workers]
        return self.alive() and all(keeps_up)

    async def _keeps_up(self, name: str, position: int) -> bool:
        reached = await self.events.cursor(name)
        if reached >= position:
            self.behind.pop(name, None)
            return True
        was, since = self.behind.get(name, (reached, self.clock()))
        if was != reached:
            since = self.clock()
        self.behind[name] = (reached, since)
        return self.clock() - since < STUCK_S
