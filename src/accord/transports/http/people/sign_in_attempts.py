"""A limit on failed attempts to sign in, so that codes cannot be guessed at speed."""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from accord.core.kernel.refusal import Reason, Refused

BURST = 10.0
FAILURES_PER_SECOND = 1 / 6
MAX_ADDRESSES = 10_000
IPV4 = 4
# The holder of one IPv6 address has the whole network around it.
IPV6_PREFIX = 64


class FailedAttempts:
    """How many more failures each network address may have; the least recent one is forgotten."""

    def __init__(self, burst: float = BURST, clock: Callable[[], float] = monotonic) -> None:
        self._burst = burst
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def begin(self, address: str) -> None:
        """Count an attempt as failed until it succeeds, so that parallel ones count, too.

        Raises Refused for an address that has failed too often lately, whatever it brings now.
        """
        left = self._left_of(address)
        if left < 1:
            wait = max(1, int((1 - left) / FAILURES_PER_SECOND * 1000))
            raise Refused(
                Reason.TOO_MANY,
                f"Too many failed sign-ins from this address; wait {-(-wait // 1000)} s",
                {"retry_after_ms": wait},
            )
        self._set(address, left - 1)

    def forgive(self, address: str) -> None:
        """The attempt did not fail."""
        self._set(address, min(self._burst, self._left_of(address) + 1))

    def _set(self, address: str, left: float) -> None:
        key = network_of(address)
        self._left[key] = (left, self._clock())
        self._left.move_to_end(key)
        if len(self._left) > MAX_ADDRESSES:
            self._left.popitem(last=False)

    def _left_of(self, address: str) -> float:
        left, at = self._left.get(network_of(address), (self._burst, self._clock()))
        return min(self._burst, left + (self._clock() - at) * FAILURES_PER_SECOND)


def network_of(address: str) -> str:
    """The address itself, or for IPv6 its network."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    mapped = getattr(parsed, "ipv4_mapped", None)
    if parsed.version == IPV4 or mapped is not None:
        return str(mapped or parsed)
    return str(ipaddress.ip_network((parsed, IPV6_PREFIX), strict=False))
