"""Committing: what was decided becomes durable in natural batches; then everybody is told."""

import logging
from collections.abc import Sequence
from contextvars import copy_context
from copy import copy
from itertools import dropwhile, islice
from operator import attrgetter
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from accord.core.kernel.log import fold
from accord.core.kernel.refusal import Refused
from accord.engine import proven
from accord.engine.cell import Asked, Cell, Outcome, Place
from accord.engine.opener import kind_of
from accord.engine.ports import Conflict, Duplicate, Sealed, StoreError
from accord.engine.run import Run
from accord.engine.stamp import chained
from accord.engine.tally import Batch

if TYPE_CHECKING:
    from accord.engine.engine import Engine

log = logging.getLogger("accord.engine")

EVENT, RECORD = attrgetter("record.event"), attrgetter("record")
# So many are looked up at once.
MOST_RETRIES = 500


class Committer:
    """One commit per stream at a time; what is decided meanwhile shares the next one."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine

    def post(self, cell: Cell, outcome: Outcome | Run) -> None:
        """Tell what became of a message, once everything decided before it is durable."""
        outbox = cell.outbox
        if not outbox:
            if not cell.made and not cell.committing:
                self._tell(cell, [outcome])  # an answer that waits for nothing
                return
            cell.since = perf_counter()
            cell.cause = copy_context() if self.engine.tally.trace is not None else None
        outbox.append(outcome)
        self.engine.load.more(cell, outcome.sealed)
        if not cell.committing:
            cell.committing = True
            self.engine.spawn(self._commit(cell))

    async def _commit(self, cell: Cell) -> None:
        tally = self.engine.tally
        while cell.outbox:
            made, cell.made = cell.made, []
            cell.underway, cell.outbox = cell.outbox, []
            after = copy(cell.place) if made else cell.base
            since, cause, decided = cell.since, cell.cause, cell.underway
            began, size = perf_counter(), cell.unstored
            stored = began
            try:
                if made:
                    rows = chained(cell.stream, cell.base.hash, made)
                    after.hash = rows[-1].hash
                    await self.engine.events.append(cell.stream, cell.base.version, rows)
                    stored = perf_counter()
                    tally.committed(len(rows), began, stored)
            except (Conflict, Duplicate) as race:
                tally.races += 1
                self.engine.load.less(cell, cell.unstored)
                cell.busy += 1
                await self.engine.opener.held(cell, self._decide_again(cell, race))
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody is left waiting
                self._lose(cell, error)
            else:
                self.engine.load.less(cell, size)
                self._committed(cell, after, made)
                tally.delivered(since)
                if cause is not None:
                    messages = sum(1 for each in decided for _ in each.waiting())
                    batch = Batch(cell.stream, messages, len(made), since, began, stored)
                    tally.traced(batch, cause)
        cell.committing = False
        self.engine.opener.keep_up(cell)
        self.engine.opener.let_go(cell)

    def _committed(self, cell: Cell, after: Place, fresh: Sequence[Sealed]) -> None:
        """What was decided is durable now, and the stream stands behind it."""
        before, cell.base = cell.base, after
        outbox, cell.underway = cell.underway, []
        turned = after.state is not before.state
        cell.remember(fresh)
        self._tell(cell, outbox)
        self.publish(cell.stream, fresh, turned=turned)
        if turned:
            cell.flows.clear()
            self.engine.reschedule(cell)
        if self.engine.peers.unsaid and after is not before:
            self.engine.peers.say_again(cell.stream)
        if self.engine.snapshots.due(cell):
            self.engine.spawn(self.engine.snapshots.take(cell))
        if self.engine.check:
            self.engine.spawn(self._check(cell))

    def _tell(self, cell: Cell, outbox: Sequence[Outcome | Run]) -> None:
        """The room and everybody who asked, whatever happens."""
        try:
            self.engine.peers.deliver(cell, outbox)
        except Exception as error:
            log.exception("commit.untold", extra={"stream": cell.stream})
            self.engine.failed(error)
            self.engine.peers.cut_off(cell.stream)
        self._answer(outbox)
        self.engine.tally.told(outbox)

    def _answer(self, outbox: Sequence[Outcome | Run]) -> None:
        """Everybody who asked; one who cannot be told is no other's loss."""
        for outcome in outbox:
            if isinstance(outcome, Run):
                continue
            try:
                outcome.asked.tell(outcome)
            except Exception as error:
                log.exception("answer.failed", extra={"type": outcome.asked.message.body.type})
                self.engine.failed(error)

    def publish(self, stream: str, fresh: Sequence[Sealed], *, turned: bool) -> None:
        """Let every listener of the process hear; one that fails is no other's loss."""
        self.engine.tally.events.update(map(type, map(EVENT, fresh)))
        concerned = self.engine.heard + self.engine.turned if turned else self.engine.heard
        for listener in concerned if fresh else ():
            try:
                listener(stream, fresh)
            except Exception as error:
                log.exception("listener.failed", extra={"stream": stream})
                self.engine.failed(error)

    async def _decide_again(self, cell: Cell, race: Conflict | Duplicate) -> None:
        """Somebody was faster: drop what ran ahead, fold what is there, decide once more."""
        waiting = cell.undecide()
        cell.queue.extendleft(reversed(waiting))
        await self.engine.opener.catch_up(cell)
        if isinstance(race, Duplicate):
            await self._tell_apart(cell, waiting, race.id)

    async def _tell_apart(self, cell: Cell, waiting: list[Asked], id: str) -> None:
        """A retry from before the window, or an id of ours that somebody has used up."""
        retries = dropwhile(lambda asked: asked.message.id != id, waiting)
        behind = list(islice(retries, MOST_RETRIES))
        # One retry is seldom alone, and to decide all of them anew for each would take for ever.
        ids = [each for asked in behind if (each := asked.message.id) not in cell.index]
        found = await self.engine.decider.find(cell, ids)
        for asked in behind:
            if before := found.get(asked.message.id):
                asked.found = {**asked.found, asked.message.id: before}
        if not behind:
            # The ids we make follow from the instant: another one gives another id.
            later = max(self.engine.clock.now() + cell.ahead, cell.base.at) + 1
            cell.stand(replace(cell.base, at=later))

    def _lose(self, cell: Cell, error: Exception) -> None:
        """The store would not keep it: say so and stand where the log stands."""
        self.engine.tally.lost += 1
        surprise = None if isinstance(error, StoreError) else error
        detail = "" if surprise else str(error)
        about = {"stream": cell.stream, "detail": detail}
        log.error("commit.lost", extra=about, exc_info=surprise)
        lost = cell.undecide()
        self.engine.load.less(cell, cell.unstored)
        cell.forget_pending()
        # What was refused may have been refused because of what is lost.
        told = error.told if isinstance(error, StoreError) else str(error)
        no = Refused(kind_of(error), f"It could not be stored, so nothing was changed: {told}")
        self._tell(cell, [Outcome(asked, refused=no) for asked in lost])

    async def _check(self, cell: Cell) -> None:
        """Folding afresh must give the state at hand."""
        base = cell.base
        rows = await proven.read(self.engine.events, cell.stream)
        sealed = map(self.engine.unsealed, [r for r in rows if r.version <= base.version])
        state = fold(cell.context, cell.context.start(cell.stream), map(RECORD, sealed))
        if state != base.state:
            log.critical("state.differs", extra={"stream": cell.stream})
            raise AssertionError(f"{cell.stream} at {base.version}: {state} is not {base.state}")
