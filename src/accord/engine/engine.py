"""The loop: decide ahead, commit in natural batches, answer after the commit."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from accord.core.kernel.actor import TIMER, Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.chain import link
from accord.core.kernel.ids import SYSTEM, derived
from accord.core.kernel.log import (
    Ask,
    Body,
    Context,
    Effect,
    Event,
    Lifetime,
    Message,
    Record,
    fold,
)
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import iso
from accord.engine.cell import Answerer, Asked, Cell, Outcome, Peer, Place
from accord.engine.peers import Peers
from accord.engine.ports import (
    Clock,
    Codec,
    Conflict,
    Duplicate,
    EventLog,
    Row,
    Sealed,
    StoreError,
)
from accord.engine.pulse import Pulse
from accord.engine.scheduler import Scheduler
from accord.engine.snapshots import Snapshots
from accord.engine.vault import Vault

log = logging.getLogger("accord.engine")

SIGNAL = Lifetime.SIGNAL
NOTHING_KNOWN: Mapping[str, Record] = {}
LONGEST_QUEUE = 10_000
MOST_CELLS = 4096
# Seconds until a log that could not be followed is tried again.
PATIENCE = 1.0


class _LookUp(Exception):  # noqa: N818 - a detour, not a fault
    """Deciding needs records that are not at hand."""

    def __init__(self, ids: tuple[str, ...]) -> None:
        super().__init__()
        self.ids = ids


class Made(msgspec.Struct, frozen=True, gc=False):
    """What deciding a message made."""

    sealed: tuple[Sealed, ...]
    rows: Sequence[Row]
    after: Place


class World(NamedTuple):
    """What the engine is handed at assembly."""

    codec: Codec
    clock: Clock
    ids: Callable[[], str]
    house: Any


class Engine:
    """Everything that may change a stream goes through `submit`."""

    def __init__(
        self,
        events: EventLog,
        contexts: Iterable[Context[Any]],
        world: World,
        *,
        window: int = 1000,
        check: bool = False,
    ) -> None:
        self.events = events
        self.contexts = {context.name: context for context in contexts}
        self.codec, self.clock, self.ids, self.house = world
        self.window = window
        self.check = check
        self.cells: dict[str, Cell] = {}
        self.peers = Peers(self)
        self.scheduler = Scheduler(self.clock, self._due)
        self.snapshots = Snapshots(events)
        self.vault = Vault()
        self.pulse = Pulse(self)
        self.heard: list[Callable[[Sealed], None]] = []
        self.failures: list[BaseException] = []
        self.pinned: set[str] = set()
        self._from: int | None = None
        self._waking = False
        self._tasks: set[asyncio.Task[None]] = set()

    # Asking

    def submit(self, stream: str, asked: Asked) -> None:
        """Decide now if the stream is at hand, else as soon as it is; the answer comes later."""
        cell = self.cells.get(stream) or self._open(stream)
        if not cell.busy and not cell.queue:
            self._take(cell, asked)
        elif len(cell.queue) < LONGEST_QUEUE:
            cell.queue.append(asked)
        else:
            asked.refuse(Refused(Why.TOO_MANY, "The session is busy; try again"))

    async def handle(
        self, message: Message, actor: Actor, *, stream: str | None = None, peer: Peer | None = None
    ) -> tuple[Sealed, ...]:
        """The records a message led to, once they are durable; raises Refused."""
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def answer(outcome: Outcome) -> None:
            if not done.done():
                done.set_result(outcome)

        self.submit(stream or f"room/{message.room}", Asked(message, actor, answer, peer))
        said = await done
        if said.refused:
            raise said.refused
        return said.sealed

    def tell(self, stream: str, body: Body, actor: Actor, answer: Answerer | None = None) -> None:
        """A message of the server's own."""
        now = self.clock.now()
        room = stream.partition("/")[2]
        message = Message(self.ids(), iso(now), room, SYSTEM, body)
        self.submit(stream, Asked(message, actor, answer))

    async def start(self) -> None:
        """After a restart nobody is connected and every deadline counts (OPEN-31)."""
        self._waking = True
        self._from = await self.events.position()
        for stream in await self.events.streams("room/"):
            room = await self.state(stream)
            for seat in self.contexts["room"].present(room):
                self.peers.absent(stream, seat)
            self._due(stream)
        await self.settle()
        self.scheduler.run_due()
        await self.settle()
        self._waking = False

    async def state(self, stream: str) -> Any:
        """The durable state of a stream; StoreError when it cannot be read."""
        cell = self.cells.get(stream) or self._open(stream)
        if cell.busy:
            ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            cell.waiting.append(ready)
            await ready
        state = cell.base.state
        self._let_go(cell)
        return state

    def peek(self, stream: str) -> Any | None:
        """The durable state of a stream that is at hand, and stays so from now on."""
        self.pinned.add(stream)
        cell = self.cells.get(stream) or self._open(stream)
        return cell.base.state if cell.base.version or not cell.busy else None

    # Opening

    def _open(self, stream: str) -> Cell:
        name = stream.partition("/")[0]
        cell = Cell(stream, self.contexts[name], self.window)
        self._make_room()
        self.cells[stream] = cell
        self._hold(cell, self._load(cell))
        return cell

    def _hold(self, cell: Cell, work: Coroutine[Any, Any, None]) -> None:
        """Do this while the stream decides nothing."""
        cell.busy += 1
        self.spawn(self._held(cell, work))

    async def _held(self, cell: Cell, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except StoreError as error:
            self._give_up(cell, error)
        except Exception as error:
            log.exception("what is stored of %s makes no sense", cell.stream)
            self._give_up(cell, StoreError(f"{cell.stream} is damaged: {error}"))
        else:
            self._free(cell)

    async def _load(self, cell: Cell) -> None:
        kept, rows = await self._since_snapshot(cell)
        base, _ = self._fold(cell, kept, rows)
        await self._fill_window(cell, base.version, len(rows))
        cell.kept = kept.version
        cell.ahead = max(0, base.at - self.clock.now())
        cell.base = cell.place = base
        self._reschedule(cell)

    async def _since_snapshot(self, cell: Cell) -> tuple[Place, list[Row]]:
        """The newest snapshot that fits the log, and the rows behind it."""
        kept = await self.snapshots.latest(cell)
        if kept.version:
            rows = await self.events.read(cell.stream, kept.version - 1)
            if rows and rows[0].hash == kept.hash:
                return kept, rows[1:]
        return cell.base, await self.events.read(cell.stream)

    async def _fill_window(self, cell: Cell, version: int, loaded: int) -> None:
        """Have the newest records at hand, however few the snapshot left to read."""
        if loaded < self.window and version > loaded:
            after = max(0, version - self.window)
            rows = await self.events.read(cell.stream, after, version - after)
            cell.window.clear()
            cell.index.clear()
            for row in rows:
                cell.remember(self.codec.unseal(row.stream, row.version, row.body))

    def _fold(self, cell: Cell, place: Place, rows: Iterable[Row]) -> tuple[Place, list[Sealed]]:
        """Where the stream stands behind these rows, and the records in them."""
        fresh: list[Sealed] = []
        state, version, seq = place.state, place.version, place.seq
        last, at = place.hash, place.at
        for row in rows:
            sealed = self.codec.unseal(row.stream, row.version, row.body)
            record = sealed.record
            state = fold(cell.context, state, (record,))
            version, last, at = row.version, row.hash, max(at, record.at)
            seq = record.seq or seq
            cell.remember(sealed)
            fresh.append(sealed)
        return Place(state, version, seq, last, at), fresh

    def _free(self, cell: Cell) -> None:
        """Go on with what had to wait, once there is no other reason to."""
        cell.busy -= 1
        if cell.busy:
            return
        for ready in cell.waiting:
            if not ready.done():
                ready.set_result(None)
        cell.waiting.clear()
        while cell.queue and not cell.busy:
            self._take(cell, cell.queue.popleft())
        self._keep_up(cell)
        self._let_go(cell)

    def _make_room(self) -> None:
        """Let the longest unused streams go that nobody listens to."""
        if len(self.cells) < MOST_CELLS:
            return
        quiet = (s for s, c in self.cells.items() if c.idle and not self._wanted(s))
        for stream in list(islice(quiet, MOST_CELLS // 4)):
            del self.cells[stream]

    def _wanted(self, stream: str) -> bool:
        return stream in self.pinned or self.peers.listened(stream)

    def _let_go(self, cell: Cell) -> None:
        """Forget a stream that does not exist, so that asking for it costs no memory."""
        if cell.base.version == 0 and cell.idle and self.cells.get(cell.stream) is cell:
            del self.cells[cell.stream]

    def _give_up(self, cell: Cell, error: StoreError) -> None:
        """The store failed: whoever waits is told, and the next message tries afresh.

        It stays busy, so that nothing ever happens in it again.
        """
        log.error("cannot read %s: %s", cell.stream, error)
        if self.cells.get(cell.stream) is cell:
            del self.cells[cell.stream]
        for ready in cell.waiting:
            if not ready.done():
                ready.set_exception(error)
        waiting = list(cell.pending())
        cell.outbox, cell.rows = [], []
        cell.queue.clear()
        self.peers.cut_off(cell.stream)
        for asked in waiting:
            asked.refuse(unreadable(error))

    # Deciding

    def _take(self, cell: Cell, asked: Asked) -> None:
        try:
            self._decide(cell, asked)
        except Refused as no:
            if self._may_be_old(cell, asked):
                self._detour(cell, asked, (asked.message.id,))
            else:
                self._post(cell, Outcome(asked, refused=no, after=cell.place))
                self.pulse.noticed(cell, asked.actor)
        except _LookUp as wanted:
            self._detour(cell, asked, wanted.ids)
        except Exception:
            log.exception("deciding failed on %s", cell.stream)
            sorry = Refused(Why.INTERNAL, "Something went wrong here; nothing was changed")
            self._post(cell, Outcome(asked, refused=sorry, after=cell.place))

    def _may_be_old(self, cell: Cell, asked: Asked) -> bool:
        """Whether what is refused could be a retry from before the window (OPEN-36)."""
        id = asked.message.id
        known = id in cell.index or id in asked.found or asked.actor.kind is Kind.SYSTEM
        return not known and cell.base.version > len(cell.window)

    def _detour(self, cell: Cell, asked: Asked, ids: tuple[str, ...]) -> None:
        """Look these up, then take the message again; others wait behind it."""
        cell.queue.appendleft(asked)
        self._hold(cell, self._look_up(cell, asked, ids))

    def _decide(self, cell: Cell, asked: Asked) -> None:
        message = asked.message
        before = cell.index.get(message.id) or asked.found.get(message.id)
        if before is not None:
            self._repeat(cell, asked, before)
            return
        place = cell.place
        at = self.clock.now() + cell.ahead
        at = max(at, place.at)
        actor = asked.actor
        if message.sender != actor.seat and actor.kind is not Kind.SYSTEM:
            detail = f"You are {actor.seat}; the sender says {message.sender}"
            raise Refused(Why.CLAIM_MISMATCH, detail)
        context = cell.context
        body = message.body
        ask = Ask(message, actor, at, NOTHING_KNOWN, self.house)
        context.admit(place.state, ask)
        if (
            message.causal_refs
            or body.names_others
            or not (message.ref is None or context.knows(place.state, message.ref, actor.seat))
        ):
            ask.known = self._known(cell, asked)
        says: list[Effect] = []
        events: list[Event] = []
        for fact in context.decide[type(body)](place.state, ask, body):
            (says if isinstance(fact, Effect) else events).append(fact)  # type: ignore[arg-type]
        seat = actor.seat
        cell.seen[seat] = at
        if seat in cell.quiet:
            self.pulse.heard(cell, seat)
        if says and not events and body.lifetime is SIGNAL:
            cell.note_signal(message)
        made = self._stamp(cell, ask, events)
        for sealed in made.sealed:
            cell.index[sealed.record.id] = sealed
        cell.rows += made.rows
        cell.place = made.after
        self._post(cell, Outcome(asked, made.sealed, tuple(says), None, made.after))

    def _stamp(self, cell: Cell, ask: Ask, events: list[Event]) -> Made:
        """Events as records in their place, sealed and folded; the cell is left as it was."""
        if len(events) == 1:
            return self._stamp_one(cell, ask, events[0])
        if not events:
            return Made((), (), cell.place)
        message, actor, at = ask.message, ask.actor, ask.at
        now = cell.place
        state, version, seq, last = now.state, now.version, now.seq, now.hash
        spoken = own_voice(message, events)
        scope = message.fork if message.body.scoped else None
        made: list[Sealed] = []
        rows: list[Row] = []
        for place, event in enumerate(events):
            version += 1
            said: Body | None = getattr(event, "said", None)
            if said is not None:
                seq += 1
            if place == spoken:
                record = Record(
                    cell.stream,
                    version,
                    seq if said is not None else 0,
                    message.id,
                    at,
                    actor.seat,
                    message.id,
                    message.ts,
                    message.sender,
                    event,
                    said,
                    event.ref or message.ref,
                    message.causal_refs,
                    event.fork or scope,
                    event.to,
                )
            else:
                record = Record(
                    cell.stream,
                    version,
                    seq if said is not None else 0,
                    derived(at, cell.stream, message.id, str(place)),
                    at,
                    actor.seat,
                    message.id,
                    iso(at),
                    SYSTEM,
                    event,
                    said,
                    event.ref,
                    (),
                    event.fork or scope,
                    event.to,
                )
            sealed = self.codec.seal(record)
            last = link(last, sealed.body)
            state = cell.context.evolve[type(event)](state, event, record)
            rows.append(Row(cell.stream, version, record.id, sealed.body, last))
            made.append(sealed)
        return Made(tuple(made), rows, Place(state, version, seq, last, at))

    def _stamp_one(self, cell: Cell, ask: Ask, event: Event) -> Made:
        """The same for the one event that almost every message leads to, without detours."""
        message, at, now, stream = ask.message, ask.at, cell.place, cell.stream
        said: Body | None = getattr(event, "said", None)
        id, version = message.id, now.version + 1
        seq = now.seq if said is None else now.seq + 1
        record = Record(
            stream,
            version,
            0 if said is None else seq,
            id,
            at,
            ask.actor.seat,
            id,
            message.ts,
            message.sender,
            event,
            said,
            event.ref or message.ref,
            message.causal_refs,
            event.fork or (message.fork if message.body.scoped else None),
            event.to,
        )
        sealed = self.codec.seal(record)
        last = link(now.hash, sealed.body)
        state = cell.context.evolve[type(event)](now.state, event, record)
        row = Row(stream, version, id, sealed.body, last)
        return Made((sealed,), (row,), Place(state, version, seq, last, at))

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
            here = await self._find(cell, ids)
        except StoreError as error:
            cell.queue.remove(asked)
            self._post(cell, Outcome(asked, refused=unreadable(error), after=cell.place))
        else:
            asked.found = {**asked.found, **dict.fromkeys(ids), **here}

    async def _find(self, cell: Cell, ids: Sequence[str]) -> dict[str, Sealed]:
        rows = await self.events.find(cell.stream, ids)
        return {row.id: self.codec.unseal(row.stream, row.version, row.body) for row in rows}

    def _repeat(self, cell: Cell, asked: Asked, before: Sealed) -> None:
        """OPEN-36: a retry gets the first outcome; the same id for something else is refused."""
        record, body = before.record, asked.message.body
        state = cell.place.state
        same_sender = record.actor == asked.actor.seat and cell.context.insider(state, asked.actor)
        if not same_sender:  # whoever is not here is told that, and nothing of the id
            now = self.clock.now()
            ask = Ask(asked.message, asked.actor, now, NOTHING_KNOWN, self.house)
            cell.context.admit(state, ask)
        if not same_sender or (record.said is not None and not body.repeats(record.said)):
            detail = f"The id {asked.message.id} was used for another message"
            raise Refused(Why.KEY_REUSED, detail)
        first = [s for s in cell.index.values() if s.record.cause == record.cause]
        first.sort(key=lambda sealed: sealed.record.version)
        again = tuple(s for s in first if visible(cell, s, asked.actor.seat)) or (before,)
        self._post(cell, Outcome(asked, again, (), None, cell.place, again=True))
        self.pulse.noticed(cell, asked.actor)

    # Committing

    def _post(self, cell: Cell, outcome: Outcome) -> None:
        if not cell.rows and not cell.outbox and not cell.committing:
            self._tell_one(cell, outcome)
            return
        cell.outbox.append(outcome)
        if not cell.committing:
            cell.committing = True
            self.spawn(self._commit(cell))

    def _tell_one(self, cell: Cell, outcome: Outcome) -> None:
        """An answer that waits for nothing."""
        self.peers.deliver(cell, [outcome])
        if outcome.asked.answer is not None:
            outcome.asked.answer(outcome)

    async def _commit(self, cell: Cell) -> None:
        while cell.outbox:
            rows, cell.rows = cell.rows, []
            cell.underway, cell.outbox = cell.outbox, []
            try:
                if rows:
                    await self.events.append(cell.stream, cell.base.version, rows)
            except (Conflict, Duplicate) as race:
                cell.busy += 1
                await self._held(cell, self._decide_again(cell, race))
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody is left waiting
                self._lose(cell, error)
            else:
                self._committed(cell)
        cell.committing = False
        self._keep_up(cell)
        self._let_go(cell)

    def _committed(self, cell: Cell) -> None:
        before = cell.base
        outbox, cell.underway = cell.underway, []
        self._advance(cell, outbox)
        try:
            self.peers.deliver(cell, outbox)
        except Exception as error:
            log.exception("cannot tell what was committed to %s", cell.stream)
            self.failures.append(error)
            self.peers.cut_off(cell.stream)
        self._answer(outbox)
        if self.heard:
            self._publish(s for outcome in outbox if not outcome.again for s in outcome.sealed)
        if cell.base.state is not before.state:
            self._reschedule(cell)
        if self.peers.unsaid and cell.base is not before:
            self.peers.say_again(cell.stream)
        if self.snapshots.due(cell):
            self.spawn(self.snapshots.take(cell))
        if self.check:
            self.spawn(self._check(cell))

    def _answer(self, outbox: list[Outcome]) -> None:
        """Everybody who asked; one who cannot be told is no other's loss."""
        for outcome in outbox:
            try:
                if outcome.asked.answer is not None:
                    outcome.asked.answer(outcome)
            except Exception as error:
                log.exception("cannot answer %s", outcome.asked.message.id)
                self.failures.append(error)

    def _advance(self, cell: Cell, outbox: list[Outcome]) -> None:
        """What was decided is durable now."""
        for outcome in outbox:
            after = outcome.after
            if after is not None and after.version > cell.base.version:
                cell.base = after
                for sealed in () if outcome.again else outcome.sealed:
                    cell.remember(sealed)

    def _publish(self, fresh: Iterable[Sealed]) -> None:
        for sealed in fresh:
            for listener in self.heard:
                try:
                    listener(sealed)
                except Exception as error:
                    log.exception("a listener failed on %s", sealed.record.id)
                    self.failures.append(error)

    async def _decide_again(self, cell: Cell, race: Conflict | Duplicate) -> None:
        """Somebody was faster: drop what ran ahead, fold what is there, decide once more."""
        waiting = [outcome.asked for outcome in (*cell.underway, *cell.outbox)]
        cell.underway, cell.outbox, cell.rows = [], [], []
        cell.queue.extendleft(reversed(waiting))
        await self._catch_up(cell)
        if isinstance(race, Duplicate):
            await self._tell_apart(cell, waiting, race.id)

    async def _tell_apart(self, cell: Cell, waiting: list[Asked], id: str) -> None:
        """A retry from before the window, or an id of ours that somebody has used up."""
        retries = [asked for asked in waiting if asked.message.id == id]
        found = await self._find(cell, [id])
        for asked in retries:
            asked.found = {**asked.found, **found}
        if not retries:
            # The ids we make follow from the instant: another one gives another id.
            later = max(self.clock.now() + cell.ahead, cell.base.at) + 1
            cell.base = cell.place = replace(cell.base, at=later)

    async def _catch_up(self, cell: Cell) -> None:
        """Fold what others appended, and tell the room."""
        rows = await self.events.read(cell.stream, cell.base.version)
        before = cell.base
        cell.forget_pending()
        cell.base, fresh = self._fold(cell, before, rows)
        cell.place = cell.base
        self.peers.deliver_foreign(cell, fresh)
        self._publish(fresh)
        if cell.base.state is not before.state:
            self._reschedule(cell)

    def _lose(self, cell: Cell, error: Exception) -> None:
        """The store would not keep it: say so and stand where the log stands."""
        surprise = None if isinstance(error, StoreError) else error
        log.error("cannot append to %s: %s", cell.stream, error, exc_info=surprise)
        lost = [*cell.underway, *cell.outbox]
        cell.underway, cell.outbox = [], []
        cell.forget_pending()
        # What was refused may have been refused because of what is lost.
        no = Refused(Why.UNAVAILABLE, f"It could not be stored, so nothing was changed: {error}")
        for outcome in lost:
            self._tell_one(cell, Outcome(outcome.asked, refused=no))

    # Time and others

    def _due(self, stream: str) -> None:
        context = self.contexts[stream.partition("/")[0]]
        wake = context.wake if self._waking else None
        self.tell(stream, wake or context.tick, TIMER)

    def _reschedule(self, cell: Cell) -> None:
        soonest = min(cell.context.deadlines(cell.base.state, self.house), default=None)
        if soonest != cell.deadline:
            cell.deadline = soonest
            when = None if soonest is None else soonest - cell.ahead
            self.scheduler.set(cell.stream, when)

    async def follow(self) -> None:
        """Keep streams at hand in step with what other processes append, for ever."""
        at = await self.events.position() if self._from is None else self._from
        while True:
            try:
                async for batch in self.events.tail(at):
                    self._overheard(row for _, row in batch)
                    at = batch[-1][0]
            except StoreError as error:
                log.warning("cannot follow the log: %s", error)
                await asyncio.sleep(PATIENCE)

    def _overheard(self, rows: Iterable[Row]) -> None:
        for row in rows:
            cell = self.cells.get(row.stream)
            if cell is not None and row.version > cell.base.version:
                cell.newest = row.version
                self._keep_up(cell)

    def _keep_up(self, cell: Cell) -> None:
        """Fold what others appended as soon as nothing of ours is under way.

        While something is, its own append finds the conflict.
        """
        if cell.newest > cell.base.version and cell.idle:
            self._hold(cell, self._catch_up(cell))

    async def _check(self, cell: Cell) -> None:
        """Folding afresh must give the state at hand."""
        base = cell.base
        rows = [r for r in await self.events.read(cell.stream) if r.version <= base.version]
        state = cell.context.start(cell.stream)
        for row in rows:
            sealed = self.codec.unseal(row.stream, row.version, row.body)
            state = fold(cell.context, state, (sealed.record,))
        if state != base.state:
            log.critical("the state of %s differs from its log", cell.stream)
            raise AssertionError(f"{cell.stream} at {base.version}: {state} is not {base.state}")

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this beside everything else; a failure is never silent."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.critical("a task of the engine died", exc_info=error)
            self.failures.append(error)

    async def settle(self) -> None:
        """Wait until nothing is under way."""
        while tasks := [task for task in self._tasks if task is not asyncio.current_task()]:
            await asyncio.gather(*tasks, return_exceptions=True)


def unreadable(error: StoreError) -> Refused:
    """Why a message could not be decided."""
    return Refused(Why.UNAVAILABLE, f"The store cannot be read: {error}")


def own_voice(message: Message, events: list[Event]) -> int:
    """Which of the events is what the sender said; the others are the server's."""
    for place, event in enumerate(events):
        if type(getattr(event, "said", None)) is type(message.body):
            return place
    return 0


def visible(cell: Cell, sealed: Sealed, seat: str) -> bool:
    """Whether this seat may see the record at all, as far as is decided."""
    to = cell.context.audience(cell.place.state, sealed.record)
    return sealed.record.said is not None and (to is None or seat in to)
