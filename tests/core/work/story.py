"""Logs in a few words: a team of three, and lines as any tool would write them."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work import verbs
from accord.core.work.event import EventDraft, LogEntry
from accord.core.work.fold import Fold, fold
from accord.core.work.format import log_lines
from accord.core.work.state import Work
from accord.core.work.verbs import ActingSeat, Assignment

ANN, BOB, CY = "ann", "bob", "cy"
SEATS = ["ann:orchestrator,reviewer:CLAUDE.md", "bob:worker:AGENTS.md", "cy:worker,reviewer:C.md"]


def line(
    kind: str, by: str = ANN, task: str = "", feature: str = "", **rest: Any
) -> dict[str, Any]:
    """A line; `at` is its minute, `id` its id, and everything else its payload."""
    minute, id = rest.pop("at", 0), rest.pop("id", None)
    return {
        "event_id": id or f"{kind}-{by}-{task}-{feature}-{minute}-{len(rest)}",
        "ts": f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z",
        "agent_id": by,
        "role": "worker",
        "event_type": kind,
        "task_id": task,
        "feature": feature,
        "payload": rest,
    }


def log(*lines: dict[str, Any]) -> bytes:
    """The lines as a file."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


def folded(*lines: dict[str, Any]) -> Work:
    """What they come to."""
    return fold(log_lines.parse_log(log(*lines)).entries)


def skipped(*lines: dict[str, Any]) -> list[tuple[int, str]]:
    """Which of them change nothing, and by which rule."""
    made = Fold().add(log_lines.parse_log(log(*lines)).entries)
    return [(each.line, each.check) for each in made.skipped]


def assigned(
    task: str = "T1", owner: str = BOB, reviewer: str = ANN, **rest: Any
) -> dict[str, Any]:
    said = {"owner": owner, "reviewer": reviewer, "branch": "feat", "spec": "t.md"} | rest
    return line("assign", ANN, task, said.pop("feature", "F"), **said)


class Team:
    """A log that grows by verbs, as the command line would let it."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.data = b""
        self.by(ANN, verbs.init, "demo", SEATS, "main")

    @property
    def work(self) -> Work:
        return fold(self.entries)

    def by(self, seat: str, verb: Callable[..., list[EventDraft]], *words: Any) -> list[EventDraft]:
        """What the verb records, which is then on the log."""
        drafts = verb(self.work, ActingSeat(seat), *words)
        self.record(seat, drafts)
        return drafts

    def record(self, seat: str, drafts: Sequence[EventDraft]) -> None:
        number = len(self.entries)
        ids = [f"{number}-{place}" for place in range(len(drafts))]
        ts = f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        self.data += log_lines.encode_events(drafts, ids, ts, seat)
        self.entries = log_lines.parse_log(self.data).entries

    def assign(self, task: str = "T1", feature: str = "F", **rest: str) -> None:
        said = {"branch": "feat", "owner": BOB, "reviewer": ANN} | rest
        self.by(ANN, verbs.assign, Assignment(task, feature, **said))

    def status(self, task: str = "T1") -> str:
        return self.work.tasks[task].status.value


def refused(verb: Callable[..., object], *words: Any) -> tuple[Reason, str]:
    """Why not, and in which words."""
    with pytest.raises(Refused) as no:
        verb(*words)
    return no.value.reason, no.value.detail
