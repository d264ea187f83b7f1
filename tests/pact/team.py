"""A team at work: real processes in a real directory, each with its seat."""

import json
from pathlib import Path
from typing import Any

from tests.helpers.clients.cli import CommandRun, run_accord

SEATS = ("ann:orchestrator,reviewer:CLAUDE.md", "bob:worker:AGENTS.md", "cy:worker,reviewer:CY.md")


class Team:
    """A directory with a pact in it."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.pact = root / ".pact"

    def __call__(self, seat: str, *words: str, **env: str) -> CommandRun:
        """Run a verb as somebody."""
        return run_accord("pact", *words, cwd=self.root, PACT_AGENT_ID=seat, **env)

    def good(self, seat: str, *words: str) -> str:
        """What a verb prints that must succeed."""
        ran = self(seat, *words)
        assert ran.code == 0, ran
        return ran.out

    def init(self, **env: str) -> "Team":
        ran = self("ann", "init", "--project", "demo", *seats(), **env)
        assert (ran.code, ran.err) == (0, ""), ran
        return self

    def assign(self, task: str = "T1", feature: str = "cart", reviewer: str = "ann") -> None:
        self.good("ann", *assignment(task, feature, reviewer))

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.splitlines()]

    @property
    def kinds(self) -> list[str]:
        return [event["event_type"] for event in self.events]

    @property
    def log(self) -> str:
        return (self.pact / "log.jsonl").read_text("utf-8")

    @property
    def state(self) -> str:
        return (self.pact / "STATE.yml").read_text("utf-8")

    def statuses(self) -> dict[str, str]:
        shown = json.loads(self.good("ann", "status", "--json"))
        return {task["id"]: task["status"] for each in shown["features"] for task in each["tasks"]}


def seats() -> list[str]:
    return [word for seat in SEATS for word in ("--seat", seat)]


def assignment(task: str, feature: str = "cart", reviewer: str = "ann") -> list[str]:
    flags = {"feature": feature, "branch": feature, "owner": "bob", "reviewer": reviewer}
    return ["assign", task, *(word for name, v in flags.items() for word in (f"--{name}", v))]
