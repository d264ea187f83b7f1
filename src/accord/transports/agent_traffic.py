"""When each agent was last heard of, by anything that it sent (UNI-22); in memory alone.

Heartbeats are not counted: a program that idles sends them too, and the registry keeps them.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from accord.core.attention.runtimes import RuntimeStatus
from accord.core.attention.state import Seat
from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Instant
from accord.core.kernel.role_permissions import Kind

MAX_SEATS = 100_000
# As a session counts its members' silence by default.
ACTIVE_MS, IDLE_MS = 120_000, 300_000


class AgentTraffic:
    """Asked to note every authenticated request, so it does little."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._seen: OrderedDict[Seat, Instant] = OrderedDict()

    def note(self, actor: Actor) -> None:
        """The actor sent something; people are not followed."""
        if actor.kind is not Kind.AGENT:
            return
        seat = Seat(actor.workspace, actor.principal)
        self._seen[seat] = self._now()
        if len(self._seen) > MAX_SEATS:
            self._seen.popitem(last=False)

    def last_seen(self, seat: Seat) -> Instant | None:
        """When it was last heard of since this server started."""
        return self._seen.get(seat)

    def status(self, seat: Seat) -> RuntimeStatus:
        """What its requests say about it."""
        at = self._seen.get(seat)
        if at is None or (silent := self._now() - at) >= IDLE_MS:
            return RuntimeStatus.OFFLINE
        return RuntimeStatus.ACTIVE if silent < ACTIVE_MS else RuntimeStatus.IDLE

    def seats_in(self, workspace: str) -> Iterator[Seat]:
        """Every agent of a workspace that was heard of."""
        return (seat for seat in self._seen if seat.workspace == workspace)
