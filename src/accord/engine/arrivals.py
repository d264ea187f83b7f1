"""Arrivals: whoever comes in is told what they missed, at once or by pages, and hears the room."""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from accord.core.kernel.actor import PRESENCE
from accord.core.kernel.authority import May
from accord.core.kernel.log import Body, Door
from accord.core.kernel.refusal import Refused
from accord.engine import proven
from accord.engine.cell import Cell, Outcome, Peer
from accord.engine.opener import unreadable
from accord.engine.ports import DamagedError, StoreError
from accord.engine.replay import Entry, Replay, entry_of

if TYPE_CHECKING:
    from accord.engine.engine import Engine

log = logging.getLogger("accord.engine")

FIRST_PAGE, PAGE = 50, 500
# More than this is not written in one go.
LARGEST_WRITE = 1 << 20
NOBODY: Mapping[Peer, int | None] = {}


class Arrivals:
    """Which connections are on their way into which stream.

    A hall holds those who are still being told what they missed, as far as the version at which
    they left again, if they did.
    """

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.replay = Replay(engine)
        self.halls: dict[str, dict[Peer, int | None]] = {}

    def leave(self, stream: str, peer: Peer) -> None:
        """It waits no more, whether it is in now or gone."""
        hall = self.halls.get(stream, {})
        hall.pop(peer, None)
        if not hall:
            self.halls.pop(stream, None)

    # Without a new join

    def listen(self, cell: Cell, peer: Peer, since: int | None) -> None:
        """A member listens behind the version `since`; None: from afresh."""
        if self.let_in(cell, Entry(peer, since, fresh=since is None)):
            self._there_again(cell, peer.seat)

    def settle(self, cell: Cell, peer: Peer) -> None:
        """A member who reads for itself is there again."""
        self.engine.peers.attach(cell.stream, peer)
        self._there_again(cell, peer.seat)

    def _there_again(self, cell: Cell, seat: str) -> None:
        body = cell.context.back(cell.base.state, seat, self.engine.clock.now())
        if body is not None:
            self._say_back(cell.stream, seat, body)

    # With one

    def open_doors(
        self, cell: Cell, entering: dict[Peer, Entry], astray: Iterable[Outcome]
    ) -> None:
        """Let in who comes; who counted on a way in that came to nothing is not there."""
        peers = self.engine.peers
        back: dict[str, Body] = {}
        lost: list[str] = []
        for outcome in astray:
            peer, wants = outcome.asked.peer, outcome.asked.message.body.needs
            if peer is None or wants is not May.ENTER or peer in peers.connected(cell.stream):
                continue
            if outcome.again and (body := self._back(cell, outcome, peer.seat)) is not None:
                entering.setdefault(peer, entry_of(cell, outcome.asked, peer))
                back[peer.seat] = body
            elif peer.seat in cell.context.present(cell.base.state):
                lost.append(peer.seat)
        lost += [e.peer.seat for e in entering.values() if not self.let_in(cell, e)]
        for seat, body in back.items():
            self._say_back(cell.stream, seat, body)
        for seat in lost:
            peers.left_meanwhile(cell.stream, seat)

    def _back(self, cell: Cell, outcome: Outcome, seat: str) -> Body | None:
        """A way in that is tried again, on another connection than the first, is a way in."""
        if not any(sealed.record.event.door is Door.IN for sealed in outcome.sealed):
            return None
        return cell.context.back(cell.base.state, seat, self.engine.clock.now())

    def _say_back(self, stream: str, seat: str, body: Body) -> None:
        self.engine.tell(stream, body, PRESENCE, partial(self._let_back, stream, seat))

    def _let_back(self, stream: str, seat: str, outcome: Outcome) -> None:
        if outcome.refused is not None:  # the room would take it for absent
            self.engine.peers.cut_off(stream, seat)

    # Catching up

    def let_in(self, cell: Cell, entry: Entry, until: int | None = None) -> bool:
        """Roll call, what was missed, then the room as it goes on; False: it is gone already.

        Who has left again is told all up to the version `until`, and no more.
        """
        stream, peer, since = cell.stream, entry.peer, entry.since
        if not peer.alive:
            return False
        if until is None:
            self.engine.peers.expect(stream, peer)
        held = cell.window[0].record.version if cell.window else 1
        if since is None and entry.ref is None and held > (whole := oldest(cell)):
            # The window is short of what was long.
            entry = entry._replace(since=whole - 1)
        if entry.ref is None and (entry.since is None or entry.since + 1 >= held):
            frames = self._at_once(cell, entry, until)
            if sum(map(len, frames)) <= LARGEST_WRITE:
                peer.write(peer.join(frames))
                self.engine.tally.replays.add(len(frames))
                if until is None:
                    self.engine.peers.attach(stream, peer)
                return True
            entry = entry._replace(since=held - 1 if entry.since is None else entry.since)
        self.halls.setdefault(stream, {})[peer] = until
        self.engine.spawn(self._page_in(cell, entry))
        return True

    def _at_once(self, cell: Cell, entry: Entry, until: int | None) -> list[bytes]:
        missed = self.replay.missed(cell, entry, until)
        if until is not None:
            return list(missed)
        roll = self.replay.roll_call(cell, entry.peer.seat)
        return [*roll, *missed, *self.replay.here_now(cell, entry)]

    async def _page_in(self, cell: Cell, entry: Entry) -> None:
        """Somebody who was away for long gets it all, page by page, and then the room."""
        peers = self.engine.peers
        try:
            await self._pages(cell, entry)
        except DamagedError as error:
            about = {"stream": cell.stream, "detail": "damaged"}
            log.error("stream.unreadable", extra=about)  # noqa: TRY400 - it says it all
            peers.detach(cell.stream, entry.peer)
            turn_away(entry, unreadable(error))
        except Exception as error:
            if not isinstance(error, StoreError):
                log.exception("stream.damaged", extra={"stream": cell.stream})
            peers.silence(cell.stream, entry.peer)
            entry.peer.close("the history cannot be read now; join again", again=True)

    async def _pages(self, cell: Cell, entry: Entry) -> None:
        engine, peer = self.engine, entry.peer
        at = await self._begin(cell, entry)
        page, told = min(FIRST_PAGE, PAGE), 0
        while (end := self._end(cell, peer)) > at:
            rows = await proven.read(engine.events, cell.stream, at, min(page, end - at))
            sealed = list(map(engine.unsealed, rows))
            mine = [f for s in sealed if (f := s.frame) and cell.may_see(s.record, peer.seat)]
            if mine and self._end(cell, peer):
                peer.write(peer.join(mine))
            told += len(mine)
            at = rows[-1].version
            size = sum(len(row.body) for row in rows) // len(rows)
            page = min(PAGE, max(1, LARGEST_WRITE // max(1, size)))
            await peer.drained()
        engine.tally.replays.add(told)
        hall = self.halls.get(cell.stream, NOBODY)
        if peer in hall and hall[peer] is None:
            if now := list(self.replay.here_now(cell, entry)):
                peer.write(peer.join(now))
            engine.peers.attach(cell.stream, peer)
        elif peer in hall:
            engine.peers.detach(cell.stream, peer)

    async def _begin(self, cell: Cell, entry: Entry) -> int:
        """Call the roll; the version behind which the pages begin."""
        peer, ref = entry.peer, entry.ref
        here = cell.context.welcome(cell.base.state, peer.seat)
        names = [said.id for said in here if said.id not in cell.index]
        rows = await proven.find(self.engine.events, cell.stream, [*names, *([ref] if ref else [])])
        versions = {row.id: row.version for row in rows}
        at = entry.since or versions.get(ref or "", 0)
        told = {id for id, version in versions.items() if version > at}
        stays = self.halls.get(cell.stream, NOBODY).get(peer, at) is None
        if stays and (roll := list(self.replay.roll_call(cell, peer.seat, told))):
            peer.write(peer.join(roll))
        return at

    def _end(self, cell: Cell, peer: Peer) -> int:
        """How far an arriving peer is told; 0 when it is gone."""
        hall = self.halls.get(cell.stream, NOBODY)
        if peer not in hall:
            return 0
        return hall[peer] or cell.base.version


def oldest(cell: Cell) -> int:
    """The version a window begins with that is as long as it may be."""
    return max(1, cell.base.version - cell.most + 1)


def turn_away(entry: Entry, no: Refused) -> None:
    """Whoever asked to come in is told why not; whoever only listens hears no more."""
    if entry.asked is None:
        entry.peer.close(no.detail)
    else:
        entry.asked.refuse(no)
