"""A hundred thousand events are no burden. Bounds are generous, figures are printed."""

import json
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.stores.ledger import FileLedger
from tests.helpers.cli import Ran
from tests.helpers.git import a_repository
from tests.pact.team import Team, assignment

EVENTS = 100_000
# Seconds of CPU time; a machine that does nothing else takes about a third.
WITHOUT, WITH, APPEND = 2.4, 0.6, 0.15


def stages(number: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A task's life."""
    spec = f".pact/tasks/task-{number}.md"
    said = {"owner": "bob", "reviewer": "ann", "branch": f"f{number // 20}", "spec": spec}
    yield "assign", "ann", said
    yield "join", "bob", {"roles": ["worker"]}
    yield "checkpoint", "bob", {"evidence": "118 passed in 12.3 s; see the log of the run"}
    yield "accept", "ann", {}


def lines(init: dict[str, Any]) -> Iterator[bytes]:
    yield json.dumps(init, separators=(",", ":")).encode()
    for number in range(EVENTS // 4):
        for place, (kind, seat, payload) in enumerate(stages(number)):
            count = number * 4 + place
            about = kind != "join"
            event = init | {
                "event_id": f"{count:032x}",
                "ts": f"2027-01-{1 + count // 86400:02}T{count // 3600 % 24:02}:"
                f"{count // 60 % 60:02}:{count % 60:02}Z",
                "agent_id": seat,
                "event_type": kind,
                "task_id": f"task-{number}" if about else "",
                "feature": f"f{number // 20}" if about else "",
                "payload": payload,
            }
            yield json.dumps(event, separators=(",", ":")).encode()


@pytest.fixture
def team(tmp_path: Path) -> Team:
    team = Team(a_repository(tmp_path / "repo").root).init()
    (team.pact / "log.jsonl").write_bytes(b"\n".join(lines(team.events[0])) + b"\n")
    return team


def measured(team: Team, *words: str) -> tuple[Ran, float]:
    """What a verb says, and the CPU time that it took, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = team("ann", *words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ran, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.timeout(240)
def test_a_hundred_thousand_events_are_no_burden(team: Team) -> None:
    cold, without = measured(team, "status")
    assert (cold.code, "drift" in cold.err) == (0, True)
    team.good("ann", "log", "--replay")
    warm, with_one = measured(team, "status")
    assert (warm.out, warm.err) == (cold.out, "")
    written, verb = measured(team, *assignment("one-more", "more"))
    assert written.code == 0, written

    here = FileLedger(team.pact / "log.jsonl", team.root / ".git" / "pactify-log.lock")
    mark, line = here.mark(), team.log.splitlines()[-1].encode() + b"\n"
    started = time.process_time()
    with here.locked():
        here.append(mark, line)
    append = time.process_time() - started

    print(f"status {without:.3f} s, with a cache {with_one:.3f} s; assign {verb:.3f} s; ")
    print(f"the append itself {append * 1000:.2f} ms")
    assert without < WITHOUT
    assert with_one < WITH
    assert append < APPEND
    shown = team.good("ann", "status")
    assert "- id: one-more\n" in shown
