"""`/metrics`: a table of all metrics and how to read each one.

No label ever contains the name of a session or participant; every set of label values is closed.
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
from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.dialects.pvp import BODIES
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Reason
from accord.core.room.approval.gate_timeouts import GateTimedOut
from accord.core.room.approval.votes import GatePassed, GateRejected
from accord.core.room.state import Presence
from accord.engine.counters import Histogram
from accord.engine.ports import ConnectedStore, MeasurableStore
from accord.telemetry.measurements import Measurements, MetricSources, measure

UNKNOWN_TYPE = "unknown"
TYPE_BY_BODY = {body: name for name, body in BODIES.items()}
GATE_OUTCOMES: Mapping[type[Event], str] = {
    GatePassed: "approved",
    GateRejected: "rejected",
    GateTimedOut: "timed_out",
}
RATE_LIMITED_CODE = "RATE_LIMITED"

Labels = tuple[str, ...]
Sample = tuple[Labels, float]


SampleReader = Callable[[Measurements], Iterable[tuple[Labels, float | Histogram]]]


class MetricRow(NamedTuple):
    """One metric: name, kind, help text, labels, and how it is read."""

    name: str
    kind: str
    help: str
    labels: Labels
    samples: SampleReader


# How each is read


def messages_by_type(facts: Measurements) -> Iterator[Sample]:
    tally = facts.counters
    refused: defaultdict[type[Body] | None, int] = defaultdict(int)
    for (kind, _), count in tally.refused.items():
        refused[kind] += count
    outcomes: dict[str, Mapping[Any, int]] = {
        "accepted": tally.accepted,
        "repeated": tally.repeated,
        "refused": refused,
    }
    for outcome, counts in outcomes.items():
        for kind, count in counts.items():
            if kind is None or kind in TYPE_BY_BODY:
                yield (TYPE_BY_BODY[kind] if kind else UNKNOWN_TYPE, outcome), count


def refusals_by_code(facts: Measurements) -> Iterator[Sample]:
    counts: defaultdict[Reason, int] = defaultdict(int)
    for (_, why), count in facts.counters.refused.items():
        counts[why] += count
    for why, count in counts.items():
        yield (ERROR_CODES[why].pvp, why.value), count


def rate_limited_count(facts: Measurements) -> Iterator[Sample]:
    """Refusals because of a rate limit."""
    yield (
        (),
        sum(count for (code, _), count in refusals_by_code(facts) if code == RATE_LIMITED_CODE),
    )


def gates_by_outcome(facts: Measurements) -> Iterator[Sample]:
    for event, outcome in GATE_OUTCOMES.items():
        yield (outcome,), facts.counters.events.get(event, 0)


def connections_by_transport(facts: Measurements) -> Iterator[Sample]:
    sockets = len(facts.sources.websockets.connections)
    yield ("websocket",), sockets
    yield ("http",), max(0, len(facts.sources.connection_limits.connected) - sockets)


def log_lag(facts: Measurements) -> Iterator[Sample]:
    """Nothing if the store did not respond, or the log is not followed yet."""
    reached = facts.sources.engine.followed_position
    if facts.position is not None and reached is not None:
        yield (), max(0, facts.position - reached)


def servers_on_log(facts: Measurements) -> Iterator[Sample]:
    """This server and the others."""
    if (servers := facts.sources.engine.servers) is not None:
        yield (), len(servers.link.others) + 1


def store_retries(facts: Measurements) -> Iterator[Sample]:
    """Only of a store that is reached over a network."""
    if isinstance(events := facts.sources.engine.events, ConnectedStore):
        yield (), events.retries


def store_bytes(facts: Measurements) -> Iterator[Sample]:
    events = facts.sources.engine.events
    if isinstance(events, MeasurableStore):
        yield from (((part,), size) for part, size in events.sizes().items())


def worker_lag(facts: Measurements) -> Iterator[Sample]:
    """Records that workers have not handled yet."""
    if facts.position is not None:
        for name, reached in facts.worker_positions.items():
            yield (name,), max(0, facts.position - reached)


def single_sample(value: Callable[[Measurements], float | Histogram]) -> SampleReader:
    """A metric without labels."""
    return lambda facts: [((), value(facts))]


def log_position(facts: Measurements) -> Iterator[Sample]:
    if facts.position is not None:
        yield (), facts.position


def certificate_expiry(facts: Measurements) -> Iterator[Sample]:
    """Empty without TLS."""
    if facts.sources.certificate_expires_at is not None:
        yield (), facts.sources.certificate_expires_at


COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

METRICS: tuple[MetricRow, ...] = (
    MetricRow(
        "accord_build_info",
        GAUGE,
        "Always 1; the labels say which version runs",
        ("version", "python"),
        lambda _: [((__version__, platform.python_version()), 1)],
    ),
    MetricRow(
        "accord_messages_total",
        COUNTER,
        "Messages by type, and by what became of them: accepted, repeated (a retry) or refused",
        ("type", "outcome"),
        messages_by_type,
    ),
    MetricRow(
        "accord_refusals_total", COUNTER, "Messages refused", ("code", "reason"), refusals_by_code
    ),
    MetricRow(
        "accord_rate_limited_total",
        COUNTER,
        "Messages refused for coming too fast",
        (),
        rate_limited_count,
    ),
    MetricRow(
        "accord_commits_total",
        COUNTER,
        "Appends of one session's records: kept, raced (another writer was first) or lost",
        ("outcome",),
        lambda f: [
            (("kept",), sum(f.counters.commit_seconds.counts)),
            (("raced",), f.counters.conflicts),
            (("lost",), f.counters.lost_commits),
        ],
    ),
    MetricRow(
        "accord_commit_seconds",
        HISTOGRAM,
        "How long the store took to make an append durable",
        (),
        single_sample(lambda f: f.counters.commit_seconds),
    ),
    MetricRow(
        "accord_commit_records",
        HISTOGRAM,
        "Records in one append",
        (),
        single_sample(lambda f: f.counters.records_per_commit),
    ),
    MetricRow(
        "accord_delivery_seconds",
        HISTOGRAM,
        "From deciding the first message of a batch until all of it was delivered",
        (),
        single_sample(lambda f: f.counters.answer_seconds),
    ),
    MetricRow(
        "accord_replay_messages",
        HISTOGRAM,
        "Messages replayed to a connection that joined",
        (),
        single_sample(lambda f: f.counters.replay_sizes),
    ),
    MetricRow(
        "accord_connections", GAUGE, "Open connections", ("transport",), connections_by_transport
    ),
    MetricRow(
        "accord_readers_cut_off_total",
        COUNTER,
        "Connections that were ended because they did not read",
        (),
        single_sample(
            lambda f: f.counters.slow_disconnects + f.sources.connection_limits.unread.cut_off_count
        ),
    ),
    MetricRow(
        "accord_sessions_open",
        GAUGE,
        "Sessions in memory that have not ended",
        (),
        single_sample(lambda f: f.session_counts.sessions),
    ),
    MetricRow(
        "accord_members",
        GAUGE,
        "Members of sessions in memory, by presence",
        ("presence",),
        lambda f: [((each.value,), f.session_counts.members.get(each, 0)) for each in Presence],
    ),
    MetricRow(
        "accord_gates_open",
        GAUGE,
        "Open gates of sessions in memory",
        (),
        single_sample(lambda f: f.session_counts.gates),
    ),
    MetricRow(
        "accord_gates_decided_total", COUNTER, "Gates that ended", ("outcome",), gates_by_outcome
    ),
    MetricRow(
        "accord_http_requests_total",
        COUNTER,
        "HTTP requests by the route that took them",
        ("method", "route", "status"),
        lambda f: [
            ((method, route, str(status)), count)
            for (method, route, status), count in f.sources.requests.counts.items()
        ],
    ),
    MetricRow(
        "accord_http_request_seconds",
        HISTOGRAM,
        "How long an HTTP request took; streams and long polls as long as they were open",
        ("route",),
        lambda f: [((route,), each) for route, each in f.sources.requests.seconds.items()],
    ),
    MetricRow("accord_log_position", GAUGE, "The newest record of the log", (), log_position),
    MetricRow(
        "accord_log_behind_records",
        GAUGE,
        "Records of the log that this server has not read yet",
        (),
        log_lag,
    ),
    MetricRow(
        "accord_servers",
        GAUGE,
        "Servers that use the log, this one included; only where a store allows several",
        (),
        servers_on_log,
    ),
    MetricRow(
        "accord_store_retries_total",
        COUNTER,
        "Commits that were sent again after a lost connection; not there for files",
        (),
        store_retries,
    ),
    MetricRow("accord_store_bytes", GAUGE, "Bytes of the store's files", ("part",), store_bytes),
    MetricRow(
        "accord_worker_behind_records",
        GAUGE,
        "Records that a worker has not taken care of yet",
        ("worker",),
        worker_lag,
    ),
    MetricRow(
        "accord_worker_act_seconds",
        HISTOGRAM,
        "How long a worker took to act",
        ("worker",),
        lambda f: [((name,), each) for name, each in f.counters.worker_seconds.items()],
    ),
    MetricRow(
        "accord_worker_restarts_total",
        COUNTER,
        "Times a worker failed and began again",
        ("worker",),
        lambda f: [((name,), count) for name, count in f.counters.worker_restarts.items()],
    ),
    MetricRow(
        "accord_loop_lag_seconds",
        HISTOGRAM,
        "How late the event loop was, measured twice a second",
        (),
        single_sample(lambda f: f.sources.loop_lag.histogram),
    ),
    MetricRow(
        "accord_tls_certificate_expiry_timestamp_seconds",
        GAUGE,
        "When the TLS certificate in use expires, in seconds since 1970; not there without TLS",
        (),
        certificate_expiry,
    ),
)

FAMILIES = {
    COUNTER: CounterMetricFamily,
    GAUGE: GaugeMetricFamily,
    HISTOGRAM: HistogramMetricFamily,
}


class _MeasurementCollector(Collector):
    """Renders the table from one snapshot."""

    def __init__(self, facts: Measurements) -> None:
        self.measurements = facts

    def collect(self) -> Iterator[Metric]:
        for row in METRICS:
            family = FAMILIES[row.kind](row.name, row.help, labels=row.labels)
            for labels, value in row.samples(self.measurements):
                if isinstance(value, Histogram):
                    family.add_metric(labels, *histogram_buckets(value))
                else:
                    family.add_metric(labels, value)
            yield family


def histogram_buckets(spread: Histogram) -> tuple[list[tuple[str, float]], float]:
    """A histogram with cumulative buckets, as Prometheus expects."""
    total, found = 0, list[tuple[str, float]]()
    for bound, count in zip((*spread.bounds, float("inf")), spread.counts, strict=True):
        total += count
        found.append(("+Inf" if bound == float("inf") else str(float(bound)), total))
    return found, spread.total


async def render_metrics(sources: MetricSources) -> bytes:
    """All metrics in Prometheus' text format, with a fresh registry for each request."""
    registry = CollectorRegistry()
    registry.register(_MeasurementCollector(await measure(sources)))
    ProcessCollector(registry=registry)
    return generate_latest(registry)
