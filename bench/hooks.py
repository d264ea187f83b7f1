"""What a gate hook costs before a read, with the daemon running, and what that daemon costs."""

import json
import os
import statistics
import subprocess
import time
from typing import NamedTuple

import psutil

from bench.machine import cpu_s, rss_kib
from bench.servers import temporary_directory
from tests.helpers.hosts.gated_agent import GatedAgent, People
from tests.helpers.servers.server_process import run_server

HOSTS = ("claude-code", "codex", "gemini")


class HookCost(NamedTuple):
    """Medians in milliseconds, and the daemon's memory and share of a core while it is idle."""

    cpu_ms: float
    wall_ms: float
    worst_ms: float
    daemon_mib: float
    daemon_idle: float
    parser_mib: float  # of the process that ends soon after the last command


def measure(where: str | None, reps: int, idle_s: float) -> HookCost:
    """Read calls of one agent for each host, one after the other."""
    with temporary_directory(where) as folder, run_server(folder / "server") as server:
        people = People(server)
        root = folder / "home" / "project"
        root.mkdir(parents=True)
        agents = [GatedAgent(people, folder / "home", host, root) for host in HOSTS]
        try:
            for agent in agents:
                agent.ask("ls")
            runs = [timed(agents[n % len(agents)]) for n in range(reps)]
            pid = agents[0].daemon_pid
            assert pid is not None
            before = cpu_s(pid)
            time.sleep(idle_s)
            idle = (cpu_s(pid) - before) / idle_s
            return HookCost(
                statistics.median(cpu for cpu, _ in runs),
                statistics.median(wall for _, wall in runs),
                max(wall for _, wall in runs),
                rss_kib(pid) / 1024,
                idle,
                sum(map(rss_kib, children_of(pid))) / 1024,
            )
        finally:
            GatedAgent.stop_daemon_of(folder / "home")


def children_of(pid: int) -> list[int]:
    """The processes that it has started: the parser of commands, while it is needed."""
    return [child.pid for child in psutil.Process(pid).children()]


def timed(agent: GatedAgent) -> tuple[float, float]:
    """CPU and wall time of one hook, in milliseconds, with the shell that a host runs it in."""
    payload = json.dumps(agent.shell_payload("git status && ls src")).encode()
    started = time.perf_counter()
    process = subprocess.Popen(
        ["/bin/sh", "-c", agent.command("pre-tool")],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=agent.env,
        cwd=agent.root,
    )
    assert process.stdin is not None
    process.stdin.write(payload)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"the hook exited with {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1e3, wall * 1e3
