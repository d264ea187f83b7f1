"""`python -m bench`: measures Accord on this machine and prints the ratios last.

Each figure comes from a server process that was started for it, with the default durability;
afterwards its log is compared with what was accepted.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import uvloop

from accord.shell_grammar import IDLE_SECONDS
from bench import (
    hooks,
    idle,
    keystrokes,
    length,
    limit,
    mcp_bridge,
    mcp_posts,
    mcp_reads,
    pacts,
    page,
    rooms,
)
from bench.machine import allow_many_files, cores, on_all_cores, pin
from bench.report import Row, table
from bench.servers import Running, running_accord, temporary_directory

T = TypeVar("T")

SIZES = (2, 10, 50)
# Deliveries per server-CPU-second and p99 in ms at 200 messages/s of the PVP server written in
# TypeScript for Node, which keeps nothing durably and checks nothing. Measured in November 2026 on
# another machine with two cores: a hint of the order of magnitude, not a comparison in one run.
# Where several runs of it differed (22,000 to 26,000; 2.9 to 7.1 ms), the upper end is here.
THEIRS_PER_CPU_S = {2: 26_000, 10: 61_000, 50: 71_000}
THEIRS_P99_MS = {50: 7.1}
TIMES = {2: 2, 10: 4, 50: 8}
MESSAGES = {2: 12_000, 10: 6_000, 50: 2_500}


class Plan(NamedTuple):
    """How thorough to be."""

    scale: limit.Scale
    runs: int
    seconds: float
    share: float
    records: int
    idle: int
    where: str | None
    rival: Running | None
    posts: mcp_posts.Scale = mcp_posts.Scale()
    reads: mcp_reads.Scale = mcp_reads.Scale()
    bridge: mcp_bridge.Scale = mcp_bridge.Scale()
    opened: page.Scale = page.Scale()
    keys: keystrokes.Scale = keystrokes.Scale()


def plan(args: argparse.Namespace) -> Plan:
    """What the options ask for."""
    records = 1_000_000 if args.long else 100_000
    if args.tiny:
        scale = limit.Scale(2, 3, 4, 0.5, 1)
        more = (mcp_posts.TINY, mcp_reads.TINY, mcp_bridge.TINY, page.TINY, keystrokes.TINY)
        return Plan(scale, 1, 1, 0.02, 2000, 20, args.dir, rival(args), *more)
    if args.quick:
        scale = limit.Scale(secs=1.5, reps=2)
        posts = mcp_posts.Scale(2, 1.0, 100, 12_000, 12_000)
        reads = mcp_reads.Scale(2, 0.5, 1_000, 10_000, 2_000, 200)
        bridge = mcp_bridge.Scale(3, mcp_bridge.HEARTBEAT_S)
        opened = page.Scale(3, 2_000, 4, 18_000)
        more = (posts, reads, bridge, opened, keystrokes.Scale(1000))
        return Plan(scale, 1, 2, 0.4, records // 10, 300, args.dir, rival(args), *more)
    return Plan(limit.Scale(), 3, 8, 1, records, 1000, args.dir, rival(args))


def rival(args: argparse.Namespace) -> Running | None:
    """Another PVP server that runs here, on the core that Accord is measured on."""
    if args.against is None:
        return None
    if args.against_pid is None:
        raise SystemExit("--against needs --against-pid, because only its own CPU time counts")
    pin(cores()[0], args.against_pid)
    return Running(args.against, args.against_pid, Path(), ours=False)


def run(work: Coroutine[Any, Any, T]) -> T:
    """On the loop the load uses too."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


class Bench:
    """The measurements by letter; each prints what it sees and returns rows for the table."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.raw: dict[str, Any] = {}

    def a(self) -> list[Row]:
        """Events per server-CPU-second, as a share of the limit."""
        rows = []
        for adapter in ("agents", "drivers"):
            scale = self.plan.scale
            if adapter == "drivers":
                scale = scale._replace(reps=1)
            found = limit.measure(self.plan.where, scale, adapter)
            self.raw[f"a.{adapter}"] = found._asdict() | {"ratio": found.ratio}
            low, high = found.spread
            its, ours = found.best
            measured = (
                f"{found.ratio:.2f} = {its.us_per_event:.1f} / {ours.us_per_event:.1f} µs"
                f" ({low:.2f} to {high:.2f}, {len(found.undisturbed)} of {len(found.probe)} calm)"
            )
            judged = adapter == "agents"
            target = "at least 0.50; ambition 0.80" if judged else ""
            met = found.ratio >= 0.5 if judged else None
            rows.append(Row(f"share of the limit, {adapter}", measured, target, met))
        return rows

    def b(self) -> list[Row]:
        """Deliveries per server-CPU-second."""
        with running_accord(self.plan.where) as server:
            found = {n: self.fan_out(server, n) for n in SIZES}
        self.raw["b"] = found
        rows = []
        for n, (ours, theirs) in found.items():
            hint = THEIRS_PER_CPU_S[n] if theirs is None else theirs
            whose = "another machine" if theirs is None else "in this run"
            target = f"at least {TIMES[n]} × {hint:,.0f} ({whose})"
            measured = f"{ours:,.0f} = {ours / hint:.1f} ×"
            met = ours >= TIMES[n] * hint
            rows.append(Row(f"deliveries per CPU second, {n}", measured, target, met))
        return rows

    def fan_out(self, server: Running, n: int) -> tuple[float, float | None]:
        """The best of a few runs, and of the rival's in turns with them."""
        best = {server: 0.0} | ({self.plan.rival: 0.0} if self.plan.rival else {})
        for _ in range(self.plan.runs):
            for one in best:
                found = run(rooms.fan_out(one, n, int(MESSAGES[n] * self.plan.share)))
                print(
                    f"  {n:2} participants {found.per_s:9,.0f} deliveries/s"
                    f" {found.per_cpu_s:9,.0f} per CPU second, others {found.other_share:.0%}"
                    f"{'' if one is server else ' (the rival)'}",
                    flush=True,
                )
                best[one] = max(best[one], found.per_cpu_s)
        return best[server], best[self.plan.rival] if self.plan.rival else None

    def c(self) -> list[Row]:
        """Latency at 200 messages a second."""
        rows = []
        with running_accord(self.plan.where) as server:
            for n in SIZES:
                found = self.latency(server, n)
                self.raw[f"c.{n}"] = found._asdict()
                theirs, whose = THEIRS_P99_MS.get(n), "another machine"
                if theirs and self.plan.rival:
                    beside = self.latency(self.plan.rival, n)
                    self.raw[f"c.{n}.rival"] = beside._asdict()
                    theirs, whose = beside.p99, "in this run"
                target = f"at most {theirs:.1f} ms ({whose})" if theirs else ""
                # A machine that stops the load says nothing of the server.
                met = found.p99 <= theirs if theirs and found.steady else None
                disturbed = "" if found.steady else ", disturbed"
                measured = f"{found.p50:.2f} / {found.p99:.2f} ms{disturbed}"
                rows.append(Row(f"p50 / p99 at 200/s, {n}", measured, target, met))
        return rows

    def latency(self, server: Running, n: int) -> rooms.Latency:
        """The first run in which the load kept its own time, or the one that kept it best."""
        runs: list[rooms.Latency] = []
        while len(runs) < self.plan.runs and not (runs and runs[-1].steady):
            found = run(rooms.latency(server, n, self.plan.seconds))
            print(
                f"  {n:2} participants p50 {found.p50:.2f} p90 {found.p90:.2f}"
                f" p99 {found.p99:.2f} most {found.most:.2f} ms;"
                f" the load was late by {found.late:.2f} ms, others {found.other_share:.0%}",
                flush=True,
            )
            runs.append(found)
        return min(runs, key=lambda one: (not one.steady, one.late))

    def d(self) -> list[Row]:
        """A long session against a short one."""
        plan = self.plan
        with temporary_directory(plan.where) as home:
            messages = int(4000 * plan.share)
            found = run(length.measure(home, plan.records, messages, plan.runs))
        self.raw["d"] = found._asdict() | {"ratio": found.ratio}
        print(
            f"  {plan.records:,} records: {found.long_us:.1f} µs per message;"
            f" 1,000 beside it: {found.short_us:.1f}; 1,000 in a young log: {found.alone_us:.1f}"
            f"\n  the server starts on that log in {found.start_s:.2f} s,"
            f" the first join then takes {found.first_join_ms:.1f} ms",
            flush=True,
        )
        lengths = f"{plan.records:,} records to 1,000"
        joins = f"{found.long_join_ms:.1f} ms to {found.short_join_ms:.1f}"
        fast = found.long_join_ms < 50
        return [
            Row(f"a message, {lengths}", f"{found.ratio:.2f}", "at most 1.10", found.ratio <= 1.1),
            Row(f"joining, {lengths}", joins, "under 50 ms, the same for both", fast),
        ]

    def f(self) -> list[Row]:
        """Memory of a connection that says nothing."""
        with running_accord(self.plan.where) as server:
            kib = run(idle.kib_per_connection(server, self.plan.idle))
        self.raw["f"] = kib
        return [Row("idle connection", f"{kib:.1f} KiB", "at most 24 KiB", kib <= 24)]

    def g(self) -> list[Row]:
        """What a command costs that does nothing."""
        ms = idle.version_cpu_ms()
        self.raw["g"] = ms
        what, target = "accord --version", "under 100 ms CPU"
        if ms is None:
            return [Row(what, "skipped: there is no such command yet", target, None)]
        return [Row(what, f"{ms:.0f} ms", target, ms < 100)]

    def h(self) -> list[Row]:
        """A long pact, and one more event in it."""
        few, many = max(100, self.plan.records // 100), self.plan.records
        found = []
        for events in (few, many):
            with running_accord(self.plan.where) as server:
                one = pacts.measure(server, server.home / "pact", events)
            print(
                f"  {events:,} events: copied in {one.copy_s:.1f} s, {one.cpu_s:.1f} s CPU,"
                f" {one.mib:.0f} MiB more; others waited {one.late_ms[0]:.1f} (p50),"
                f" {one.late_ms[1]:.1f} (p99), {one.late_ms[2]:.1f} ms (most);"
                f" one more {one.more_ms:.1f} ms",
                flush=True,
            )
            found.append(one)
        self.raw["h"] = [one._asdict() for one in found]
        short, long = found
        measured = f"{long.more_ms:.1f} ms to {short.more_ms:.1f}"
        target = "under 2,000 ms"
        what = f"one more event in a pact, {many:,} events to {few:,}"
        return [Row(what, measured, target, long.more_ms < 2000)]

    def j(self) -> list[Row]:
        """What a gate hook costs before a read, and its daemon while nothing happens."""
        found = hooks.measure(self.plan.where, max(9, int(60 * self.plan.share)), self.plan.seconds)
        self.raw["j"] = found._asdict()
        print(f"  slowest hook {found.worst_ms:.0f} ms", flush=True)
        parser = f"{found.parser_mib:.0f} MiB until {IDLE_SECONDS:.0f} s after the last command"
        print(f"  the parser of commands takes {parser}", flush=True)
        return [
            Row("gate hook, CPU p50", f"{found.cpu_ms:.0f} ms", "under 60 ms", found.cpu_ms < 60),
            Row(
                "gate hook, wall p50", f"{found.wall_ms:.0f} ms", "under 80 ms", found.wall_ms < 80
            ),
            Row(
                "daemon, idle",
                f"{found.daemon_mib:.0f} MiB, {found.daemon_idle:.2%} of a core",
                "under 40 MB, no CPU",
                found.daemon_mib * 1.048576 < 40 and found.daemon_idle < 0.002,
            ),
        ]

    def i(self) -> list[Row]:
        """Posts over MCP, beside Starlette alone and the SDK alone."""
        found = run(mcp_posts.measure(self.plan.where, self.plan.posts))
        self.raw["i"] = found._asdict()
        return list(mcp_posts.rows(found))

    def k(self) -> list[Row]:
        """Reading over MCP, with few and with many messages, threads and agents."""
        found = run(mcp_reads.measure(self.plan.where, self.plan.reads))
        self.raw["k"] = found._asdict()
        return list(mcp_reads.rows(found, self.plan.reads))

    def l(self) -> list[Row]:  # noqa: E743 - the letter of the measurement
        """Starting `accord mcp`, and an agent that does nothing."""
        found = mcp_bridge.measure(self.plan.where, self.plan.bridge)
        self.raw["l"] = found._asdict()
        return list(mcp_bridge.rows(found))

    def m(self) -> list[Row]:
        """The page in Chromium: opening, scrolling, streaming, memory."""
        with on_all_cores():
            found = run(page.measure(self.plan.where, self.plan.opened))
        self.raw["m"] = found._asdict()
        return page.rows(found)

    def n(self) -> list[Row]:
        """A key and its echo under `accord supervise`, beside a bare PTY."""
        with on_all_cores():
            found = keystrokes.measure(self.plan.where, self.plan.keys)
        self.raw["n"] = found._asdict()
        return keystrokes.rows(found)


LETTERS = "abcdefghijklmn"
# Joining (e) is measured on the long session of (d).
SAME = {"e": "d"}


def letters(text: str) -> list[str]:
    """Which measurements, each once, in order."""
    wanted = {SAME.get(letter, letter) for letter in text.replace(",", "")}
    if unknown := wanted - set(LETTERS):
        raise argparse.ArgumentTypeError(f"there is no {', '.join(sorted(unknown))}")
    return sorted(wanted)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench", description="How fast Accord is here; docs/explanation/performance.md"
    )
    kinds = (
        "a: share of the limit, b: fan-out, c: latency, d: long sessions, e: joining them, "
        "f: idle connections, g: start-up, h: long pacts, i: posts over MCP, j: gate hooks, "
        "k: reading over MCP, l: accord mcp, m: the page, n: keys under accord supervise"
    )
    parser.add_argument("--only", type=letters, default=letters(LETTERS), help=kinds)
    parser.add_argument("--quick", action="store_true", help="a minute, and coarse")
    parser.add_argument("--tiny", action="store_true", help="seconds; proves only that it works")
    parser.add_argument("--long", action="store_true", help="a million records in (d)")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument("--dir", help="where logs are written; a real disk, not memory")
    parser.add_argument("--secs", type=float, help="seconds of each run of (a)")
    parser.add_argument("--against", metavar="URL", help="another PVP server here, for (b), (c)")
    parser.add_argument("--against-pid", type=int, metavar="PID", help="its process")
    parser.add_argument("--reps", type=int, help="repetitions of (a)")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    chosen = plan(args)
    scale = chosen.scale
    scale = scale._replace(secs=args.secs or scale.secs, reps=args.reps or scale.reps)
    bench = Bench(chosen._replace(scale=scale))
    allow_many_files()
    pin(cores()[1])
    began = time.monotonic()
    rows: list[Row] = []
    for letter in args.only:
        measure: Callable[[], list[Row]] = getattr(bench, letter)
        print(f"{letter}: {measure.__doc__}", flush=True)
        rows += measure()
    if args.json:
        args.json.write_text(json.dumps(bench.raw, indent=1))
    print(f"\n{time.monotonic() - began:.0f} s, load average {os.getloadavg()[0]:.1f}\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
