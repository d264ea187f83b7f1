"""The ratio to the limit: the same load on the probe and on Accord, in turns."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bench import probe as limit
from bench.machine import busy_s, cores, cpu_s
from bench.servers import ROOT, Running, accord, on_core, probe, stored, temporary_directory

# A run beside which others used more than this share of a core says little about either server.
MAX_FOREIGN_LOAD = 0.25
KINDS = {"agents": "response.chunked", "drivers": "prompt.submitted"}


class Scale(NamedTuple):
    """How much is sent; the definition of the ratio is the default."""

    sessions: int = 5
    participants: int = 10
    inflight: int = 16
    secs: float = 4.0
    reps: int = 3


class Figures(NamedTuple):
    """What one run came to."""

    events_s: float
    events_per_cpu_s: float
    deliveries_s: float
    p50_ms: float
    p99_ms: float
    server_share: float
    load_share: float
    other_share: float

    @property
    def us_per_event(self) -> float:
        """Microseconds of the server's CPU for one event."""
        return 1e6 / self.events_per_cpu_s

    def line(self, name: str) -> str:
        """Throughput, latency and CPU shares on one line."""
        return (
            f"  {name:8} {self.events_s:8,.0f} events/s {self.deliveries_s:9,.0f} deliveries/s"
            f"  p50 {self.p50_ms:6.2f} p99 {self.p99_ms:6.2f} ms"
            f"  CPU: server {self.server_share:3.0%} load {self.load_share:3.0%}"
            f" others {self.other_share:3.0%}"
            f"  {self.us_per_event:6.1f} µs/event"
        )


def drive(server: Running, adapter: str, run: str, scale: Scale) -> tuple[Figures, dict[str, Any]]:
    """One run of the load, with the server's CPU time between START and END."""
    # The agent that drivers prompt is one more participant and sends nothing.
    listeners = 1 if adapter == "drivers" else 0
    command = [
        *(sys.executable, "-m", "bench.load", "--url", server.url, "--adapter", adapter),
        *("--run", run, "--sessions", str(scale.sessions)),
        *("--participants", str(scale.participants + listeners)),
        *("--senders", str(scale.participants), "--inflight", str(scale.inflight)),
        *("--secs", str(scale.secs), *on_core(cores()[1])),
    ]
    cpu = busy = own = 0.0
    said: dict[str, Any] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        for line in process.stdout or ():
            if line.startswith("START"):
                cpu, busy, own = server.cpu_s, busy_s(), cpu_s(process.pid)
            elif line.startswith("END"):
                cpu, busy = server.cpu_s - cpu, busy_s() - busy
                own = cpu_s(process.pid) - own
            elif line.startswith("{"):
                said = json.loads(line)
    if not said or not said["events_s"]:
        raise RuntimeError("the load failed")
    events = said["events_s"] * said["secs"]
    figures = Figures(
        said["events_s"],
        events / max(cpu, 0.01),
        said["deliveries_s"],
        said["p50_ms"] or float("nan"),
        said["p99_ms"] or float("nan"),
        cpu / said["secs"],
        own / said["secs"],
        max(0.0, busy - cpu - own) / said["secs"],
    )
    return figures, said


def check_load(said: dict[str, Any]) -> None:
    """Nothing was refused, lost or out of order."""
    wrong = said["errors"] or said["gaps"] or said["sent"] != said["acked"]
    if wrong:
        counts = {name: said[name] for name in ("sent", "acked", "errors", "gaps")}
        raise RuntimeError(f"the run does not count: {counts}")


def run_probe(where: str | None, scale: Scale) -> Figures:
    """A fresh probe, then a look at its log."""
    with temporary_directory(where) as home:
        with probe(home) as server:
            figures, said = drive(server, "probe", "", scale)
        rows, whole = limit.stored(home / "probe.db")
    check_load(said)
    if not whole or rows != said["acked"]:
        raise RuntimeError(f"the probe kept {rows} of {said['acked']} events")
    return figures


def run_accord(server: Running, adapter: str, scale: Scale) -> Figures:
    """The same on Accord in sessions of its own, then a look at its log."""
    figures, said = drive(server, adapter, f"{time.time_ns():x}", scale)
    check_load(said)
    check_log(server.home, said, KINDS[adapter])
    return figures


def check_log(home: Path, said: dict[str, Any], kind: str) -> None:
    """Every accepted event is stored, and every session's log is without a gap."""
    kept = 0
    for session in said["sessions"]:
        found = stored(home, session)
        if not found.is_complete:
            raise RuntimeError(f"{session} has {found.rows} rows up to version {found.newest}")
        kept += found.kinds[kind]
    if kept != said["acked"]:
        raise RuntimeError(f"{kept} of {said['acked']} accepted events are in the log")


class Limit(NamedTuple):
    """Every run of both, and the best against the best; calm runs alone if there are any."""

    probe: list[Figures]
    accord: list[Figures]

    @property
    def undisturbed(self) -> list[tuple[Figures, Figures]]:
        """Turns in which nobody disturbed either."""
        turns = zip(self.probe, self.accord, strict=True)
        return [turn for turn in turns if all(run.other_share < MAX_FOREIGN_LOAD for run in turn)]

    @property
    def turns(self) -> list[tuple[Figures, Figures]]:
        """Those that count."""
        return self.undisturbed or list(zip(self.probe, self.accord, strict=True))

    @property
    def best(self) -> tuple[Figures, Figures]:
        """Where an event cost least, on the probe and on Accord."""
        its, ours = zip(*self.turns, strict=True)
        return cheapest(its), cheapest(ours)

    @property
    def ratio(self) -> float:
        """Events per server-CPU-second, best of each."""
        its, ours = self.best
        return ours.events_per_cpu_s / its.events_per_cpu_s

    @property
    def spread(self) -> tuple[float, float]:
        """The ratio of each repetition, lowest and highest: how noisy it was."""
        ratios = [ours.events_per_cpu_s / its.events_per_cpu_s for its, ours in self.turns]
        return min(ratios), max(ratios)


def cheapest(runs: Iterable[Figures]) -> Figures:
    """The one in which an event cost least."""
    return max(runs, key=lambda run: run.events_per_cpu_s)


def measure(where: str | None, scale: Scale, adapter: str = "agents") -> Limit:
    """Probe and Accord in turns, Accord on one server; disturbed turns are made up for, once."""
    found = Limit([], [])
    with temporary_directory(where) as home, accord(home) as server:
        for turn in range(2 * scale.reps):
            if turn >= scale.reps and len(found.undisturbed) >= scale.reps:
                break
            found.probe.append(run_probe(where, scale))
            print(found.probe[-1].line("probe"), flush=True)
            found.accord.append(run_accord(server, adapter, scale))
            print(found.accord[-1].line(adapter), flush=True)
    return found
