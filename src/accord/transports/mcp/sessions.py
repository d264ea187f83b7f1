"""Sessions of the older revisions: each belongs to one principal, is counted, and ends unused.

The fast path asks `is_usable`. Requests that go on to the SDK are refused there if they come from
another principal than the one that `sdk_app.sdk_user` gave it when the session began.
"""

from collections import Counter
from collections.abc import Callable

Principal = tuple[str, str]

MAX_SESSIONS = 1000
MAX_SESSIONS_PER_PRINCIPAL = 64
IDLE_S = 1800.0


class McpSession:
    """An MCP session of an older revision, and whose it is."""

    __slots__ = ("last_used", "open_requests", "principal")

    def __init__(self, principal: Principal, now: float) -> None:
        self.principal = principal
        self.last_used = now
        self.open_requests = 0


class McpSessions:
    """The open sessions by id."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.by_id: dict[bytes, McpSession] = {}
        self.counts: Counter[Principal] = Counter()

    def is_usable(self, id: bytes, principal: Principal) -> bool:
        """Whether this principal has such a session; using it keeps it open."""
        session = self.by_id.get(id)
        if session is None or session.principal != principal:
            return False
        session.last_used = self.now()
        return True

    def opened(self, id: bytes, principal: Principal) -> None:
        """Remember a session that the SDK opened."""
        self.by_id[id] = McpSession(principal, self.now())
        self.counts[principal] += 1

    def closed(self, id: bytes) -> None:
        """Forget a session."""
        session = self.by_id.pop(id, None)
        if session is not None:
            self.counts -= Counter([session.principal])

    def surplus_of(self, principal: Principal) -> list[bytes]:
        """The least recently used sessions to end before this principal opens another one."""
        excess = self.counts[principal] - MAX_SESSIONS_PER_PRINCIPAL + 1
        if excess <= 0:
            return []
        own = [id for id, session in self.by_id.items() if session.principal == principal]
        return sorted(own, key=lambda id: self.by_id[id].last_used)[:excess]

    def idle(self) -> list[bytes]:
        """Sessions that were not used for too long; an open stream counts as use."""
        before = self.now() - IDLE_S
        return [
            id
            for id, session in self.by_id.items()
            if session.last_used < before and not session.open_requests
        ]

    def principal_of(self, id: bytes) -> Principal | None:
        """Whose session it is."""
        session = self.by_id.get(id)
        return session.principal if session else None
