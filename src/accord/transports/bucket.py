"""How much a participant may send: messages per second, and bytes for streams."""

from collections import OrderedDict

from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Refused, Why

MIB = 1 << 20
USUAL = Limits()
# Whoever owes more is not even read, unless it is short.
MOST_OWED = 4 * MIB
SHORT = 4096
# A burst is this many seconds' worth of messages: 1,000 at the usual 200 a second.
BURST_SECONDS = 5
# What streams is counted by its bytes alone.
STREAMED = frozenset({"response.chunk", "thinking.chunk", "tool.output"})
# OPEN-45: a stop must work even for somebody who talks too much, so it is counted apart.
STOPS = frozenset({"interrupt.raise", "gate.reject", "tool.reject", "session.leave"})
STOPPING = tuple(f'"{kind}"'.encode() for kind in sorted(STOPS))
SPARED = (*STOPPING, *(f'"{kind}"'.encode() for kind in sorted(STREAMED)))
RATE = "rate_limit"
# A session that is not at hand has to be read: its first message costs this part of a burst more,
# three messages at the usual rate.
OPENING = 0.003
# For what is counted by bytes, these stand for a message that costs more than its bytes.
OPENING_BYTES = 64 << 10
REFUSED_BYTES = 4 << 10
# Some bytes are a hundred times as dear to read as others, as those of numbers at the edge of what
# can be counted. What took longer than any usual message is paid for by time.
LONGEST_S = 0.05
BYTES_PER_SECOND = 32 << 20
STOPS_PER_SECOND = 20.0
BURST_STOPS = 100.0
MOST_BUCKETS = 10_000


class Bucket:
    """What one participant may still send; fills up as time passes."""

    __slots__ = ("burst", "bytes", "flow", "messages", "rate", "seen", "stopped", "stops")

    def __init__(self, rate: float, now: float, limits: Limits = USUAL) -> None:
        self.rate = rate
        self.flow, self.burst = limits.stream_bytes, limits.stream_burst
        self.messages = rate * BURST_SECONDS
        self.bytes = float(self.burst)
        self.seen = now
        self.stops = BURST_STOPS
        self.stopped = now

    def weigh(self, size: int, now: float) -> None:
        """Count the bytes of whatever came; raises Refused when it is not worth reading."""
        passed = now - self.seen
        self.seen = now
        self.messages = min(self.messages + passed * self.rate, self.rate * BURST_SECONDS)
        left = min(self.bytes + passed * self.flow, self.burst)
        if left < -MOST_OWED and size > SHORT:
            self.bytes = left
            raise self.too_many(-left / self.flow, "stream_bytes")
        self.bytes = left - size

    def affords(self, size: int, now: float) -> bool:
        """Whether so many bytes of a stream can be had without a look at each message."""
        self.weigh(0, now)
        return not self.spent and self.bytes >= size

    @property
    def spent(self) -> bool:
        """Whether most of what comes now is too much."""
        return self.messages < 1 or self.bytes < 0

    def glance(self, data: bytes) -> None:
        """Refuse what is too much whatever it turns out to be, before anybody reads it."""
        poor = STOPPING if len(data) <= SHORT else ()
        spared = SPARED if self.bytes >= 0 else poor
        if not any(name in data for name in spared):
            self.count("", 0)

    def count(self, kind: str, size: int) -> None:
        """Count a message whose bytes were weighed; raises Refused when it is too many."""
        missing, limit = -self.bytes / self.flow, "stream_bytes"
        if kind in STOPS:
            self._stop(missing if size > SHORT else 0.0)
            return
        if kind not in STREAMED and (one := (1 - self.messages) / self.rate) > missing:
            missing, limit = one, RATE
        if missing > 0:
            raise self.too_many(missing, limit)
        if kind not in STREAMED:
            self.messages -= 1

    def open(self, kind: str) -> None:
        """A message was for a session that is not at hand."""
        size = OPENING_BYTES if kind in STREAMED else 0
        self._owe(int(OPENING * self.rate * BURST_SECONDS), size)

    def refused(self, kind: str) -> None:
        """A message was for nothing, and had to be answered."""
        self._owe(0, REFUSED_BYTES if kind in STREAMED else 0)

    def worked(self, seconds: float) -> None:
        """So long it took to read what was sent."""
        if seconds > LONGEST_S:
            self._owe(0, int(seconds * BYTES_PER_SECOND))

    def _owe(self, messages: int, size: int) -> None:
        """So much more, as far as it can be made up for in a second or so; never less."""
        self.messages = min(self.messages, max(self.messages - messages, -self.rate))
        self.bytes = min(self.bytes, max(self.bytes - size, -float(MOST_OWED)))

    def _stop(self, missing: float) -> None:
        passed, self.stopped = self.seen - self.stopped, self.seen
        self.stops = min(self.stops + passed * STOPS_PER_SECOND, BURST_STOPS)
        missing = max(missing, (1 - self.stops) / STOPS_PER_SECOND)
        if missing > 0:
            self._owe(1, 0)
            raise self.too_many(missing, RATE)
        self.stops -= 1

    def too_many(self, missing: float, limit: str) -> Refused:
        """The refusal, with how long to wait."""
        wait = max(1, int(missing * 1000))
        most = self.rate if limit == RATE else self.flow
        detail = f"Too fast: {self.rate:g} messages or {self.flow} bytes a second; wait {wait} ms"
        return Refused(Why.TOO_MANY, detail, {"retry_after_ms": wait, "limit": limit, "most": most})


def is_rate(no: Refused) -> bool:
    """Whether somebody merely speaks too often."""
    return (no.details or {}).get("limit") == RATE


class Buckets:
    """A bucket per participant, however many connections it has; the longest unused go."""

    def __init__(self, rate: float | None, limits: Limits = USUAL) -> None:
        self.rate = rate
        self.limits = limits
        self.kept: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    def fresh(self, now: float) -> Bucket | None:
        """A bucket for whoever is not known yet; None when nobody counts."""
        return None if self.rate is None else Bucket(self.rate, now, self.limits)

    def of(self, actor: Actor, now: float) -> Bucket | None:
        """The participant's bucket; None when nobody counts."""
        if self.rate is None:
            return None
        key = actor.workspace, actor.seat
        bucket = self.kept.get(key) or self.kept.setdefault(
            key, Bucket(self.rate, now, self.limits)
        )
        self.kept.move_to_end(key)
        if len(self.kept) > MOST_BUCKETS:
            self.kept.popitem(last=False)
        return bucket

    def open(self, actor: Actor, kind: str) -> None:
        """Somebody wants a session that is not at hand."""
        bucket = self.kept.get((actor.workspace, actor.seat))
        if bucket is not None:
            bucket.open(kind)
