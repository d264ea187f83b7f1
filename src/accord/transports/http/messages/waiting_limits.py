"""Limits on waiting HTTP requests and on bodies in flight."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from starlette.types import Receive

from accord.core.kernel.limits import Limits, limit_exceeded
from accord.transports.http.auth import Caller

MAX_BODY_BYTES_IN_FLIGHT = 256 << 20
# A message counts at least this much while it arrives, because it occupies a connection.
MIN_BODY_CHARGE_BYTES = 64 << 10
Principal = tuple[str, str]


class Waiter(Protocol):
    """A request that stays open."""

    caller: Caller

    def end_wait(self, reason: str) -> None:
        """Finish now."""
        ...


class Waiters:
    """A limit on waiting requests per principal and in total."""

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.max_per_principal = limits.polls_per_principal
        self.max_total = limits.polls
        self.waiting: set[Waiter] = set()
        self.counts: Counter[Principal] = Counter()

    def add(self, waiter: Waiter) -> None:
        """Count a waiting request; raises Refused over the limit."""
        principal = waiter.caller.principal
        if self.counts[principal] >= self.max_per_principal or len(self.waiting) >= self.max_total:
            over_own_limit = self.counts[principal] >= self.max_per_principal
            name, maximum = (
                ("polls_per_principal", self.max_per_principal)
                if over_own_limit
                else ("polls", self.max_total)
            )
            detail = f"{maximum} requests are waiting already; try again when one has finished"
            raise limit_exceeded(name, maximum, detail, retry_after_ms=1000)
        self.waiting.add(waiter)
        self.counts[principal] += 1

    def remove(self, waiter: Waiter) -> None:
        if waiter in self.waiting:
            self.waiting.remove(waiter)
            self.counts -= Counter([waiter.caller.principal])

    def end_revoked(self, jti: str) -> None:
        """Finish all requests that use this token."""
        for waiter in [task for task in self.waiting if task.caller.uses_token(jti)]:
            waiter.end_wait("the token was revoked")

    def end_all(self) -> None:
        """Finish all requests because the server is stopping."""
        for waiter in list(self.waiting):
            waiter.end_wait("the server is stopping")


class BodyQuota:
    """A limit on bytes of arriving messages per principal and in total."""

    def __init__(self, limits: Limits) -> None:
        self.max_per_principal = max(limits.stream_burst, limits.frame + MIN_BODY_CHARGE_BYTES)
        self.max_total = max(MAX_BODY_BYTES_IN_FLIGHT, self.max_per_principal)
        self.bytes_held: Counter[Principal] = Counter()
        self.total = 0

    @contextmanager
    def reserve(self, principal: Principal) -> Iterator[Callable[[int], None]]:
        """Yields a function to reserve each part's size; it raises Refused over the limit."""
        taken = 0

        def take(size: int) -> None:
            nonlocal taken
            self._reserve(principal, size)
            taken += size

        try:
            take(MIN_BODY_CHARGE_BYTES)
            yield take
        finally:
            self.total -= taken
            self.bytes_held -= Counter({principal: taken})

    def _reserve(self, principal: Principal, size: int) -> None:
        if (
            self.bytes_held[principal] + size > self.max_per_principal
            or self.total + size > self.max_total
        ):
            detail = "Too many bytes are being uploaded at once; wait until some messages are sent"
            raise limit_exceeded(
                "stream_burst", self.max_per_principal, detail, retry_after_ms=1000
            )
        self.bytes_held[principal] += size
        self.total += size


async def wait_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def wait_first(*work: "asyncio.Task[None]") -> None:
    """Wait for the first to finish and cancel the others."""
    try:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
