"""Which sessions are open, and how many a principal and a workspace may have."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import Limits, reached
from accord.core.room.lifecycle import SessionCreated, SessionEnded
from accord.engine.cell import Answerer, Outcome
from accord.engine.engine import Engine
from accord.engine.ports import Sealed
from accord.engine.waking import Gists

Key = TypeVar("Key")


class Owner(NamedTuple):
    """Whose a session is."""

    workspace: str
    seat: str


class OpenSessions:
    """Every session that has not ended, by its creator; those under way count already."""

    def __init__(self, engine: Engine, limits: Limits) -> None:
        self.engine = engine
        self.limits = limits
        self.owners: dict[str, Owner] = {}
        self.by_owner: Counter[Owner] = Counter()
        self.by_workspace: Counter[str] = Counter()
        engine.turned.append(self.heard)

    def look(self, gists: Gists) -> None:
        """Take up what the log holds, as a start found it."""
        for stream, gist in gists.items():
            if gist:
                self._open(stream, Owner(*gist))

    def create(self, stream: str, actor: Actor, answer: Answerer | None) -> Answerer | None:
        """A place for one more; raises Refused. What it answers with gives the place back."""
        if stream in self.owners:
            return answer
        owner = Owner(actor.workspace, actor.seat)
        self._check(owner)
        self._open(stream, owner)

        def answered(outcome: Outcome) -> None:
            if outcome.refused is not None or outcome.again:  # it had ended before
                self._close(stream)
            if answer is not None:
                answer(outcome)

        return answered

    def _check(self, owner: Owner) -> None:
        limits = self.limits
        if self.by_owner[owner] >= (most := limits.sessions_per_principal):
            detail = f"{owner.seat} has {most} sessions open; end one first"
            raise reached("sessions_per_principal", most, detail)
        if self.by_workspace[owner.workspace] >= (most := limits.sessions):
            detail = f"The workspace has {most} sessions open; end one first"
            raise reached("sessions", most, detail)

    def heard(self, stream: str, fresh: Sequence[Sealed]) -> None:
        """A session that ended makes room; one that another process opened takes some."""
        for sealed in fresh:
            event = sealed.record.event
            if isinstance(event, SessionEnded):
                self._close(stream)
            elif isinstance(event, SessionCreated):
                self._open(stream, Owner(event.workspace, event.creator))

    def _open(self, stream: str, owner: Owner) -> None:
        if stream not in self.owners:
            self.owners[stream] = owner
            self.by_owner[owner] += 1
            self.by_workspace[owner.workspace] += 1

    def _close(self, stream: str) -> None:
        owner = self.owners.pop(stream, None)
        if owner is not None:
            less(self.by_owner, owner)
            less(self.by_workspace, owner.workspace)


def less(count: Counter[Key], key: Key) -> None:
    """One less; what is none is not kept."""
    count[key] -= 1
    if not count[key]:
        del count[key]
