"""Those who wait over HTTP: how many may, and what ends their wait."""

import asyncio
from collections import Counter
from typing import Protocol

from starlette.types import Receive

from accord.core.kernel.limits import Limits, reached
from accord.transports.caller import Caller


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
        self.count: Counter[tuple[str, str]] = Counter()

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
