"""Connections: who hears a room, what they missed, and when they are gone."""

import logging
from collections.abc import Container, Iterable, Iterator
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from accord.core.kernel.actor import PRESENCE
from accord.core.kernel.authority import May
from accord.core.kernel.log import (
    Body,
    Door,
    Effect,
    Forget,
    Recall,
    Record,
    Say,
    Seats,
    Stash,
    Tell,
)
from accord.core.kernel.refusal import Refused, Why
from accord.engine import proven
from accord.engine.cell import Asked, Cell, Outcome, Peer
from accord.engine.opener import unreadable
from accord.engine.ports import DamagedError, Sealed, StoreError

if TYPE_CHECKING:
    from accord.engine.engine import Engine

log = logging.getLogger("accord.engine")

FIRST_PAGE, PAGE = 50, 500
# More than this is not written in one go.
LARGEST_WRITE = 1 << 20
# Looking a member of an enum up takes longer than all else a record costs here.
IN, OUT = Door.IN, Door.OUT
NOBODY: dict[Peer, None] = {}
# Refusals of what the server says itself that pass by themselves.
PASSING = frozenset({Why.UNAVAILABLE, Why.TOO_MANY})


# Bytes for a room, and for whom they are (None: everybody).
Line = tuple[bytes, Seats | None]
SAID_ALREADY: Line = (b"", frozenset())


class Entry(NamedTuple):
    """Somebody coming in, who has seen everything up to `since`; None: nothing.

    Where only the store knows how long ago that was, `ref` names the last message seen.
    """

    peer: Peer
    since: int | None
    ref: str | None = None
    fresh: bool = False  # never here before, as far as it says
    asked: Asked | None = None


class Peers:
    """Which connections hear which stream.

    `rooms` are those that hear it live; `arriving` are still being told what they missed, as far
    as the version at which they left again, if they did.
    """

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.rooms: dict[str, dict[Peer, None]] = {}
        self.arriving: dict[str, dict[Peer, int | None]] = {}
        self.places: dict[Peer, set[str]] = {}
        self.unsaid: set[tuple[str, str]] = set()

    # Coming and going

    def hears(self, stream: str, peer: Peer) -> bool:
        """Whether this connection is in the room."""
        return peer in self.rooms.get(stream, ())

    def listened(self, stream: str) -> bool:
        """Whether any connection is in the room or on its way in."""
        return stream in self.rooms or stream in self.arriving

    def connected(self, stream: str) -> list[Peer]:
        """Every connection that is in the room or on its way in."""
        return [*self.rooms.get(stream, ()), *self.arriving.get(stream, ())]

    def others(self, stream: str, seat: str, runtime: str) -> bool:
        """Whether another runtime of that seat is in the room or on its way in."""
        return any(p.seat == seat and p.runtime != runtime for p in self._on_the_way(stream))

    def attach(self, stream: str, peer: Peer) -> None:
        """From now on it hears the room."""
        self._leave_hall(stream, peer)
        self.rooms.setdefault(stream, {})[peer] = None
        self.places.setdefault(peer, set()).add(stream)
        self.engine.pulse.start(stream, peer.seat)

    def listen(self, cell: Cell, peer: Peer, since: int | None) -> None:
        """A member listens without a new join, behind the version `since`; None: from afresh."""
        if self._let_in(cell, Entry(peer, since, fresh=since is None)):
            self._there_again(cell, peer.seat)

    def settle(self, cell: Cell, peer: Peer) -> None:
        """A member who reads for itself is there again, without a new join."""
        self.attach(cell.stream, peer)
        self._there_again(cell, peer.seat)

    def _there_again(self, cell: Cell, seat: str) -> None:
        body = cell.context.back(cell.base.state, seat, self.engine.clock.now())
        if body is not None:
            answer = partial(self._let_back, cell.stream, seat)
            self.engine.tell(cell.stream, body, PRESENCE, answer)

    def detach(self, stream: str, peer: Peer) -> None:
        """It hears the room no more."""
        self._silence(stream, peer)
        self.places.get(peer, set()).discard(stream)

    def cut_off(self, stream: str, seat: str | None = None) -> None:
        """They could miss something: they come back and are told where they left off."""
        for peer in self.connected(stream):
            if seat is None or peer.seat == seat:
                self._silence(stream, peer)
                peer.close("the session cannot go on now; join again", again=True)

    def disperse(self, stream: str) -> None:
        """Nothing happens there any more; those who are still being told of it are let be."""
        for peer in list(self.rooms.get(stream, ())):
            self.detach(stream, peer)
        self.engine.pulse.scheduler.set(stream, None)

    def _silence(self, stream: str, peer: Peer) -> None:
        here = self.rooms.get(stream, {})
        here.pop(peer, None)
        if not here:
            self.rooms.pop(stream, None)
        self._leave_hall(stream, peer)

    def _leave_hall(self, stream: str, peer: Peer) -> None:
        hall = self.arriving.get(stream, {})
        hall.pop(peer, None)
        if not hall:
            self.arriving.pop(stream, None)

    def _replace(self, stream: str, peer: Peer) -> None:
        """An older connection of the same runtime gives way."""
        for old in self.connected(stream):
            if old is not peer and (old.seat, old.runtime) == (peer.seat, peer.runtime):
                self.detach(stream, old)
                old.close("replaced by a newer connection")

    def gone(self, peer: Peer) -> None:
        """The connection is lost; whoever has no other one is disconnected (OPEN-32)."""
        for stream in self.places.pop(peer, set()):
            self.detach(stream, peer)
            self._left_meanwhile(stream, peer.seat)

    def _left_meanwhile(self, stream: str, seat: str) -> None:
        if not any(peer.seat == seat for peer in self._on_the_way(stream)):
            self.absent(stream, seat)

    def _on_the_way(self, stream: str) -> Iterator[Peer]:
        """Connected ones, and those whose way in is not answered yet."""
        yield from self.rooms.get(stream, ())
        yield from (p for p, left in self.arriving.get(stream, {}).items() if left is None)
        cell = self.engine.cells.get(stream)
        for asked in cell.pending() if cell else ():
            if asked.message.body.needs is May.ENTER and asked.peer and asked.peer.alive:
                yield asked.peer

    def absent(self, stream: str, seat: str) -> None:
        """Put on record that nobody answers for this seat."""
        self.engine.pulse.stop(stream, seat)
        context = self.engine.contexts[stream.partition("/")[0]]
        if context.absent is not None:
            body = context.absent(seat, self.engine.clock.now())
            self.engine.tell(stream, body, PRESENCE, partial(self._recorded, stream, seat))

    def _recorded(self, stream: str, seat: str, outcome: Outcome) -> None:
        if outcome.refused is not None and outcome.refused.why in PASSING:
            self.unsaid.add((stream, seat))

    def say_again(self, stream: str) -> None:
        """The store works again: put on record who was lost meanwhile."""
        due = {each for each in self.unsaid if each[0] == stream}
        self.unsaid -= due
        for _, seat in due:
            self._left_meanwhile(stream, seat)

    # Delivering

    def deliver(self, cell: Cell, outbox: Iterable[Outcome]) -> None:
        """Everything that was decided, to its audience, in one write per connection."""
        lines: list[Line] = []
        entering: dict[Peer, Entry] = {}
        astray: list[Outcome] = []
        here = self.rooms.get(cell.stream, NOBODY)
        for outcome in outbox:
            if outcome.again or outcome.refused is not None:
                astray.append(outcome)
                continue
            if outcome.says:
                self._hold(cell, outcome.says)
            peer = outcome.asked.peer
            if peer is not None and peer not in here:
                self._from_outside(cell, outcome, peer, entering)
            for sealed in outcome.sealed:
                record = sealed.record
                event = record.event
                if (frame := sealed.frame) is not None:
                    plain = record.fork is None and not event.whispers
                    lines.append((frame, record.to) if plain else self._line(cell, sealed, lines))
                if event.door is OUT:
                    self._write(cell.stream, lines)
                    lines = []
                    self._put_out(cell, record, entering)
            if outcome.says:
                said = list(self._said(outcome))
                lines += said
                self._aside(cell.stream, peer, said, entering)
        self._write(cell.stream, lines)
        if entering or astray:
            self._open_doors(cell, entering, astray)

    def _line(self, cell: Cell, sealed: Sealed, before: list[Line]) -> Line:
        """A record's bytes for those who may see it; a secret is whispered behind all `before`."""
        record, frame = sealed.record, sealed.frame or b""
        to = record.to if record.fork is None else cell.context.audience(cell.base.state, record)
        if not record.event.whispers:
            return frame, to
        self._write(cell.stream, before)
        before.clear()
        for peer in list(self.rooms.get(cell.stream, NOBODY)):
            if to is None or peer.seat in to:
                peer.write(peer.join([self._told(cell, sealed, peer)]))
        return SAID_ALREADY

    def _told(self, cell: Cell, sealed: Sealed, peer: Peer) -> bytes:
        """A record as this peer hears it: a secret's value where nobody reads along (PVP 20.3)."""
        record = sealed.record
        if not record.event.whispers or not peer.private:
            return sealed.frame or b""
        key: str = record.said.key  # type: ignore[union-attr]  # what whispers has one
        value = self.engine.vault.value(cell.stream, key)
        return self.engine.codec.whisper(record, value or "")

    def _hold(self, cell: Cell, effects: Iterable[Effect]) -> None:
        """Secrets come and go with what is on record about them."""
        for effect in effects:
            if isinstance(effect, Stash):
                self.engine.vault.stash(cell.stream, effect.key, effect.value)
            elif isinstance(effect, Forget):
                self.engine.vault.forget(cell.stream, effect.key)

    def _said(self, outcome: Outcome) -> Iterator[Line]:
        """What is told and not kept."""
        engine = self.engine
        for said in outcome.says:
            if isinstance(said, Say | Tell):
                id, at = engine.ids(), engine.clock.now()
                yield engine.codec.say(id, at, outcome.asked.message, said), said.to

    def shout(self, stream: str, frame: bytes) -> None:
        """To everybody who is connected, at once."""
        self._write(stream, [(frame, None)])

    def _open_doors(
        self, cell: Cell, entering: dict[Peer, Entry], astray: Iterable[Outcome]
    ) -> None:
        """Let in who comes; who counted on a way in that came to nothing is not there."""
        back: dict[str, Body] = {}
        lost: list[str] = []
        for outcome in astray:
            peer, wants = outcome.asked.peer, outcome.asked.message.body.needs
            if peer is None or wants is not May.ENTER or peer in self.connected(cell.stream):
                continue
            if outcome.again and (body := self._back(cell, outcome, peer.seat)) is not None:
                entering.setdefault(peer, self._entry(cell, outcome.asked, peer))
                back[peer.seat] = body
            elif peer.seat in cell.context.present(cell.base.state):
                lost.append(peer.seat)
        lost += [e.peer.seat for e in entering.values() if not self._let_in(cell, e)]
        for seat, body in back.items():
            answer = partial(self._let_back, cell.stream, seat)
            self.engine.tell(cell.stream, body, PRESENCE, answer)
        for seat in lost:
            self._left_meanwhile(cell.stream, seat)

    def _let_back(self, stream: str, seat: str, outcome: Outcome) -> None:
        if outcome.refused is not None:  # the room would take it for absent
            self.cut_off(stream, seat)

    def _back(self, cell: Cell, outcome: Outcome, seat: str) -> Body | None:
        """A way in that is tried again, on another connection than the first, is a way in."""
        if not any(sealed.record.event.door is IN for sealed in outcome.sealed):
            return None
        return cell.context.back(cell.base.state, seat, self.engine.clock.now())

    def _from_outside(
        self, cell: Cell, outcome: Outcome, peer: Peer, entering: dict[Peer, Entry]
    ) -> None:
        """A sender who is not in the room comes in now, or hears just what came of its message."""
        if peer in entering:
            return
        hall = self.arriving.get(cell.stream, NOBODY)
        comes_in = any(sealed.record.event.door is IN for sealed in outcome.sealed)
        if peer in hall:
            if comes_in:
                hall[peer] = None
        elif comes_in:
            entering[peer] = self._entry(cell, outcome.asked, peer)
        else:
            sealed = [s for s in outcome.sealed if s.frame and cell.may_see(s.record, peer.seat)]
            mine = [self._told(cell, each, peer) for each in sealed]
            if mine:
                peer.write(peer.join(mine))

    def _aside(
        self, stream: str, peer: Peer | None, said: Iterable[Line], entering: Container[Peer]
    ) -> None:
        """The answer to a sender who is neither in the room nor on the way in."""
        if peer is None or peer in entering or peer in self.connected(stream):
            return
        mine = [frame for frame, to in said if to is not None and peer.seat in to]
        if mine:
            peer.write(peer.join(mine))

    def deliver_foreign(self, cell: Cell, fresh: Iterable[Sealed]) -> None:
        """What another process appended."""
        lines: list[Line] = []
        for sealed in fresh:
            if sealed.record.event.hushes:
                # Ours is worth nothing any more; the new one, if any, is held elsewhere.
                self.engine.vault.forget(cell.stream, sealed.record.said.key)  # type: ignore[union-attr]
            if sealed.record.said is not None:
                lines.append(self._line(cell, sealed, lines))
            if sealed.record.event.door is OUT:
                self._write(cell.stream, lines)
                lines = []
                self._put_out(cell, sealed.record, {})
        self._write(cell.stream, lines)

    def _write(self, stream: str, lines: list[Line]) -> None:
        here = self.rooms.get(stream)
        if not here or not lines:
            return
        frames = [frame for frame, to in lines if to is None]
        if len(frames) < len(lines):
            self._write_each(here, lines)
            return
        joined: dict[type[Peer], bytes] = {}
        for peer in list(here):
            kind = type(peer)
            if (data := joined.get(kind)) is None:
                data = joined[kind] = kind.join(frames)
            peer.write(data)

    def _write_each(self, here: Iterable[Peer], lines: list[Line]) -> None:
        for peer in list(here):
            mine = [frame for frame, to in lines if to is None or peer.seat in to]
            if mine:
                peer.write(peer.join(mine))

    def _put_out(self, cell: Cell, record: Record, entering: dict[Peer, Entry]) -> None:
        """Whoever left hears nothing that comes after."""
        seat: str = record.event.seat  # type: ignore[attr-defined]
        hall = self.arriving.get(cell.stream, {})
        for peer in [peer for peer in hall if peer.seat == seat]:
            hall[peer] = record.version
        for peer in [p for p in self.rooms.get(cell.stream, ()) if p.seat == seat]:
            self.detach(cell.stream, peer)
        for peer in [p for p in entering if p.seat == seat]:
            self._let_in(cell, entering.pop(peer), record.version)

    # Catching up

    def _entry(self, cell: Cell, asked: Asked, peer: Peer) -> Entry:
        """Where a joiner left off: behind the message its `ref` names (OPEN-37)."""
        ref = asked.message.ref
        last = (cell.index.get(ref) or asked.found.get(ref)) if ref else None
        asked = copy(asked)  # it is answered now, and may have to be told of a damaged page later
        if last:
            return Entry(peer, last.record.version, asked=asked)
        return Entry(peer, None, ref, ref is None, asked)

    def _let_in(self, cell: Cell, entry: Entry, until: int | None = None) -> bool:
        """Roll call, what was missed, then the room as it goes on; False: it is gone already.

        Who has left again is told all up to the version `until`, and no more.
        """
        stream, peer, since = cell.stream, entry.peer, entry.since
        if not peer.alive:
            return False
        if until is None:
            self.places.setdefault(peer, set()).add(stream)
            self._replace(stream, peer)
        held = cell.window[0].record.version if cell.window else 1
        if since is None and entry.ref is None and held > (whole := self._oldest(cell)):
            # The window is short of what was long.
            entry = entry._replace(since=whole - 1)
        if entry.ref is None and (entry.since is None or entry.since + 1 >= held):
            roll = self._roll_call(cell, peer.seat) if until is None else ()
            stands = self._here_now(cell, entry) if until is None else ()
            frames = [*roll, *self._missed(cell, entry, until), *stands]
            if sum(map(len, frames)) <= LARGEST_WRITE:
                peer.write(peer.join(frames))
                self.engine.tally.replays.add(len(frames))
                if until is None:
                    self.attach(stream, peer)
                return True
            entry = entry._replace(since=held - 1 if entry.since is None else entry.since)
        self.arriving.setdefault(stream, {})[peer] = until
        self.engine.spawn(self._page_in(cell, entry))
        return True

    def _oldest(self, cell: Cell) -> int:
        """The version a window begins with that is as long as it may be."""
        return max(1, cell.base.version - cell.most + 1)

    def _missed(self, cell: Cell, entry: Entry, until: int | None = None) -> Iterator[bytes]:
        since, seat = entry.since or 0, entry.peer.seat
        for sealed in cell.window:
            record = sealed.record
            if record.version <= since or (frame := sealed.frame) is None:
                continue
            if until is not None and record.version > until:
                return
            if cell.may_see(record, seat):
                yield frame

    def _roll_call(self, cell: Cell, seat: str, told: Container[str] = ()) -> Iterator[bytes]:
        """Who and what is here, unless the replay says it anyway."""
        now, room = self.engine.clock.now(), cell.stream.partition("/")[2]
        for said in cell.context.welcome(cell.base.state, seat):
            early = said.secret is None and not said.late
            if early and said.id not in cell.index and said.id not in told:
                yield self.engine.codec.recall(now, room, said)

    def _here_now(self, cell: Cell, entry: Entry) -> Iterator[bytes]:
        """How things stand that the replay does not tell: old context, and secrets' values."""
        engine, room = self.engine, cell.stream.partition("/")[2]
        for said in cell.context.welcome(cell.base.state, entry.peer.seat):
            key = said.secret if entry.peer.private else None
            value = engine.vault.value(cell.stream, key) if key else None
            if value:
                body = engine.codec.whispered(said.body, value)
                again = Recall(engine.ids(), said.sender, body)
                yield engine.codec.recall(engine.clock.now(), room, again, said.id)
            elif said.late and entry.fresh and said.id not in cell.index:
                yield engine.codec.recall(engine.clock.now(), room, said)

    async def _page_in(self, cell: Cell, entry: Entry) -> None:
        """Somebody who was away for long gets it all, page by page, and then the room."""
        try:
            await self._pages(cell, entry)
        except DamagedError as error:
            about = {"stream": cell.stream, "detail": "damaged"}
            log.error("stream.unreadable", extra=about)  # noqa: TRY400 - it says it all
            self.detach(cell.stream, entry.peer)
            self._turn_away(entry, unreadable(error))
        except Exception as error:
            if not isinstance(error, StoreError):
                log.exception("stream.damaged", extra={"stream": cell.stream})
            self._silence(cell.stream, entry.peer)
            entry.peer.close("the history cannot be read now; join again", again=True)

    @staticmethod
    def _turn_away(entry: Entry, no: Refused) -> None:
        """Whoever asked to come in is told why not; whoever only listens hears no more."""
        if entry.asked is None:
            entry.peer.close(no.detail)
        else:
            entry.asked.refuse(no)

    async def _pages(self, cell: Cell, entry: Entry) -> None:
        peer = entry.peer
        at = await self._begin(cell, entry)
        page, told = min(FIRST_PAGE, PAGE), 0
        while (end := self._end(cell, peer)) > at:
            rows = await proven.read(self.engine.events, cell.stream, at, min(page, end - at))
            sealed = [self.engine.codec.unseal(r.stream, r.version, r.body) for r in rows]
            mine = [f for s in sealed if (f := s.frame) and cell.may_see(s.record, peer.seat)]
            if mine and self._end(cell, peer):
                peer.write(peer.join(mine))
            told += len(mine)
            at = rows[-1].version
            size = sum(len(row.body) for row in rows) // len(rows)
            page = min(PAGE, max(1, LARGEST_WRITE // max(1, size)))
            await peer.drained()
        self.engine.tally.replays.add(told)
        hall = self.arriving.get(cell.stream, {})
        if peer in hall and hall[peer] is None:
            if now := list(self._here_now(cell, entry)):
                peer.write(peer.join(now))
            self.attach(cell.stream, peer)
        elif peer in hall:
            self.detach(cell.stream, peer)

    async def _begin(self, cell: Cell, entry: Entry) -> int:
        """Call the roll; the version behind which the pages begin."""
        peer, ref = entry.peer, entry.ref
        here = cell.context.welcome(cell.base.state, peer.seat)
        names = [said.id for said in here if said.id not in cell.index]
        rows = await proven.find(self.engine.events, cell.stream, [*names, *([ref] if ref else [])])
        versions = {row.id: row.version for row in rows}
        at = entry.since or versions.get(ref or "", 0)
        told = {id for id, version in versions.items() if version > at}
        stays = self.arriving.get(cell.stream, {}).get(peer, at) is None
        if stays and (roll := list(self._roll_call(cell, peer.seat, told))):
            peer.write(peer.join(roll))
        return at

    def _end(self, cell: Cell, peer: Peer) -> int:
        """How far an arriving peer is told; 0 when it is gone."""
        hall = self.arriving.get(cell.stream, {})
        if peer not in hall:
            return 0
        return hall[peer] or cell.base.version


def may_see(record: Record, seat: str) -> bool:
    """Whether a record is for this seat."""
    return record.to is None or seat in record.to
