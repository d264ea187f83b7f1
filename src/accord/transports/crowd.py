"""How many connections a principal has."""

from collections import Counter
from typing import Generic, TypeVar

from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import reached

Guest = TypeVar("Guest")
NAME = "connections_per_principal"


class Crowd(Generic[Guest]):
    """Everybody who is connected, counted by who they are."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.here: dict[Guest, tuple[str, str]] = {}
        self.count: Counter[tuple[str, str]] = Counter()

    def check(self, actor: Actor) -> None:
        """Refuse one more where there are too many."""
        if self.count[actor.workspace, actor.seat] >= self.most:
            detail = f"{actor.seat} has {self.most} connections; close one first ({NAME})"
            raise reached(NAME, self.most, detail, retry_after_ms=1000)

    def enter(self, guest: Guest, actor: Actor) -> None:
        """One more; raises Refused."""
        if guest not in self.here:
            self.check(actor)
            self.here[guest] = actor.workspace, actor.seat
            self.count[self.here[guest]] += 1

    def size(self, guest: Guest) -> int:
        """How many connections whoever this is has."""
        who = self.here.get(guest)
        return self.count[who] if who is not None else 1

    def leave(self, guest: Guest) -> None:
        """One less."""
        who = self.here.pop(guest, None)
        if who is not None:
            self.count[who] -= 1
            if not self.count[who]:
                del self.count[who]
