"""How much a participant may send: messages per second, and bytes for streams."""

from collections import OrderedDict

from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Refused, Why

MIB = 1 << 20
BYTES_PER_SECOND = 4 * MIB
BURST_BYTES = 16 * MIB
# A burst is this many seconds' worth of messages: 1,000 at the usual 200 a second.
BURST_SECONDS = 5
# What streams is counted by its bytes alone.
STREAMED = frozenset({"response.chunk", "thinking.chunk", "tool.output"})
# OPEN-45: a stop must work even for somebody who talks too much.
EXEMPT = frozenset({"interrupt.raise", "gate.reject", "tool.reject", "session.leave"})
MOST_BUCKETS = 10_000


class Bucket:
    """What one participant may still send; fills up as time passes."""

    __slots__ = ("bytes", "messages", "rate", "seen")

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self.messages = rate * BURST_SECONDS
        self.bytes = float(BURST_BYTES)
        self.seen = now

    def take(self, body: Body, size: int, now: float) -> None:
        """Count a message; raises Refused when it is too many."""
        passed = now - self.seen
        self.seen = now
        self.messages = min(self.messages + passed * self.rate, self.rate * BURST_SECONDS)
        self.bytes = min(self.bytes + passed * BYTES_PER_SECOND, BURST_BYTES)
        if body.type in EXEMPT:
            return
        if body.type not in STREAMED:
            self.messages -= 1
        self.bytes -= size
        missing = max(-self.messages / self.rate, -self.bytes / BYTES_PER_SECOND)
        if missing > 0:
            self._give_back(body, size)
            raise too_many(self.rate, missing)

    def _give_back(self, body: Body, size: int) -> None:
        self.messages += body.type not in STREAMED
        self.bytes += size


def too_many(rate: float, missing: float) -> Refused:
    """The refusal, with how long to wait."""
    wait = max(1, int(missing * 1000))
    detail = f"Too fast: {rate:g} messages or 4 MiB a second; wait {wait} ms"
    return Refused(Why.TOO_MANY, detail, {"retry_after_ms": wait, "limit": rate})


class Buckets:
    """A bucket per participant, however many connections it has; the longest unused go."""

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        self.kept: OrderedDict[str, Bucket] = OrderedDict()

    def of(self, seat: str, now: float) -> Bucket | None:
        """The participant's bucket; None when nobody counts."""
        if self.rate is None:
            return None
        bucket = self.kept.get(seat) or self.kept.setdefault(seat, Bucket(self.rate, now))
        self.kept.move_to_end(seat)
        if len(self.kept) > MOST_BUCKETS:
            self.kept.popitem(last=False)
        return bucket
