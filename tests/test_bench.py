"""The benchmarks run: what they send is legal, and what they count is in the log."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import hooks, limit, mcp_posts
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


@pytest.mark.timeout(300)
def test_posts_over_mcp_are_measured_beside_two_small_servers(tmp_path: Path) -> None:
    found = mcp_posts.measure(str(tmp_path), 0.2)

    assert min(found.modern.per_cpu_s, found.older.per_cpu_s, found.sdk.per_cpu_s) > 0
    assert found.idle_kib - found.sdk_idle_kib < 30 << 10


@pytest.mark.timeout(300)
def test_gate_hook_and_daemon_stay_within_their_budget(tmp_path: Path) -> None:
    found = hooks.measure(str(tmp_path), 9, 1.0)

    assert found.cpu_ms < 60
    assert found.daemon_mib * 1.048576 < 40
    assert found.daemon_idle < 0.05
