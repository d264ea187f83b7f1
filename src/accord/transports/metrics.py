"""`/metrics`: one table says what there is to know; it is read when somebody asks.

No label ever holds a session's or a participant's name: the sets of labels are closed.
"""

import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from accord import __version__
from accord.core.dialects.codes import CODES
from accord.core.dialects.pvp import BODIES
from accord.core.kernel.log import Body, Event
from accord.core.kernel.refusal import Why
from accord.core.room.state import Presence
from accord.core.room.timeouts import GateTimedOut
from accord.core.room.votes import GatePassed, Rejected
from accord.engine.ports import Measured
from accord.engine.tally import Spread
from accord.transports.facts import Facts, Sources, look

UNKNOWN = "unknown"
SPOKEN = {body: name for name, body in BODIES.items()}
DECIDED: Mapping[type[Event], str] = {
    GatePassed: "approved",
    Rejected: "rejected",
    GateTimedOut: "timed_out",
}
LIMITED = "RATE_LIMITED"

Labels = tuple[str, ...]
Sample = tuple[Labels, float]


Reader = Callable[[Facts], Iterable[tuple[Labels, float | Spread]]]


class Row(NamedTuple):
    """One metric: its name, its kind, what it says, its labels, and how it is read."""

    name: str
    kind: str
    help: str
    labels: Labels
    read: Reader


# How each is read


def by_type(facts: Facts) -> Iterator[Sample]:
    """Messages by type and outcome."""
    tally = facts.tally
    refused: defaultdict[type[Body] | None, int] = defaultdict(int)
    for (kind, _), count in tally.refused.items():
        refused[kind] += count
    outcomes: dict[str, Mapping[Any, int]] = {
        "accepted": tally.taken,
        "repeated": tally.repeated,
        "refused": refused,
    }
    for outcome, counts in outcomes.items():
        for kind, count in counts.items():
            if kind is None or kind in SPOKEN:
                yield (SPOKEN[kind] if kind else UNKNOWN, outcome), count


def by_code(facts: Facts) -> Iterator[Sample]:
    """Refusals by code and reason."""
    counts: defaultdict[Why, int] = defaultdict(int)
    for (_, why), count in facts.tally.refused.items():
        counts[why] += count
    for why, count in counts.items():
        yield (CODES[why].pvp, why.value), count


def limited(facts: Facts) -> Iterator[Sample]:
    """Refusals for talking too much."""
    yield (), sum(count for (code, _), count in by_code(facts) if code == LIMITED)


def decided(facts: Facts) -> Iterator[Sample]:
    """Gates by how they ended."""
    for event, outcome in DECIDED.items():
        yield (outcome,), facts.tally.events.get(event, 0)


def connections(facts: Facts) -> Iterator[Sample]:
    """Open connections."""
    sockets = len(facts.sources.hall.connections)
    yield ("websocket",), sockets
    yield ("http",), max(0, len(facts.sources.porch.here) - sockets)


def stored(facts: Facts) -> Iterator[Sample]:
    """Bytes of the store."""
    events = facts.sources.engine.events
    if isinstance(events, Measured):
        yield from (((part,), size) for part, size in events.sizes().items())


def behind(facts: Facts) -> Iterator[Sample]:
    """Records that workers have not seen."""
    if facts.position is not None:
        for name, reached in facts.reached.items():
            yield (name,), max(0, facts.position - reached)


def one(value: Callable[[Facts], float | Spread]) -> Reader:
    """A metric without labels."""
    return lambda facts: [((), value(facts))]


def position(facts: Facts) -> Iterator[Sample]:
    """The newest record."""
    if facts.position is not None:
        yield (), facts.position


def certified(facts: Facts) -> Iterator[Sample]:
    """When the certificate ends; nothing without one."""
    if facts.sources.certificate_ends is not None:
        yield (), facts.sources.certificate_ends


COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

METRICS: tuple[Row, ...] = (
    Row(
        "accord_build_info",
        GAUGE,
        "Always 1; the labels say which version runs",
        ("version", "python"),
        lambda _: [((__version__, platform.python_version()), 1)],
    ),
    Row(
        "accord_messages_total",
        COUNTER,
        "Messages by type, and by what became of them: accepted, repeated (a retry) or refused",
        ("type", "outcome"),
        by_type,
    ),
    Row("accord_refusals_total", COUNTER, "Messages refused", ("code", "reason"), by_code),
    Row("accord_rate_limited_total", COUNTER, "Messages refused for coming too fast", (), limited),
    Row(
        "accord_commits_total",
        COUNTER,
        "Appends of one session's records: kept, raced (somebody else was first) or lost",
        ("outcome",),
        lambda f: [
            (("kept",), sum(f.tally.commits.counts)),
            (("raced",), f.tally.races),
            (("lost",), f.tally.lost),
        ],
    ),
    Row(
        "accord_commit_seconds",
        HISTOGRAM,
        "How long the store took to make an append durable",
        (),
        one(lambda f: f.tally.commits),
    ),
    Row(
        "accord_commit_records",
        HISTOGRAM,
        "Records in one append",
        (),
        one(lambda f: f.tally.records),
    ),
    Row(
        "accord_delivery_seconds",
        HISTOGRAM,
        "From deciding the first message of a batch until everybody was told of all of it",
        (),
        one(lambda f: f.tally.delays),
    ),
    Row(
        "accord_replay_messages",
        HISTOGRAM,
        "Messages that somebody who came in was told at once, because they had missed them",
        (),
        one(lambda f: f.tally.replays),
    ),
    Row("accord_connections", GAUGE, "Open connections", ("transport",), connections),
    Row(
        "accord_readers_cut_off_total",
        COUNTER,
        "Connections that were ended because they did not read",
        (),
        one(lambda f: f.tally.cut_off + f.sources.porch.unread.cut),
    ),
    Row(
        "accord_sessions_open",
        GAUGE,
        "Sessions in memory that have not ended",
        (),
        one(lambda f: f.census.sessions),
    ),
    Row(
        "accord_members",
        GAUGE,
        "Members of sessions in memory, by presence",
        ("presence",),
        lambda f: [((each.value,), f.census.members.get(each, 0)) for each in Presence],
    ),
    Row(
        "accord_gates_open",
        GAUGE,
        "Open gates of sessions in memory",
        (),
        one(lambda f: f.census.gates),
    ),
    Row("accord_gates_decided_total", COUNTER, "Gates that ended", ("outcome",), decided),
    Row(
        "accord_http_requests_total",
        COUNTER,
        "HTTP requests by the route that took them",
        ("method", "route", "status"),
        lambda f: [
            ((method, route, str(status)), count)
            for (method, route, status), count in f.sources.requests.counts.items()
        ],
    ),
    Row(
        "accord_http_request_seconds",
        HISTOGRAM,
        "How long an HTTP request took; streams and long polls as long as they were open",
        ("route",),
        lambda f: [((route,), each) for route, each in f.sources.requests.seconds.items()],
    ),
    Row("accord_log_position", GAUGE, "The newest record of the log", (), position),
    Row("accord_store_bytes", GAUGE, "Bytes of the store's files", ("part",), stored),
    Row(
        "accord_worker_behind_records",
        GAUGE,
        "Records that a worker has not taken care of yet",
        ("worker",),
        behind,
    ),
    Row(
        "accord_worker_act_seconds",
        HISTOGRAM,
        "How long a worker took to act",
        ("worker",),
        lambda f: [((name,), each) for name, each in f.tally.acts.items()],
    ),
    Row(
        "accord_worker_restarts_total",
        COUNTER,
        "Times a worker failed and began again",
        ("worker",),
        lambda f: [((name,), count) for name, count in f.tally.restarts.items()],
    ),
    Row(
        "accord_loop_lag_seconds",
        HISTOGRAM,
        "How late the event loop was, measured twice a second",
        (),
        one(lambda f: f.sources.lag.spread),
    ),
    Row(
        "accord_tls_certificate_expiry_timestamp_seconds",
        GAUGE,
        "When the TLS certificate in use expires, in seconds since 1970; not there without TLS",
        (),
        certified,
    ),
)

FAMILIES = {
    COUNTER: CounterMetricFamily,
    GAUGE: GaugeMetricFamily,
    HISTOGRAM: HistogramMetricFamily,
}


class _Looked(Collector):
    """The table, as one look found it."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def collect(self) -> Iterator[Metric]:
        for row in METRICS:
            family = FAMILIES[row.kind](row.name, row.help, labels=row.labels)
            for labels, value in row.read(self.facts):
                if isinstance(value, Spread):
                    family.add_metric(labels, *buckets(value))
                else:
                    family.add_metric(labels, value)
            yield family


def buckets(spread: Spread) -> tuple[list[tuple[str, float]], float]:
    """A spread as Prometheus counts: each bucket holds all below it."""
    total, found = 0, list[tuple[str, float]]()
    for bound, count in zip((*spread.bounds, float("inf")), spread.counts, strict=True):
        total += count
        found.append(("+Inf" if bound == float("inf") else str(float(bound)), total))
    return found, spread.total


async def text(sources: Sources) -> bytes:
    """Everything, in Prometheus' words; the registry is of this one look."""
    registry = CollectorRegistry()
    registry.register(_Looked(await look(sources)))
    ProcessCollector(registry=registry)
    return generate_latest(registry)
