"""The loop: decide ahead, commit in natural batches, answer after the commit."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from accord.core.kernel.actor import TIMER, Actor
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.limits import reached
from accord.core.kernel.log import Body, Context, Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.times import iso
from accord.engine.arrivals import Arrivals
from accord.engine.cell import Answerer, Asked, Cell, Outcome, Peer
from accord.engine.committer import Committer
from accord.engine.decider import Decider
from accord.engine.load import Load
from accord.engine.opener import Opener
from accord.engine.peers import Peers
from accord.engine.ports import Clock, Codec, EventLog, Row, Sealed, StoreError
from accord.engine.pulse import Pulse
from accord.engine.scheduler import Scheduler
from accord.engine.snapshots import Snapshots
from accord.engine.tally import Tally
from accord.engine.vault import Vault
from accord.engine.waking import Gists, Waking

log = logging.getLogger("accord.engine")

# Seconds until a log that could not be followed is tried again.
PATIENCE = 1.0
# Surprises that are kept to be looked at; each of them is in the log.
MOST_FAILURES = 16

ROW, STREAM = itemgetter(1), attrgetter("stream")


# What became of a message: why it was refused, or its records.
Result = tuple[Refused | None, tuple[Sealed, ...]]

# Hears what was committed to a stream, and is quick about it.
Listener = Callable[[str, Sequence[Sealed]], None]


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
        self.arrivals = Arrivals(self)
        self.peers = Peers(self)
        self.scheduler = Scheduler(self.clock, self.due)
        self.snapshots = Snapshots(events)
        self.vault = Vault()
        self.pulse = Pulse(self)
        self.tally = Tally()
        self.load = Load(self.house.limits)
        self.opener = Opener(self)
        self.decider = Decider(self)
        self.committer = Committer(self)
        self.heard: list[Listener] = []  # of every commit
        self.turned: list[Listener] = []  # of those after which things stand otherwise
        self.failures: list[BaseException] = []
        self.pinned: set[str] = set()
        self._from: int | None = None
        self._waking = False
        self._tasks: set[asyncio.Task[None]] = set()

    # Asking

    def submit(self, stream: str, asked: Asked) -> None:
        """Decide now if the stream is at hand, else as soon as it is; the answer comes later."""
        cell = self.cells.get(stream) or self.opener.open(stream)
        if self.load.bytes > self.load.fine and (no := self.load.too_much(cell, asked)):
            asked.refuse(no)
        elif not cell.busy and not cell.queue:
            self.decider.take(cell, asked)
        elif len(cell.queue) < (most := self.load.limits.queue):
            cell.queue.append(asked)
        else:
            detail = "The session is being read and many wait for it; try again"
            asked.refuse(reached("queue", most, detail, retry_after_ms=1000))

    async def handle(
        self, message: Message, actor: Actor, *, stream: str | None = None, peer: Peer | None = None
    ) -> tuple[Sealed, ...]:
        """The records a message led to, once they are durable; raises Refused."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def answer(outcome: Outcome) -> None:
            if not done.done():
                # Not the outcome: a refusal keeps this frame, and would be kept by it for ever.
                done.set_result((outcome.refused, outcome.sealed))

        self.submit(stream or f"room/{message.room}", Asked(message, actor, answer, peer))
        refused, sealed = await done
        if refused:
            raise refused
        return sealed

    def tell(self, stream: str, body: Body, actor: Actor, answer: Answerer | None = None) -> None:
        """A message of the server's own."""
        now = self.clock.now()
        room = stream.partition("/")[2]
        message = Message(self.ids(), iso(now), room, SYSTEM, body)
        self.submit(stream, Asked(message, actor, answer))

    async def start(self) -> Gists:
        """After a restart nobody is connected and every deadline counts; what rooms there are."""
        self._waking = True
        self._from = await self.events.position()
        gists = await Waking(self).run()
        self._waking = False
        return gists

    async def state(self, stream: str) -> Any:
        """The durable state of a stream; StoreError when it cannot be read."""
        cell = self.cells.get(stream) or self.opener.open(stream)
        if cell.busy:
            ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            cell.waiting.append(ready)
            await ready
        state = cell.base.state
        self.opener.let_go(cell)
        return state

    def unsealed(self, row: Row) -> Sealed:
        """The record in a row."""
        return self.codec.unseal(row.stream, row.version, row.body)

    def peek(self, stream: str) -> Any | None:
        """The durable state of a stream that is at hand, and stays so from now on."""
        self.pinned.add(stream)
        cell = self.cells.get(stream) or self.opener.open(stream)
        return cell.base.state if cell.base.version or not cell.busy else None

    # Time and others

    def due(self, stream: str) -> None:
        """Let a stream see what time it is."""
        context = self.contexts[stream.partition("/")[0]]
        wake = context.wake if self._waking else None
        self.tell(stream, wake or context.tick, TIMER)

    def reschedule(self, cell: Cell) -> None:
        """Its state changed: wake up for its soonest deadline."""
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
                    self._overheard(list(map(ROW, batch)))
                    at = batch[-1][0]
            except StoreError as error:
                log.warning("log.unfollowed", extra={"detail": str(error)})
                await asyncio.sleep(PATIENCE)

    def _overheard(self, rows: Sequence[Row]) -> None:
        newest = dict(zip(map(STREAM, rows), rows, strict=True))
        for row in newest.values():
            cell = self.cells.get(row.stream)
            if cell is not None and row.version > cell.base.version:
                cell.newest = row.version
                self.opener.keep_up(cell)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this beside everything else; a failure is never silent."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.critical("task.died", exc_info=error)
            self.failed(error)

    def failed(self, error: BaseException) -> None:
        """Something that should never happen did."""
        self.failures.append(error)
        del self.failures[:-MOST_FAILURES]

    async def settle(self) -> None:
        """Wait until nothing is under way."""
        while tasks := [task for task in self._tasks if task is not asyncio.current_task()]:
            await asyncio.gather(*tasks, return_exceptions=True)

    def abandon(self, no: Refused) -> None:
        """Wait for nothing any more: whoever asked hears this, and never anything else."""
        for task in self._tasks:
            task.cancel()
        for cell in list(self.cells.values()):
            waiting = list(cell.pending())
            cell.busy += 1  # nothing ever happens in it again
            cell.underway, cell.outbox = [], []
            cell.queue.clear()
            for ready in cell.waiting:
                if not ready.done():
                    ready.set_exception(StoreError(no.detail))
            self.refuse(waiting, no)

    def refuse(self, waiting: Iterable[Asked], no: Refused) -> None:
        """Tell each of them; one who cannot be told is no other's loss."""
        for asked in waiting:
            try:
                asked.refuse(no)
            except Exception as error:
                log.exception("answer.failed", extra={"type": asked.message.body.type})
                self.failed(error)
