"""What `accord supervise` adds between a key and its echo, beside the program in a bare PTY."""

import os
import select
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple

from bench.report import Row
from bench.servers import temporary_directory
from tests.helpers.servers.server_process import run_server
from tests.helpers.terminals.outer_terminal import OuterTerminal
from tests.helpers.terminals.supervised_host import supervise
from tests.helpers.threads.method_client import MethodClient

ECHO = ("sh", "-c", "stty raw -echo; printf ready; exec cat")
BLOCK = 50  # keys in one terminal before it is the other one's turn
ANSWER_S = 10.0


class Scale(NamedTuple):
    """How many keys are pressed in each terminal."""

    keys: int = 5000


TINY = Scale(100)


class Keystrokes(NamedTuple):
    """Milliseconds from a key to its echo: the median, and what 99 of 100 stay below."""

    bare_p50: float
    bare_p99: float
    supervised_p50: float
    supervised_p99: float

    @property
    def added_p99(self) -> float:
        """What the supervisor adds to the slow ones."""
        return self.supervised_p99 - self.bare_p99


def measure(where: str | None, scale: Scale) -> Keystrokes:
    """One program in two terminals, in turns."""
    with temporary_directory(where) as folder, ExitStack() as stack:
        server = stack.enter_context(run_server(folder / "server"))
        agent = stack.enter_context(MethodClient.of(server, "coder", capabilities=["supervise"]))
        bare = stack.enter_context(OuterTerminal(ECHO))
        supervised = stack.enter_context(supervise(server, agent.token, folder, *ECHO))
        terminals = (bare, supervised)
        times: tuple[list[float], list[float]] = ([], [])
        for terminal in terminals:
            terminal.wait_for("ready", 60.0)
        for _ in range(max(1, scale.keys // BLOCK)):
            for terminal, found in zip(terminals, times, strict=True):
                found += [round_trip_ms(terminal) for _ in range(BLOCK)]
    return Keystrokes(*quantiles(times[0]), *quantiles(times[1]))


def round_trip_ms(terminal: OuterTerminal) -> float:
    """Press a key, and wait for what the program makes of it."""
    began = time.perf_counter()
    os.write(terminal.master, b"x")
    ready, _, _ = select.select([terminal.master], [], [], ANSWER_S)
    assert ready, "the key was not echoed"
    assert os.read(terminal.master, 1) == b"x"
    return (time.perf_counter() - began) * 1000


def quantiles(times: Sequence[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    ordered = sorted(times)
    return ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]


def rows(found: Keystrokes) -> list[Row]:
    """The figure that has a target."""
    return [
        Row(
            "a key under accord supervise, more than bare (p99)",
            f"{found.added_p99:.2f} ms ({found.supervised_p99:.2f} against {found.bare_p99:.2f})",
            "at most 2 ms",
            found.added_p99 <= 2,
        )
    ]
