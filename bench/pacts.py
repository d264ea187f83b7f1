"""A long pact: its first copy, who waits meanwhile, and what one more event costs."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from bench.servers import Running

REPO = "bench"
TASKS_PER_FEATURE = 10  # of a feature
EXTRA_EVENTS = 10
PING_S = 0.05
BRIDGE_TIMEOUT_S = 30.0
BRING_TIMEOUT_S = 600.0


class Pacts(NamedTuple):
    """Seconds, CPU seconds and MiB of the first copy; ms that others waited, and of one more."""

    events: int
    copy_s: float
    cpu_s: float
    mib: float
    late_ms: tuple[float, float, float]  # the middle one, one of a hundred, the most
    more_ms: float


def generate_events(events: int) -> Iterator[dict[str, Any]]:
    """So many events of a project that goes on as projects do."""
    seats = [{"id": seat, "roles": ["worker"], "entry": f"{seat}.md"} for seat in ("ann", "bob")]
    start = {"project": "bench", "protocol_version": 1, "seats": seats, "base_branch": "main"}
    yield event(0, "init", "ann", start)
    for number in range(1, events):
        feature, step = divmod(number - 1, 3 * TASKS_PER_FEATURE + 1)
        task, step = divmod(step, 3)
        branch = f"feature-{feature}"
        if task == TASKS_PER_FEATURE:
            yield event(number, "merge", "ann", {}, feature=branch)
            continue
        name = {"task_id": f"T{feature}-{task}", "feature": branch}
        given = {"owner": "bob", "reviewer": "ann", "branch": branch, "spec": "t.md"}
        yield (
            event(number, "assign", "ann", given, **name),
            event(number, "checkpoint", "bob", {"evidence": f"{number} tests pass"}, **name),
            event(number, "accept", "ann", {}, **name),
        )[step]


def event(number: int, kind: str, by: str, payload: dict[str, Any], **name: str) -> dict[str, Any]:
    """One line."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_780_000_000 + number))
    about = {"task_id": "", "feature": ""} | name
    return {
        "event_id": f"{number:08x}-bench-4000-8000-{number:012x}",
        "ts": at,
        "agent_id": by,
        "role": "worker",
        "event_type": kind,
        **about,
        "payload": payload,
    }


def encode_line(made: dict[str, Any]) -> bytes:
    """As tools write it."""
    return json.dumps(made, separators=(",", ":")).encode() + b"\n"


def call_bridge(home: Path, action: str, **said: Any) -> dict[str, Any]:
    """A question to the bridge."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
        wire.settimeout(BRIDGE_TIMEOUT_S)
        wire.connect(str(home / "bridge.sock"))
        wire.sendall(json.dumps({"action": action, **said}).encode() + b"\n")
        heard = b""
        while not heard.endswith(b"\n") and (more := wire.recv(1 << 16)):
            heard += more
    found: dict[str, Any] = json.loads(heard)
    return found


class LatencyProbe:
    """Somebody else, who asks something small all the while."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.took: list[float] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(PING_S):
            began = time.monotonic()
            call_bridge(self.home, "status")
            self.took.append((time.monotonic() - began) * 1e3)


def measure(server: Running, directory: Path, events: int) -> Pacts:
    """The first copy beside somebody who asks, then one more event a few times."""
    directory.mkdir()
    log = directory / "log.jsonl"
    with log.open("wb") as file:
        for each in generate_events(events):
            file.write(encode_line(each))
    memory, cpu, began = server.rss_kib, server.cpu_s, time.monotonic()
    with LatencyProbe(server.home) as others:
        import_pact(server, directory, events)
    took = time.monotonic() - began
    spent, mib = server.cpu_s - cpu, (server.rss_kib - memory) / 1024
    late = sorted(others.took) or [0.0]
    spread = (late[len(late) // 2], late[len(late) * 99 // 100], late[-1])
    more = sorted(
        append_event_ms(server, directory, number)
        for number in range(events, events + EXTRA_EVENTS)
    )
    return Pacts(events, took, spent, mib, spread, more[len(more) // 2])


def import_pact(server: Running, directory: Path, events: int) -> None:
    """Until all of it is on the log."""
    until = time.monotonic() + BRING_TIMEOUT_S
    while (found := mirrored_count(server, directory)) != events:
        if time.monotonic() > until:
            raise RuntimeError(f"{found} of {events} events were copied")
        time.sleep(PING_S)


def append_event_ms(server: Running, directory: Path, number: int) -> float:
    """How many ms from the write until the server has it on record."""
    said = encode_line(event(number, "join", "bob", {"roles": ["worker"]}))
    began = time.monotonic()
    with (directory / "log.jsonl").open("ab") as file:
        file.write(said)
    if mirrored_count(server, directory) != number + 1:
        raise RuntimeError("an event was not recorded")
    return (time.monotonic() - began) * 1e3


def mirrored_count(server: Running, directory: Path) -> int:
    """How many events are on record, after a look."""
    found = call_bridge(server.home, "pact-changed", repo=REPO, directory=str(directory))
    return int(found.get("events", 0))
