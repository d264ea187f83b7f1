"""Joining a stream: how a connection gets the past and then the present, without gap or duplicate.

THE PROBLEM. A client joins while others keep sending. It must get a description of the session as
it is (the roster: members, context, open gates), then every record it missed, then every new
record, each exactly once and in order. Reading the past from disk takes time, and records are
committed meanwhile. Stopping the session for that long is not acceptable.

WHO IS WHERE. For each stream a connection is in one of two tables:

- `Delivery.subscribers`: it receives every committed record at once.

- `Delivery.catching_up`: it is being sent the past, and receives nothing live. The value is
None, or, if the member has left again, the version up to which it may still be sent records.

Everything here runs on one event loop. A move between the tables that contains no `await` is
therefore atomic: no commit can be delivered in between. That is the whole argument; both paths
below are arranged so that the last step has no `await`.

WHO STARTS IT. `Delivery.deliver` sees in the outcomes of a commit who joined. It returns them as
`Joins`, and the engine gives those to `admit_joiners` in the same step, before anything else can be
delivered. A member who joined and left in one commit gets the records up to the leave, no more.

THE SHORT PATH (`start_replay`). If all missed records are in the window in memory, and fit into one
write, then roster, missed records and current values are written in one go and the connection is
subscribed in the same step. Whatever is in the window was committed before; whatever is committed
later is delivered to subscribers. Nothing falls between, nothing is in both.

THE LONG PATH (`_replay_from_store`). Otherwise the connection goes into `catching_up`, and a task
sends pages from the store. Live delivery skips it. After each page the task compares its version
with `stream.base.version`, the newest durable version, and reads on if it is behind. The loop ends
when they are equal; between that comparison and `subscribe` is no `await`, so the argument of the
short path applies again. `peer.drain()` between pages lets a slow client set the pace; page sizes
follow the size of the records.

WHERE THE PAST BEGINS. A client that comes back names the last message it has in `ref` (OPEN-37). If
that record is in memory its version is `JoinEntry.since`; if not, the store is asked for it
(`_first_version`). A client without a `ref` gets the newest part of the history, one full window,
since the roster describes the rest.

THE ROSTER AND DUPLICATES. The roster consists of earlier messages, sent again under their own ids.
One whose record will be replayed anyway is left out: it is in the window (`stream.index`), or
behind the version at which the pages begin. Items marked `after_replay` and values of secrets come
last, since the records before would not make sense of them or do not contain them.

WHEN IT FAILS. A member whose history cannot be read is disconnected and told to join again; if the
record is damaged, the join is refused. A connection that closes meanwhile is removed from
`catching_up`, which the task sees before its next page. A join that is retried on a new connection
(`is_retry`) is a join too, unless the member is connected already.
"""

import logging
from collections.abc import Callable, Container, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any

from accord.core.kernel.actor import PRESENCE_ACTOR
from accord.core.kernel.effects import ReplayedMessage
from accord.core.kernel.messages import Body
from accord.core.kernel.records import MembershipChange
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Permission
from accord.engine.counters import EngineCounters
from accord.engine.delivery.delivery import Delivery, join_entry_of
from accord.engine.delivery.join_entries import JoinEntry, Joins
from accord.engine.ports import DamagedError, EnginePorts, StoreError
from accord.engine.streams.stream import Outcome, Peer, Stream, SubmitSystemMessage, Vault
from accord.engine.streams.stream_cache import unreadable_refusal
from accord.engine.streams.verified_reads import RecordReader

log = logging.getLogger("accord.engine")

FIRST_PAGE_ROWS, PAGE_ROWS = 50, 500
# Longer replays are sent in pages.
MAX_WRITE_BYTES = 1 << 20
NO_JOINERS: Mapping[Peer, int | None] = {}


class JoinHandler:
    """Sends connections the past, then subscribes them."""

    def __init__(
        self,
        ports: EnginePorts,
        reader: RecordReader,
        delivery: Delivery,
        vault: Vault,
        counters: EngineCounters,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        submit: SubmitSystemMessage,
    ) -> None:
        self._clock = ports.clock
        self._reader = reader
        self._delivery = delivery
        self._catching_up = delivery.catching_up
        self._replay = Replay(ports, vault)
        self._counters = counters
        self._spawn = spawn
        self._submit = submit

    # Without a join message

    def resume(self, stream: Stream, peer: Peer, since: int | None) -> None:
        """Subscribe a member and replay records behind `since`; None: as for a new one."""
        if self.start_replay(stream, JoinEntry(peer, since, is_first_visit=since is None)):
            self.record_return(stream, peer.principal)

    def mark_present(self, stream: Stream, peer: Peer) -> None:
        """Subscribe a connection that reads the history by itself."""
        self._delivery.subscribe(stream.id, peer)
        self.record_return(stream, peer.principal)

    def record_return(self, stream: Stream, seat: str) -> None:
        """Record that a member is connected, unless that is known."""
        body = stream.context.presence.return_body(stream.base.state, seat, self._clock.now())
        if body is not None:
            self._submit_return(stream.id, seat, body)

    # With a join message

    def admit_joiners(self, stream: Stream, joins: Joins) -> None:
        """Start replays for those who joined; record as absent those whose join was refused."""
        peers, entering = self._delivery, joins.entering
        for entry, until in joins.left:
            self.start_replay(stream, entry, until)
        back: dict[str, Body] = {}
        lost: list[str] = []
        for outcome in joins.undelivered:
            peer, wants = outcome.submission.peer, outcome.submission.message.body.needs
            if (
                peer is None
                or wants is not Permission.ENTER
                or peer in peers.connections(stream.id)
            ):
                continue
            if (
                outcome.is_retry
                and (body := self._return_body(stream, outcome, peer.principal)) is not None
            ):
                entering.setdefault(peer, join_entry_of(stream, outcome.submission, peer))
                back[peer.principal] = body
            elif peer.principal in stream.context.presence.connected_members(stream.base.state):
                lost.append(peer.principal)
        lost += [e.peer.principal for e in entering.values() if not self.start_replay(stream, e)]
        for seat, body in back.items():
            self._submit_return(stream.id, seat, body)
        for seat in lost:
            peers.mark_absent_if_gone(stream.id, seat)

    def _return_body(self, stream: Stream, outcome: Outcome, seat: str) -> Body | None:
        """A retried join on a new connection is a return; None: it is not."""
        if not any(
            encoded.record.event.membership is MembershipChange.IN for encoded in outcome.records
        ):
            return None
        return stream.context.presence.return_body(stream.base.state, seat, self._clock.now())

    def _submit_return(self, stream: str, seat: str, body: Body) -> None:
        self._submit(stream, body, PRESENCE_ACTOR, partial(self._on_return_outcome, stream, seat))

    def _on_return_outcome(self, stream: str, seat: str, outcome: Outcome) -> None:
        if outcome.refusal is not None:  # otherwise other members would see them as absent
            self._delivery.disconnect(stream, seat)

    # Catching up

    def start_replay(self, opened: Stream, entry: JoinEntry, until: int | None = None) -> bool:
        """Send roster, missed records and then live ones; False: the connection is closed.

        Who has left again is told all up to the version `until`, and no more.
        """
        stream, peer, since = opened.id, entry.peer, entry.since
        if not peer.is_connected:
            return False
        if until is None:
            self._delivery.admit_connection(stream, peer)
        held = opened.window[0].record.version if opened.window else 1
        if since is None and entry.ref is None and held > (whole := oldest_window_version(opened)):
            # The window was cut by its size in bytes; read the rest from the store.
            entry = entry._replace(since=whole - 1)
        if entry.ref is None and (entry.since is None or entry.since + 1 >= held):
            frames = self._window_frames(opened, entry, until)
            if sum(map(len, frames)) <= MAX_WRITE_BYTES:
                peer.write(peer.join_frames(frames))
                self._counters.replay_sizes.add(len(frames))
                if until is None:
                    self._delivery.subscribe(stream, peer)
                return True
            entry = entry._replace(since=held - 1 if entry.since is None else entry.since)
        self._catching_up.setdefault(stream, {})[peer] = until
        self._delivery.report_connections(stream, peer.principal)
        self._spawn(self._replay_from_store(opened, entry))
        return True

    def _window_frames(self, stream: Stream, entry: JoinEntry, until: int | None) -> list[bytes]:
        missed = self._replay.missed_frames(stream, entry, until)
        if until is not None:
            return list(missed)
        roll = self._replay.roster_frames(stream, entry.peer.principal)
        return [*roll, *missed, *self._replay.current_frames(stream, entry)]

    async def _replay_from_store(self, stream: Stream, entry: JoinEntry) -> None:
        """Send a long history in pages, then subscribe the connection."""
        peers = self._delivery
        try:
            await self._write_pages(stream, entry)
        except DamagedError as error:
            about = {"stream": stream.id, "detail": "damaged"}
            log.error("stream.unreadable", extra=about)  # noqa: TRY400 - it says it all
            peers.unsubscribe(stream.id, entry.peer)
            refuse_entry(entry, unreadable_refusal(error))
        except Exception as error:
            if not isinstance(error, StoreError):
                log.exception("stream.damaged", extra={"stream": stream.id})
            peers.stop_delivery(stream.id, entry.peer)
            entry.peer.close("the history cannot be read now; join again", reconnect=True)

    async def _write_pages(self, stream: Stream, entry: JoinEntry) -> None:
        peer, reader = entry.peer, self._reader
        at = await self._first_version(stream, entry)
        page, sent = min(FIRST_PAGE_ROWS, PAGE_ROWS), 0
        while (end := self._replay_end(stream, peer)) > at:
            rows = await reader.rows(stream.id, at, min(page, end - at))
            encoded = list(map(reader.decode, rows))
            mine = [
                f for s in encoded if (f := s.frame) and stream.may_see(s.record, peer.principal)
            ]
            if mine and self._replay_end(stream, peer):
                peer.write(peer.join_frames(mine))
            sent += len(mine)
            at = rows[-1].version
            size = sum(len(row.body) for row in rows) // len(rows)
            page = min(PAGE_ROWS, max(1, MAX_WRITE_BYTES // max(1, size)))
            await peer.drain()
        self._counters.replay_sizes.add(sent)
        joiners = self._catching_up.get(stream.id, NO_JOINERS)
        if peer in joiners and joiners[peer] is None:
            if now := list(self._replay.current_frames(stream, entry)):
                peer.write(peer.join_frames(now))
            self._delivery.subscribe(stream.id, peer)
        elif peer in joiners:
            self._delivery.unsubscribe(stream.id, peer)

    async def _first_version(self, stream: Stream, entry: JoinEntry) -> int:
        """Send the roster; returns the version behind which the pages begin."""
        peer, ref = entry.peer, entry.ref
        here = stream.context.presence.replay_for(stream.base.state, peer.principal)
        names = [said.id for said in here if said.id not in stream.index]
        versions = await self._reader.versions(stream.id, [*names, *([ref] if ref else [])])
        at = entry.since or versions.get(ref or "", 0)
        sent = {id for id, version in versions.items() if version > at}
        stays = self._catching_up.get(stream.id, NO_JOINERS).get(peer, at) is None
        if stays and (roll := list(self._replay.roster_frames(stream, peer.principal, sent))):
            peer.write(peer.join_frames(roll))
        return at

    def _replay_end(self, stream: Stream, peer: Peer) -> int:
        """Version up to which this connection is sent records now; 0 if it is gone."""
        joiners = self._catching_up.get(stream.id, NO_JOINERS)
        if peer not in joiners:
            return 0
        return joiners[peer] or stream.base.version


def oldest_window_version(stream: Stream) -> int:
    """The first version that a window of full length holds."""
    return max(1, stream.base.version - stream.max_window + 1)


def refuse_entry(entry: JoinEntry, refusal: Refused) -> None:
    """Refuse the join; a connection that only resumed is closed instead."""
    if entry.submission is None:
        entry.peer.close(refusal.detail)
    else:
        entry.submission.refuse(refusal)


class Replay:
    """Frames of the past for one connection."""

    def __init__(self, ports: EnginePorts, vault: Vault) -> None:
        self._codec, self._clock, self._new_id, _ = ports
        self._vault = vault

    def roster_frames(
        self, stream: Stream, seat: str, already_sent: Container[str] = ()
    ) -> Iterator[bytes]:
        """The session as it is, without messages that the replay contains anyway."""
        now, room = self._clock.now(), stream.id.partition("/")[2]
        for said in stream.context.presence.replay_for(stream.base.state, seat):
            early = said.secret_key is None and not said.after_replay
            if early and said.id not in stream.index and said.id not in already_sent:
                yield self._codec.encode_replayed(now, room, said)

    def missed_frames(
        self, stream: Stream, entry: JoinEntry, until: int | None = None
    ) -> Iterator[bytes]:
        """Records in the window behind `since`, up to `until` if the member left again."""
        since, seat = entry.since or 0, entry.peer.principal
        for encoded in stream.window:
            record = encoded.record
            if record.version <= since or (frame := encoded.frame) is None:
                continue
            if until is not None and record.version > until:
                return
            if stream.may_see(record, seat):
                yield frame

    def current_frames(self, stream: Stream, entry: JoinEntry) -> Iterator[bytes]:
        """What no replayed record shows: older context and the values of secrets."""
        now, room = self._clock.now(), stream.id.partition("/")[2]
        for said in stream.context.presence.replay_for(stream.base.state, entry.peer.principal):
            key = said.secret_key if entry.peer.is_secure else None
            value = self._vault.value(stream.id, key) if key else None
            if value:
                body = self._codec.body_with_secret(said.body, value)
                again = ReplayedMessage(self._new_id(), said.sender, body)
                yield self._codec.encode_replayed(now, room, again, said.id)
            elif said.after_replay and entry.is_first_visit and said.id not in stream.index:
                yield self._codec.encode_replayed(now, room, said)
