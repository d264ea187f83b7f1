"""Counters and histograms of the engine; plain numbers that the metrics endpoint reads."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextvars import Context
from time import perf_counter
from typing import NamedTuple, Protocol

from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Reason
from accord.engine.chunk_fast_path import ChunkBatchOutcome
from accord.engine.streams.stream import Outcome

SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
SIZE_BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)


class TimedSpan(NamedTuple):
    """A timed piece of work for tracing; its attributes never contain message content."""

    name: str
    started: float
    ended: float
    attributes: Mapping[str, str | int] = {}


class SpanListener(Protocol):
    """Receives finished work and the parts it consisted of."""

    def __call__(self, work: TimedSpan, parts: Sequence[TimedSpan] = ()) -> None:
        """Called in the context variables of the request that caused the work."""
        ...


class CommitTiming(NamedTuple):
    """Timing of one commit; `decided_at` is when its first message was decided."""

    stream: str
    messages: int
    records: int
    decided_at: float
    started_at: float
    stored_at: float

    def spans(self, now: float) -> tuple[TimedSpan, list[TimedSpan]]:
        """The span of the whole batch, and the spans inside it."""
        about: dict[str, str | int] = {"stream": self.stream, "messages": self.messages}
        parts = [TimedSpan("messages.deliver", self.stored_at, now, about)]
        if self.records:
            kept: dict[str, str | int] = {"stream": self.stream, "records": self.records}
            parts.insert(0, TimedSpan("store.commit", self.started_at, self.stored_at, kept))
        return TimedSpan("messages.handle", self.decided_at, now, about), parts


class Histogram:
    """Bucket counts and a sum, as Prometheus expects them."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class EngineCounters:
    """Counters of one engine; counting a message must cost no more than an addition."""

    __slots__ = (
        "accepted",
        "answer_seconds",
        "commit_seconds",
        "conflicts",
        "events",
        "lost_commits",
        "on_span",
        "records_per_commit",
        "refused",
        "repeated",
        "replay_sizes",
        "slow_disconnects",
        "worker_restarts",
        "worker_seconds",
    )

    def __init__(self) -> None:
        self.accepted: Counter[type[Body]] = Counter()
        self.repeated: Counter[type[Body]] = Counter()
        self.refused: defaultdict[tuple[type[Body] | None, Reason], int] = defaultdict(int)
        self.events: Counter[type[Event]] = Counter()
        self.commit_seconds = Histogram(SECONDS_BUCKETS)
        self.records_per_commit = Histogram(SIZE_BUCKETS)
        self.answer_seconds = Histogram(SECONDS_BUCKETS)
        self.replay_sizes = Histogram(SIZE_BUCKETS)
        self.worker_seconds: defaultdict[str, Histogram] = defaultdict(
            lambda: Histogram(SECONDS_BUCKETS)
        )
        self.worker_restarts: defaultdict[str, int] = defaultdict(int)
        self.on_span: SpanListener | None = None
        self.conflicts = 0
        self.lost_commits = 0
        self.slow_disconnects = 0

    def count_outcomes(self, decided: Sequence[Outcome | ChunkBatchOutcome]) -> None:
        """Count outcomes; refusals are counted by the transport that sends them."""
        for each in decided:
            if isinstance(each, ChunkBatchOutcome):
                self.accepted[type(each.batch.first.body)] += len(each.records)
            elif each.refusal is None:
                counted = self.repeated if each.is_retry else self.accepted
                counted[type(each.submission.message.body)] += 1

    def count_commit(self, records: int, began: float, ended: float) -> None:
        """Count one commit of this many records and its duration."""
        self.commit_seconds.add(ended - began)
        self.records_per_commit.add(records)

    def observe_answer(self, since: float) -> None:
        """Record the time from decision to answer, for a batch first decided at `since`."""
        self.answer_seconds.add(perf_counter() - since)

    def trace_commit(self, batch: CommitTiming, cause: Context) -> None:
        """Report the spans of a batch in the context of the request that caused it."""
        if self.on_span is not None:
            cause.run(self.on_span, *batch.spans(perf_counter()))

    def observe_worker(self, worker: str, began: float) -> None:
        """Record how long a worker took to act."""
        now = perf_counter()
        self.worker_seconds[worker].add(now - began)
        if self.on_span is not None:
            self.on_span(TimedSpan("worker.act", began, now, {"worker": worker}))
