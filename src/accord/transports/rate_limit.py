"""Rate limits per participant: messages per second, and bytes per second for streams."""

from collections import OrderedDict

from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Reason, Refused

MIB = 1 << 20
DEFAULT_LIMITS = Limits()
# A sender with more debt than this is not even decoded, unless the message is short.
MAX_DEBT_BYTES = 4 * MIB
SHORT_MESSAGE_BYTES = 4096
# A burst is this many seconds' worth of messages: 1,000 at the default of 200 per second.
BURST_SECONDS = 5
# Chunks are limited by bytes only.
CHUNK_TYPES = frozenset({"response.chunk", "thinking.chunk", "tool.output"})
# OPEN-45: stopping must work even for a sender over its limit, so it has a bucket of its own.
STOP_TYPES = frozenset({"interrupt.raise", "gate.reject", "tool.reject", "session.leave"})
QUOTED_STOP_TYPES = tuple(f'"{kind}"'.encode() for kind in sorted(STOP_TYPES))
QUOTED_EXEMPT_TYPES = (*QUOTED_STOP_TYPES, *(f'"{kind}"'.encode() for kind in sorted(CHUNK_TYPES)))
RATE_LIMIT_NAME = "rate_limit"
# A session that is not in memory must be loaded: its first message costs this share of a burst
# extra, three messages at the default rate.
STREAM_LOAD_BURST_SHARE = 0.003
# Byte equivalents of a message that costs more than its bytes.
STREAM_LOAD_BYTES = 64 << 10
REFUSAL_CHARGE_BYTES = 4 << 10
# Some input costs a hundred times more CPU per byte, for example numbers at the edge of what can be
# represented. Decoding beyond the free time is charged as bytes.
FREE_WORK_S = 0.05
WORK_BYTES_PER_SECOND = 32 << 20
STOPS_PER_SECOND = 20.0
STOP_BURST = 100.0
MAX_BUCKETS = 10_000


class Bucket:
    """A token bucket: what one participant may still send."""

    __slots__ = (
        "burst_bytes",
        "bytes_left",
        "bytes_per_second",
        "messages_left",
        "messages_per_second",
        "refilled_at",
        "stops_left",
        "stops_refilled_at",
    )

    def __init__(self, rate: float, now: float, limits: Limits = DEFAULT_LIMITS) -> None:
        self.messages_per_second = rate
        self.bytes_per_second, self.burst_bytes = limits.stream_bytes, limits.stream_burst
        self.messages_left = rate * BURST_SECONDS
        self.bytes_left = float(self.burst_bytes)
        self.refilled_at = now
        self.stops_left = STOP_BURST
        self.stops_refilled_at = now

    def scale_to(self, rate: float, limits: Limits) -> None:
        """Refill at other rates from now on."""
        self.messages_per_second = rate
        self.bytes_per_second, self.burst_bytes = limits.stream_bytes, limits.stream_burst

    def charge_bytes(self, size: int, now: float) -> None:
        """Refill and charge received bytes.

        Raises Refused when the message should not be decoded.
        """
        elapsed = now - self.refilled_at
        self.refilled_at = now
        self.messages_left = min(
            self.messages_left + elapsed * self.messages_per_second,
            self.messages_per_second * BURST_SECONDS,
        )
        left = min(self.bytes_left + elapsed * self.bytes_per_second, self.burst_bytes)
        if left < -MAX_DEBT_BYTES and size > SHORT_MESSAGE_BYTES:
            self.bytes_left = left
            raise self.rate_refusal(-left / self.bytes_per_second, "stream_bytes")
        self.bytes_left = left - size

    def can_afford(self, size: int, now: float) -> bool:
        """Whether this many bytes of chunks are within the limit without checking each message."""
        self.charge_bytes(0, now)
        return not self.is_exhausted and self.bytes_left >= size

    @property
    def is_exhausted(self) -> bool:
        """Whether most messages would be refused now."""
        return self.messages_left < 1 or self.bytes_left < 0

    def precheck(self, data: bytes) -> None:
        """Refuse before decoding what will be over the limit whatever its type is."""
        when_exhausted = QUOTED_STOP_TYPES if len(data) <= SHORT_MESSAGE_BYTES else ()
        exempt = QUOTED_EXEMPT_TYPES if self.bytes_left >= 0 else when_exhausted
        if not any(name in data for name in exempt):
            self.charge_message("", 0)

    def charge_message(self, kind: str, size: int) -> None:
        """Charge a decoded message whose bytes are charged already.

        Raises Refused over the limit.
        """
        missing, limit = -self.bytes_left / self.bytes_per_second, "stream_bytes"
        if kind in STOP_TYPES:
            self._charge_stop(missing if size > SHORT_MESSAGE_BYTES else 0.0)
            return
        if (
            kind not in CHUNK_TYPES
            and (wait_for_one := (1 - self.messages_left) / self.messages_per_second) > missing
        ):
            missing, limit = wait_for_one, RATE_LIMIT_NAME
        if missing > 0:
            raise self.rate_refusal(missing, limit)
        if kind not in CHUNK_TYPES:
            self.messages_left -= 1

    def charge_stream_load(self, kind: str) -> None:
        """Charge extra for a message to a session that had to be loaded."""
        size = STREAM_LOAD_BYTES if kind in CHUNK_TYPES else 0
        self._charge(int(STREAM_LOAD_BURST_SHARE * self.messages_per_second * BURST_SECONDS), size)

    def charge_refusal(self, kind: str) -> None:
        """Charge for a refusal: the message had no effect but cost a response."""
        self._charge(0, REFUSAL_CHARGE_BYTES if kind in CHUNK_TYPES else 0)

    def charge_work_time(self, seconds: float) -> None:
        """Charge for the CPU time that decoding took."""
        if seconds > FREE_WORK_S:
            self._charge(0, int(seconds * WORK_BYTES_PER_SECOND))

    def _charge(self, messages: int, size: int) -> None:
        """Charge up to about a second's worth of debt; never add credit."""
        self.messages_left = min(
            self.messages_left, max(self.messages_left - messages, -self.messages_per_second)
        )
        self.bytes_left = min(self.bytes_left, max(self.bytes_left - size, -float(MAX_DEBT_BYTES)))

    def _charge_stop(self, missing: float) -> None:
        elapsed, self.stops_refilled_at = (
            self.refilled_at - self.stops_refilled_at,
            self.refilled_at,
        )
        self.stops_left = min(self.stops_left + elapsed * STOPS_PER_SECOND, STOP_BURST)
        missing = max(missing, (1 - self.stops_left) / STOPS_PER_SECOND)
        if missing > 0:
            self._charge(1, 0)
            raise self.rate_refusal(missing, RATE_LIMIT_NAME)
        self.stops_left -= 1

    def rate_refusal(self, missing: float, limit: str) -> Refused:
        """The refusal, with the time to wait."""
        wait = max(1, int(missing * 1000))
        maximum = self.messages_per_second if limit == RATE_LIMIT_NAME else self.bytes_per_second
        detail = (
            f"Too fast: at most {self.messages_per_second:g} messages and "
            f"{self.bytes_per_second} bytes per second; wait {wait} ms"
        )
        return Refused(
            Reason.TOO_MANY, detail, {"retry_after_ms": wait, "limit": limit, "most": maximum}
        )


def is_rate_refusal(refusal: Refused) -> bool:
    """Whether the sender only exceeded its message rate."""
    return (refusal.details or {}).get("limit") == RATE_LIMIT_NAME


class Buckets:
    """One bucket per participant, shared by all its connections.

    The least recently used is dropped.
    """

    def __init__(self, rate: float | None, limits: Limits = DEFAULT_LIMITS) -> None:
        self.rate = rate
        self.limits = limits
        self._whole = rate, limits
        self.by_principal: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    def set_share(self, share: float) -> None:
        """Allow this share of the limits here; other servers allow the rest."""
        rate, limits = self._whole
        if rate is None:
            return
        self.rate = rate * share
        self.limits = replace(
            limits,
            stream_bytes=int(limits.stream_bytes * share),
            stream_burst=int(limits.stream_burst * share),
        )
        for bucket in self.by_principal.values():
            bucket.scale_to(self.rate, self.limits)

    def new_bucket(self, now: float) -> Bucket | None:
        """A bucket for a connection that has not signed in; None without a rate limit."""
        return None if self.rate is None else Bucket(self.rate, now, self.limits)

    def bucket_of(self, actor: Actor, now: float) -> Bucket | None:
        """The participant's bucket; None without a rate limit."""
        if self.rate is None:
            return None
        key = actor.workspace, actor.principal
        bucket = self.by_principal.get(key) or self.by_principal.setdefault(
            key, Bucket(self.rate, now, self.limits)
        )
        self.by_principal.move_to_end(key)
        if len(self.by_principal) > MAX_BUCKETS:
            self.by_principal.popitem(last=False)
        return bucket

    def charge_stream_load(self, actor: Actor, kind: str) -> None:
        """Charge extra for a message to a session that must be loaded."""
        bucket = self.by_principal.get((actor.workspace, actor.principal))
        if bucket is not None:
            bucket.charge_stream_load(kind)
