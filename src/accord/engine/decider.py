"""Deciding: what a message leads to, as far as is known before anything is committed."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from accord.core.kernel.authority import Kind
from accord.core.kernel.log import (
    Ask,
    Body,
    Context,
    Effect,
    Event,
    Fact,
    Instant,
    Lifetime,
    Message,
    Pieces,
    Record,
    stay,
)
from accord.core.kernel.refusal import Refused, Why
from accord.engine import proven
from accord.engine.cell import Asked, Cell, Outcome
from accord.engine.flow import Flow
from accord.engine.opener import unreadable
from accord.engine.ports import Sealed, StoreError
from accord.engine.stamp import stamp, stamp_one

if TYPE_CHECKING:
    from accord.engine.engine import Engine

log = logging.getLogger("accord.engine")

# Looking a member of an enum up is slow, and these are asked for with every message.
SERVER, SIGNAL = Kind.SYSTEM, Lifetime.SIGNAL
NOTHING_KNOWN: Mapping[str, Record] = {}


class _LookUp(Exception):  # noqa: N818 - a detour, not a fault
    """Deciding needs records that are not at hand."""

    def __init__(self, ids: tuple[str, ...]) -> None:
        super().__init__()
        self.ids = ids


class Decider:
    """Takes messages one by one, ahead of the commit; what comes of each is posted."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine

    def take(self, cell: Cell, asked: Asked) -> None:
        """Decide this message; whatever happens, it is answered."""
        message = asked.message
        flow = cell.flows.get(message.ref) if message.body.flows else None
        try:
            now = self.engine.clock.now() + cell.ahead
            if flow is not None and flow.bears(cell, asked):
                sealed = self.go_on(cell, flow, message, now)
                self.engine.committer.post(cell, Outcome(asked, (sealed,)))
            else:
                self._decide(cell, asked, now)
        except Refused as no:
            if self._may_be_old(cell, asked):
                self._detour(cell, asked, (asked.message.id,))
            else:
                self.engine.committer.post(cell, Outcome(asked, refused=no))
                self.engine.pulse.noticed(cell, asked.actor)
        except _LookUp as wanted:
            self._detour(cell, asked, wanted.ids)
        except Exception:
            about = {"stream": cell.stream, "type": asked.message.body.type}
            log.exception("decide.failed", extra=about)
            sorry = Refused(Why.INTERNAL, "Something went wrong here; nothing was changed")
            self.engine.committer.post(cell, Outcome(asked, refused=sorry))

    def _may_be_old(self, cell: Cell, asked: Asked) -> bool:
        """Whether what is refused could be a retry from before the window (OPEN-36)."""
        id = asked.message.id
        known = id in cell.index or id in asked.found or asked.actor.kind is SERVER
        return not known and cell.base.version > len(cell.window)

    def _detour(self, cell: Cell, asked: Asked, ids: tuple[str, ...]) -> None:
        """Look these up, then take the message again; others wait behind it."""
        cell.queue.appendleft(asked)
        self.engine.opener.hold(cell, self._look_up(cell, asked, ids))

    def _decide(self, cell: Cell, asked: Asked, now: Instant) -> None:
        message, actor = asked.message, asked.actor
        before = cell.index.get(message.id) or asked.found.get(message.id)
        if before is not None:
            self._repeat(cell, asked, before)
            return
        seat = actor.seat
        if message.sender != seat and actor.kind is not SERVER:
            detail = f"You are {seat}; the sender says {message.sender}"
            raise Refused(Why.CLAIM_MISMATCH, detail)
        engine = self.engine
        asked.at = at = max(now, cell.place.at)
        facts = self._weigh(cell, asked)
        cell.seen[seat] = at
        if seat in cell.quiet:  # that they are back is on record before what they say
            engine.pulse.heard(cell, seat)
            asked.at = max(at, cell.place.at)
        if len(facts) == 1 and isinstance(event := facts[0], Event):
            outcome = Outcome(asked, (stamp_one(engine.codec, cell, asked, event),))
        else:
            outcome = self._several(cell, asked, facts)
        engine.committer.post(cell, outcome)

    def go_on(self, cell: Cell, flow: Flow, message: Message, now: Instant) -> Sealed:
        """The same comes of this piece as of the one before."""
        place = cell.place
        record = flow.record(cell.stream, place, message, max(now, place.at))
        sealed = self.engine.codec.seal(record)
        cell.seen[record.actor] = place.at = record.at
        place.version, place.seq = record.version, record.seq
        cell.made.append(sealed)
        cell.index[record.id] = sealed
        return sealed

    def run_on(self, cell: Cell, flow: Flow, pieces: Pieces, now: Instant) -> Sequence[Sealed]:
        """The same for many; what that costs once is more than one alone costs."""
        place = cell.place
        records = flow.records(cell.stream, place, pieces, max(now, place.at))
        sealed = self.engine.codec.seal_alike(records)
        last = records[-1]
        cell.seen[last.actor] = place.at = last.at
        place.version, place.seq = last.version, last.seq
        cell.made += sealed
        cell.index.update(zip(pieces.ids, sealed, strict=True))
        return sealed

    def _weigh(self, cell: Cell, asked: Asked) -> tuple[Fact, ...]:
        """What the rules of its context make of a message."""
        message, actor, context = asked.message, asked.actor, cell.context
        ask = Ask(message, actor, asked.at, NOTHING_KNOWN, self.engine.house)
        state, ref, body = cell.place.state, message.ref, message.body
        context.admit(state, ask)
        vouched = ref is None or context.knows(state, ref, actor.seat)
        if message.causal_refs or body.names_others or not vouched:
            ask.known = self._known(cell, asked)
        facts = tuple(context.decide[type(body)](state, ask, body))
        first = facts[0] if body.flows and len(facts) == 1 else None
        if first is not None and leaves_no_mark(first, body, context):
            cell.note_flow(message, actor, first)
        return facts

    def _several(self, cell: Cell, asked: Asked, facts: tuple[Fact, ...]) -> Outcome:
        """What comes of a message that leads to anything but one event."""
        events = [fact for fact in facts if isinstance(fact, Event)]
        says = tuple(fact for fact in facts if isinstance(fact, Effect))
        if says and not events and asked.message.body.lifetime is SIGNAL:
            cell.note_signal(asked.message)
        return Outcome(asked, stamp(self.engine.codec, cell, asked, events), says)

    def _known(self, cell: Cell, asked: Asked) -> Mapping[str, Record]:
        """The records a message cites; each must be here and visible to its sender (OPEN-35)."""
        message, seat = asked.message, asked.actor.seat
        if message.body.refs_freely:
            return NOTHING_KNOWN
        cited = set(message.body.cites())
        named = {*message.causal_refs, *((message.ref,) if message.ref else ())}
        state, knows = cell.place.state, cell.context.knows
        vouched = {id for id in named if cell.signalled(id, message.fork) or knows(state, id, seat)}
        found: dict[str, Record] = {}
        missing: list[str] = []
        for name in cited | (named - vouched):
            sealed = cell.index.get(name) or asked.found.get(name)
            if sealed is None or not visible(cell, sealed, seat):
                missing.append(name)
            else:
                found[name] = sealed.record
        if missing:
            unseen = tuple(n for n in missing if n not in asked.found and n not in cell.index)
            if unseen:
                raise _LookUp(unseen)
            detail = f"No such message here: {', '.join(sorted(missing))}"
            raise Refused(Why.MALFORMED, detail, {"unknown": sorted(missing)})
        return found

    async def _look_up(self, cell: Cell, asked: Asked, ids: tuple[str, ...]) -> None:
        try:
            here = await self.find(cell, ids)
        except StoreError as error:
            cell.queue.remove(asked)
            self.engine.committer.post(cell, Outcome(asked, refused=unreadable(error)))
        else:
            asked.found = {**asked.found, **dict.fromkeys(ids), **here}

    async def find(self, cell: Cell, ids: Sequence[str]) -> dict[str, Sealed]:
        """Those records of the stream that have one of these ids, from the store."""
        rows = await proven.find(self.engine.events, cell.stream, ids)
        return {row.id: self.engine.unsealed(row) for row in rows}

    def _repeat(self, cell: Cell, asked: Asked, before: Sealed) -> None:
        """OPEN-36: a retry gets the first outcome; the same id for something else is refused."""
        record, body = before.record, asked.message.body
        state = cell.place.state
        same_sender = record.actor == asked.actor.seat and cell.context.insider(state, asked.actor)
        if not same_sender:  # whoever is not here is told that, and nothing of the id
            now = self.engine.clock.now()
            ask = Ask(asked.message, asked.actor, now, NOTHING_KNOWN, self.engine.house)
            cell.context.admit(state, ask)
        if not same_sender or (record.said is not None and not body.repeats(record.said)):
            detail = f"The id {asked.message.id} was used for another message"
            raise Refused(Why.KEY_REUSED, detail)
        first = [s for s in cell.index.values() if s.record.cause == record.cause]
        first.sort(key=lambda sealed: sealed.record.version)
        again = tuple(s for s in first if visible(cell, s, asked.actor.seat)) or (before,)
        self.engine.committer.post(cell, Outcome(asked, again, again=True))
        self.engine.pulse.noticed(cell, asked.actor)


def leaves_no_mark(fact: Fact, body: Body, context: Context[Any]) -> TypeGuard[Event]:
    """Whether all that came of a message is that it was said."""
    said = getattr(fact, "said", None) is body
    return said and isinstance(fact, Event) and context.evolve[type(fact)] is stay


def visible(cell: Cell, sealed: Sealed, seat: str) -> bool:
    """Whether this seat may see the record at all, as far as is decided."""
    to = cell.context.audience(cell.place.state, sealed.record)
    return sealed.record.said is not None and (to is None or seat in to)
