"""Liveness and readiness checks for load balancers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import monotonic

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from accord.engine.ports import EventLog, StoreError
from accord.transports.http.responses import json_response

log = logging.getLogger("accord.probes")

# Results are cached this long, however often they are requested.
CHECK_CACHE_S = 1.0
# A store that takes longer counts as failing.
CHECK_TIMEOUT_S = 2.0
# A worker that stays behind the log for this long without progress counts as stuck.
WORKER_STUCK_S = 15.0
HEALTH_CURSOR = "probe"
STOPPING_CHECK = "stopping"
HealthCheck = Callable[[], Awaitable[bool]]


async def healthz(request: Request) -> Response:
    """Liveness."""
    return PlainTextResponse("ok\n")


class Readiness:
    """Runs readiness checks, one run at a time, and caches the result."""

    def __init__(
        self,
        checks: Mapping[str, HealthCheck],
        stopping: Callable[[], bool],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.checks = checks
        self.is_stopping = stopping
        self.clock = clock
        self.failing: tuple[str, ...] = ()
        self.checked_at: float | None = None
        self.check_task: asyncio.Task[None] | None = None

    async def failing_checks(self) -> tuple[str, ...]:
        """Names of failing checks; empty when the server is ready."""
        if self.is_stopping():
            return (STOPPING_CHECK,)
        if self.checked_at is None or self.clock() - self.checked_at >= CHECK_CACHE_S:
            if self.check_task is None:
                self.check_task = asyncio.create_task(self._run_checks())
            await asyncio.shield(self.check_task)
        return self.failing

    async def _run_checks(self) -> None:
        try:
            failing = [name for name, check in self.checks.items() if not await check_passes(check)]
            if tuple(failing) != self.failing:
                log.warning("ready.changed", extra={"failed": ",".join(failing) or "nothing"})
            self.failing = tuple(failing)
        finally:
            self.checked_at, self.check_task = self.clock(), None

    async def readyz(self, request: Request) -> Response:  # noqa: ARG002 - a handler's shape
        """200, or 503 with the names of the failing checks and nothing else."""
        failed = await self.failing_checks()
        body = {"status": "not ready", "failed": failed} if failed else {"status": "ready"}
        response = json_response(body, 503 if failed else 200)
        if failed:
            response.headers["retry-after"] = "1"
        return response


async def check_passes(check: HealthCheck) -> bool:
    """Whether the check passes in time."""
    try:
        return await asyncio.wait_for(check(), CHECK_TIMEOUT_S)
    except (StoreError, TimeoutError):
        return False


def store_check(events: EventLog) -> HealthCheck:
    """Checks that the log can be written durably and read, by moving a cursor of its own."""

    async def works() -> bool:
        await events.advance(HEALTH_CURSOR, await events.position())
        return True

    return works


class WorkerCheck:
    """Checks that every worker is alive and keeps up with the log."""

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
        self.behind: dict[str, tuple[int, float]] = {}  # position, and since when

    async def __call__(self) -> bool:
        position = await self.events.position()
        keeps_up = [await self._keeps_up(name, position) for name in self.workers]
        return self.alive() and all(keeps_up)

    async def _keeps_up(self, name: str, position: int) -> bool:
        reached = await self.events.cursor(name)
        if reached >= position:
            self.behind.pop(name, None)
            return True
        previous, since = self.behind.get(name, (reached, self.clock()))
        if previous != reached:
            since = self.clock()
        self.behind[name] = (reached, since)
        return self.clock() - since < WORKER_STUCK_S
