"""The benchmarks run: what they send is legal, and what they count is in the log."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import hooks, keystrokes, limit, mcp_bridge, mcp_posts, mcp_reads, page
from bench.adapters import PROBE_SIZES, Adapter, Agents, Drivers

ROOT = Path(__file__).resolve().parent.parent
TINY = limit.Scale(sessions=2, participants=3, inflight=4, secs=0.5, reps=1)


@pytest.mark.parametrize("adapter", ["agents", "drivers"])
def test_the_load_is_legal_and_all_of_it_is_stored(adapter: str, tmp_path: Path) -> None:
    found = limit.measure(str(tmp_path), TINY, adapter)

    assert 1 <= len(found.accord) == len(found.probe)
    nobody_beats_the_limit_by_far = 0.001 < found.ratio < 10
    assert nobody_beats_the_limit_by_far


@pytest.mark.parametrize("adapter", [Agents("run"), Drivers("run")])
def test_envelopes_are_as_long_as_those_of_the_probe(adapter: Adapter) -> None:
    assert PROBE_SIZES == [len(adapter.event(0, 0, n)) for n in range(5)]


@pytest.mark.timeout(300)
def test_the_table_comes_last_with_the_targets(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    command = [sys.executable, "-m", "bench", "--quick", "--only", "b,f", "--tiny"]

    done = subprocess.run(
        [*command, "--json", str(out), "--dir", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )

    assert "idle connection" in done.stdout.splitlines()[-1]
    assert "at most 24 KiB" in done.stdout.splitlines()[-1]
    assert {"2", "10", "50"} == json.loads(out.read_text())["b"].keys()


def test_keys_are_measured_in_a_bare_and_in_a_supervised_terminal(tmp_path: Path) -> None:
    found = keystrokes.measure(str(tmp_path), keystrokes.TINY)

    assert 0 < found.bare_p50 <= found.bare_p99
    assert 0 < found.supervised_p50 <= found.supervised_p99


def test_posts_over_mcp_are_measured_beside_small_servers(tmp_path: Path) -> None:
    found = asyncio.run(mcp_posts.measure(str(tmp_path), mcp_posts.TINY, ["starlette"]))

    assert found.cpu_us.keys() == {"newest", "older", "starlette"}
    assert min(min(each) for each in found.cpu_us.values()) > 0
    assert found.p50_ms["newest"][0] > 0


def test_reading_over_mcp_is_measured_beside_the_sdk(tmp_path: Path) -> None:
    found = asyncio.run(mcp_reads.measure(str(tmp_path), mcp_reads.TINY, ["many"]))

    assert found.read_us.keys() == {"many", "many, anywhere", "sdk"}
    assert found.unread_us.keys() == {"many"}
    read_in_less_than_the_sdk = found.read_us["many"][0] < found.read_us["sdk"][0]
    assert read_in_less_than_the_sdk


def test_idle_agent_asks_nothing_of_the_server(tmp_path: Path) -> None:
    found = mcp_bridge.measure(str(tmp_path), mcp_bridge.TINY)

    assert found.idle_requests == 0
    starts_sooner_than_the_sdk = found.accord_ms[0] < found.sdk_ms[0]
    assert starts_sooner_than_the_sdk


def test_each_figure_over_mcp_is_judged_round_by_round() -> None:
    us = {"newest": [100.0, 300.0], "older": [100.0, 300.0], "single": [1.0, 1.0]}
    us |= {"starlette": [70.0, 210.0], "sdk": [500.0, 1500.0]}
    memory = {"accord": 60 << 10, "sdk": 70 << 10}
    posts = mcp_posts.Figures(us, {"newest": [1.0], "single": [1.0]}, memory, 101.0)
    sizes = {"short": [100.0], "long": [130.0], "many": [110.0], "sdk": [400.0]}
    anywhere = {f"{name}, anywhere": [1.0] for name in mcp_reads.SIZES}
    reads = mcp_reads.Figures(sizes | anywhere, {name: [1.0] for name in mcp_reads.SIZES})
    bridge = mcp_bridge.Figures([50.0, 61.0, 70.0], [1000.0] * 3, 60.0, 3)

    judged = [row.met for row in mcp_posts.rows(posts)]
    assert judged == [True, True, True, True, True, False]
    judged = [row.met for row in mcp_reads.rows(reads, mcp_reads.Scale())]
    assert judged == [False, None, True, True, True, None, True, True]
    assert [row.met for row in mcp_bridge.rows(bridge)] == [False, True, False]


@pytest.mark.timeout(300)
def test_gate_hook_and_daemon_stay_within_their_budget(tmp_path: Path) -> None:
    found = hooks.measure(str(tmp_path), 9, 1.0)

    assert found.cpu_ms < 60
    assert found.daemon_mib * 1.048576 < 40
    assert found.daemon_idle < 0.05


def test_page_is_measured_in_a_browser(tmp_path: Path) -> None:
    found = asyncio.run(page.measure(str(tmp_path), page.TINY))

    assert found.rows >= page.TINY.messages
    assert found.scrolling.frames > 0
    assert 0 < found.streaming.longest_task_cpu_ms
    assert 0 < found.first_paint[0] <= found.interactive[0]
    a_page_holds_megabytes = 1 < found.heap_at_a_fifth_mib < 100
    assert a_page_holds_megabytes
    assert len(page.rows(found)) == 12
