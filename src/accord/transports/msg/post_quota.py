"""The quota of posts: so many messages a minute for each agent, in all threads together."""

from collections import OrderedDict
from collections.abc import Callable

from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import limit_exceeded
from accord.core.kernel.refusal import Refused

MINUTE_MS = 60_000
MAX_AGENTS = 10_000


class PostQuota:
    """A token bucket for each agent; the least recently used is dropped."""

    def __init__(self, per_minute: int, now: Callable[[], int], *, is_limited: bool) -> None:
        self.per_minute = per_minute
        self.now = now
        self.is_limited = is_limited
        self._left: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()

    def take(self, actor: Actor) -> bool:
        """Take one post; False if none is left."""
        if not self.is_limited:
            return True
        left, now = self._refilled(actor)
        taken = left >= 1
        self._store(actor, left - 1 if taken else left, now)
        return taken

    def give_back(self, actor: Actor) -> None:
        """Return one post that stored nothing: a retry, or a refusal."""
        if self.is_limited:
            left, now = self._refilled(actor)
            self._store(actor, left + 1, now)

    def refusal_for(self, actor: Actor) -> Refused:
        """The refusal, with the time to wait for one post."""
        left, _ = self._refilled(actor)
        wait = max(1, int((1 - left) * MINUTE_MS / self.per_minute))
        detail = f"Too many messages: at most {self.per_minute} a minute; wait {wait} ms"
        return limit_exceeded("thread_posts", self.per_minute, detail, retry_after_ms=wait)

    def _refilled(self, actor: Actor) -> tuple[float, int]:
        now = self.now()
        left, at = self._left.get((actor.workspace, actor.principal), (self.per_minute, now))
        gained = max(0, now - at) * self.per_minute / MINUTE_MS
        return min(left + gained, float(self.per_minute)), now

    def _store(self, actor: Actor, left: float, now: int) -> None:
        key = actor.workspace, actor.principal
        self._left[key] = (left, now)
        self._left.move_to_end(key)
        if len(self._left) > MAX_AGENTS:
            self._left.popitem(last=False)
