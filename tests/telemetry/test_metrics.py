"""Metrics, access to them, and that they contain no names."""

import asyncio
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as families
from starlette.requests import Request

from accord.engine.counters import Histogram
from accord.server.app import Server
from accord.server.options import ServerOptions
from accord.stores.memory import MemoryLog
from accord.telemetry.metrics import METRICS, histogram_buckets
from accord.telemetry.metrics_endpoint import MetricsEndpoint, is_direct_loopback
from tests.helpers.attacks.approval_scene import PROMPT, get, scene
from tests.helpers.servers.server_process import ServerProcess, run_server

NAME = re.compile(r"accord_[a-z_]+")
Found = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def scraped(server: ServerProcess, **headers: str) -> Found:
    status, said = await get(f"{server.url}/metrics", **headers)
    assert status == 200
    return read(said.decode())


def read(said: str) -> Found:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families(said)
        for sample in family.samples
    }


def value(found: Found, name: str, **labels: str) -> float:
    return found.get((name, tuple(sorted(labels.items()))), 0)


async def test_sessions_are_counted_and_not_named(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        here = await scene(server)
        await here.alice.send("prompt.submit", here.session, PROMPT)
        await here.alice.receive_until("prompt.submit")
        await here.alice.send("prompt.submit", here.session, {"content": 1})
        await here.alice.receive_until("error")
        await here.alice.socket.send("nonsense")
        await here.alice.receive_until("error")
        found = await scraped(server)
        said = (await get(f"{server.url}/metrics"))[1].decode()
        await here.alice.socket.close()
        await here.bot.socket.close()

    assert value(found, "accord_messages_total", type="prompt.submit", outcome="accepted") == 1
    assert value(found, "accord_messages_total", type="unknown", outcome="refused") == 2
    assert value(found, "accord_refusals_total", code="INVALID_MESSAGE", reason="malformed") == 2
    assert value(found, "accord_connections", transport="websocket") == 2
    assert value(found, "accord_sessions_open") == 1
    assert value(found, "accord_members", presence="active") == 2
    assert value(found, "accord_commit_seconds_count") >= 3
    assert value(found, "accord_store_bytes", part="wal") > 0
    assert value(found, "accord_log_position") >= 3
    assert value(found, "process_resident_memory_bytes") > 0
    for name in (here.session, "alice", "bot", PROMPT["content"]):
        assert name not in said


async def test_endpoint_exposes_exactly_the_metrics_of_the_table(tmp_path: Path) -> None:
    server = Server(ServerOptions(home=tmp_path), MemoryLog())
    server.engine.counters.observe_worker("heads", 0)
    server.engine.counters.worker_restarts["heads"] += 1
    said = (await server.metrics_endpoint.render()).decode()

    told = {line.split()[2] for line in said.splitlines() if line.startswith("# TYPE accord_")}
    assert told == {row.name for row in METRICS}
    assert all(NAME.fullmatch(name) for name in told)


async def test_servers_in_one_process_have_separate_counters(tmp_path: Path) -> None:
    one = Server(ServerOptions(home=tmp_path / "one"), MemoryLog())
    two = Server(ServerOptions(home=tmp_path / "two"), MemoryLog())
    one.engine.counters.slow_disconnects += 1

    found = [read((await each.metrics_endpoint.render()).decode()) for each in (one, two)]
    assert [value(each, "accord_readers_cut_off_total") for each in found] == [1, 0]


def test_histogram_buckets_are_cumulative() -> None:
    spread = Histogram((1, 10))
    for each in (0.5, 5, 50):
        spread.add(each)
    assert histogram_buckets(spread) == ([("1.0", 1), ("10.0", 2), ("+Inf", 3)], 55.5)


async def test_remote_access_requires_an_operator_token(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        url = f"{server.url}/metrics"
        far = {"X-Forwarded-For": "203.0.113.7"}
        assert (await get(url, **far))[0] == 401
        assert (await get(url, Host="accord.example"))[0] == 401
        assert (await get(url, server.issue_token("alice"), **far))[0] == 403
        assert (await get(url, server.admin_token, **far))[0] == 200


@pytest.mark.parametrize(
    ("peer", "host", "near"),
    [
        ("127.0.0.1", "localhost:7420", True),
        ("::1", "[::1]:7420", True),
        ("127.0.0.1", "rebound.example", False),
        ("192.0.2.1", "localhost", False),
        ("", "localhost", False),
    ],
)
def test_loopback_access_excludes_proxied_requests(peer: str, host: str, near: bool) -> None:
    headers = [(b"host", host.encode())]
    scope = {"type": "http", "headers": headers, "client": (peer, 1) if peer else None}
    assert is_direct_loopback(Request(scope)) is near


async def test_frequent_scrapes_are_cached() -> None:
    looks = 0

    async def look() -> bytes:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return b"x 1\n"

    at = 100.0
    page = MetricsEndpoint(look, None, lambda: at)  # type: ignore[arg-type]
    scope = {"type": "http", "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1)}
    answers = await asyncio.gather(*(page.metrics(Request(scope)) for _ in range(100)))
    assert {answer.body for answer in answers} == {b"x 1\n"}
    assert looks == 1
    at += 1
    await page.metrics(Request(scope))
    assert looks == 2
