"""Those who wait over HTTP: how many may, and what ends their wait."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from starlette.types import Receive

from accord.core.kernel.limits import Limits, reached
from accord.transports.caller import Caller

MOST_BYTES = 256 << 20
# However little of a message has come, whoever sends it keeps a connection.
LEAST_BYTES = 64 << 10
Principal = tuple[str, str]


class Sitter(Protocol):
    """A request that goes on for a while."""

    caller: Caller

    def end(self, reason: str) -> None:
        """It must not go on."""
        ...


class Bench:
    """A bounded number of requests that wait, for each principal and in all."""

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self.each = limits.polls_per_principal
        self.most = limits.polls
        self.here: set[Sitter] = set()
        self.count: Counter[Principal] = Counter()

    def sit(self, sitter: Sitter) -> None:
        """One more; raises Refused where there is no place."""
        who = sitter.caller.principal
        if self.count[who] >= self.each or len(self.here) >= self.most:
            own = self.count[who] >= self.each
            name, most = ("polls_per_principal", self.each) if own else ("polls", self.most)
            detail = f"{most} requests wait here already; that is enough"
            raise reached(name, most, detail, retry_after_ms=1000)
        self.here.add(sitter)
        self.count[who] += 1

    def rise(self, sitter: Sitter) -> None:
        """It waits no longer."""
        if sitter in self.here:
            self.here.remove(sitter)
            self.count -= Counter([sitter.caller.principal])

    def revoke(self, jti: str) -> None:
        """Whoever came with this token waits no longer."""
        for sitter in [each for each in self.here if each.caller.holds(jti)]:
            sitter.end("the token was revoked")

    def clear(self) -> None:
        """The server stops."""
        for sitter in list(self.here):
            sitter.end("the server stops")


class Load:
    """A bounded number of bytes of messages that come in, for each principal and in all."""

    def __init__(self, limits: Limits) -> None:
        self.each = max(limits.stream_burst, limits.frame + LEAST_BYTES)
        self.most = max(MOST_BYTES, self.each)
        self.held: Counter[Principal] = Counter()
        self.total = 0

    @contextmanager
    def of(self, who: Principal) -> Iterator[Callable[[int], None]]:
        """While a message comes in: takes the size of each part; raises Refused past a bound."""
        taken = 0

        def take(size: int) -> None:
            nonlocal taken
            self._take(who, size)
            taken += size

        try:
            take(LEAST_BYTES)
            yield take
        finally:
            self.total -= taken
            self.held -= Counter({who: taken})

    def _take(self, who: Principal, size: int) -> None:
        if self.held[who] + size > self.each or self.total + size > self.most:
            detail = "Too much is on its way at once; finish some messages first"
            raise reached("stream_burst", self.each, detail, retry_after_ms=1000)
        self.held[who] += size
        self.total += size


async def hung_up(receive: Receive) -> None:
    """Wait until whoever asked is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def first(*work: "asyncio.Task[None]") -> None:
    """Wait until one of these is done; none of them goes on."""
    try:
        await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)
