"""What happened, in numbers: plain integers that whoever watches reads when it likes."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextvars import Context
from time import perf_counter
from typing import NamedTuple, Protocol

from accord.core.kernel.log import Body, Event
from accord.core.kernel.refusal import Why
from accord.engine.cell import Outcome
from accord.engine.run import Run

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)


class Stretch(NamedTuple):
    """A stretch of work: its name, when it began and ended, and what it was about; no content."""

    name: str
    began: float
    ended: float
    about: Mapping[str, str | int] = {}


class Trace(Protocol):
    """Hears of work that is over, and of the stretches it consisted of."""

    def __call__(self, work: Stretch, parts: Sequence[Stretch] = ()) -> None:
        """Within the context in which the work was asked for."""
        ...


class Batch(NamedTuple):
    """Messages of a stream that were committed together: the first was decided at `since`."""

    stream: str
    messages: int
    records: int
    since: float
    began: float
    stored: float

    def told(self, now: float) -> tuple[Stretch, list[Stretch]]:
        """The whole, and what it consisted of."""
        about: dict[str, str | int] = {"stream": self.stream, "messages": self.messages}
        parts = [Stretch("messages.deliver", self.stored, now, about)]
        if self.records:
            kept: dict[str, str | int] = {"stream": self.stream, "records": self.records}
            parts.insert(0, Stretch("store.commit", self.began, self.stored, kept))
        return Stretch("messages.handle", self.since, now, about), parts


class Spread:
    """How many values lie up to each bound, and their sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """One more value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Tally:
    """Counts per message, and measures per commit; an addition is all that a message costs."""

    __slots__ = (
        "acts",
        "commits",
        "cut_off",
        "delays",
        "events",
        "lost",
        "races",
        "records",
        "refused",
        "repeated",
        "replays",
        "restarts",
        "taken",
        "trace",
    )

    def __init__(self) -> None:
        self.taken: Counter[type[Body]] = Counter()
        self.repeated: Counter[type[Body]] = Counter()
        self.refused: defaultdict[tuple[type[Body] | None, Why], int] = defaultdict(int)
        self.events: Counter[type[Event]] = Counter()
        self.commits = Spread(SECONDS)
        self.records = Spread(SIZES)
        self.delays = Spread(SECONDS)
        self.replays = Spread(SIZES)
        self.acts: defaultdict[str, Spread] = defaultdict(lambda: Spread(SECONDS))
        self.restarts: defaultdict[str, int] = defaultdict(int)
        self.trace: Trace | None = None
        self.races = 0
        self.lost = 0
        self.cut_off = 0

    def told(self, decided: Sequence[Outcome | Run]) -> None:
        """What became of messages, as it is told; refusals are counted where they are answered."""
        for each in decided:
            if isinstance(each, Run):
                self.taken[type(each.pieces.first.body)] += len(each.sealed)
            elif each.refused is None:
                counted = self.repeated if each.again else self.taken
                counted[type(each.asked.message.body)] += 1

    def committed(self, records: int, began: float, ended: float) -> None:
        """The store kept so many records of a stream."""
        self.commits.add(ended - began)
        self.records.add(records)

    def delivered(self, since: float) -> None:
        """Messages were answered, the first of which was decided at `since`."""
        self.delays.add(perf_counter() - since)

    def traced(self, batch: Batch, cause: Context) -> None:
        """The messages of a batch were answered, which was asked for in the context `cause`."""
        if self.trace is not None:
            cause.run(self.trace, *batch.told(perf_counter()))

    def acted(self, worker: str, began: float) -> None:
        """A worker has done what it does."""
        now = perf_counter()
        self.acts[worker].add(now - began)
        if self.trace is not None:
            self.trace(Stretch("worker.act", began, now, {"worker": worker}))
