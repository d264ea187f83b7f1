"""What flows: pieces of an answer, of which the next is like the last until something changes."""

from collections.abc import Callable
from itertools import count, repeat
from typing import TYPE_CHECKING, Any

import msgspec

from accord.core.kernel.actor import Actor
from accord.core.kernel.log import Body, Event, Instant, Message, Pieces, Record, Seats

if TYPE_CHECKING:
    from accord.engine.cell import Asked, Cell, Place


class Flow(msgspec.Struct, frozen=True, gc=False):
    """What came of the last piece, and where things stood then.

    While they stand so, the same comes of the next piece: deciding has no other ground.
    """

    state: Any
    actor: Actor
    kind: type[Body]
    fork: str | None  # as the pieces say
    event: Callable[..., Event]
    ref: str | None  # these three as the event says
    to: Seats | None
    into: str | None
    cited: str | None  # and these two as the record does
    within: str | None
    plain: bool  # whether it is in no fork, and nobody comes or goes by it

    @classmethod
    def after(cls, state: Any, message: Message, actor: Actor, event: Event) -> "Flow":
        """What the next piece after this message is compared with."""
        body = message.body
        within = event.fork or (message.fork if body.scoped else None)
        plain = within is None and not event.whispers and event.door is None
        into = (event.ref, event.to, event.fork)
        record = (event.ref or message.ref, within)
        return cls(state, actor, type(body), message.fork, type(event), *into, *record, plain)

    def bears(self, cell: "Cell", asked: "Asked") -> bool:
        """Whether this message is a next piece, and nothing has changed."""
        message, sender = asked.message, asked.message.sender
        return (
            self.state is cell.place.state
            and self.actor is asked.actor
            and self.actor.seat == sender
            and self.kind is type(message.body)
            and self.fork == message.fork
            and not message.causal_refs
            and not asked.found
            and message.id not in cell.index
            and sender not in cell.quiet
        )

    def record(self, stream: str, now: "Place", message: Message, at: Instant) -> Record:
        """A next piece in its place."""
        id, sender, body = message.id, message.sender, message.body
        return Record(
            stream,
            now.version + 1,
            now.seq + 1,
            id,
            at,
            sender,
            id,
            message.ts,
            sender,
            self.event(said=body, ref=self.ref, to=self.to, fork=self.into),
            body,
            self.cited,
            (),
            self.within,
            self.to,
        )

    def records(self, stream: str, now: "Place", pieces: Pieces, at: Instant) -> list[Record]:
        """Next pieces in their places."""
        event, ref, to, into = self.event, self.ref, self.to, self.into
        ids, bodies, sender = pieces.ids, pieces.bodies, pieces.first.sender
        return list(
            map(
                Record,
                repeat(stream),
                count(now.version + 1),
                count(now.seq + 1),
                ids,
                repeat(at),
                repeat(sender),
                ids,
                pieces.times,
                repeat(sender),
                [event(said=body, ref=ref, to=to, fork=into) for body in bodies],
                bodies,
                repeat(self.cited),
                repeat(()),
                repeat(self.within),
                repeat(to),
            )
        )
