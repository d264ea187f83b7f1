"""A repository's pact with two features under way and one that can be merged."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from pathlib import Path
from typing import Any

from tests.helpers.clients.bridge_client import send_action
from tests.helpers.page.team import Team

REPO = "harbor-api"
SEATS = {
    "maya": ["orchestrator", "reviewer"],
    "jonas": ["reviewer"],
    "priya": ["reviewer"],
    "claude": ["worker"],
    "codex": ["worker"],
    "gemini": ["worker"],
}


class PactLog:
    """A ledger that grows; each event is some minutes ago."""

    def __init__(self, directory: Path, project: str = "harbor-api") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.count = 0
        seats = [{"id": id, "roles": roles, "entry": f"{id}.md"} for id, roles in SEATS.items()]
        begin: dict[str, Any] = {
            "project": project,
            "protocol_version": 1,
            "base_branch": "main",
            "seats": seats,
        }
        self.add("init", "maya", ago=900, **begin)

    def add(
        self, kind: str, by: str, task: str = "", feature: str = "", *, ago: int = 0, **said: Any
    ) -> None:
        self.count += 1
        at = datetime.now(UTC) - timedelta(minutes=ago) + timedelta(milliseconds=self.count)
        line = {
            "event_id": f"e{self.count}",
            "ts": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "agent_id": by,
            "role": "worker",
            "event_type": kind,
            "task_id": task,
            "feature": feature,
            "payload": said,
        }
        with (self.directory / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def assign(self, task: str, feature: str, owner: str, reviewer: str, **said: Any) -> None:
        branch = f"feat/{feature.lower()}"
        about = {"owner": owner, "reviewer": reviewer, "branch": branch, **said}
        self.add("assign", "maya", task, feature, ago=240, **about)

    def show(self, task: str, feature: str, by: str, ago: int, evidence: str, commit: str) -> None:
        about = {"evidence": evidence, "commit": sha(commit)}
        self.add("checkpoint", by, task, feature, ago=ago, **about)


def sha(of: str) -> str:
    """A commit's id that begins so."""
    return (of + sha1(of.encode(), usedforsecurity=False).hexdigest())[:40]


LOGIN, PDF, FLAGS = "LOGIN-LIMIT", "INVOICE-PDF", "COOKIE-FLAGS"
ACCEPTED = (
    ("T41", LOGIN, "Count per account", "claude", "priya", "22 passed", "a90f113"),
    ("T42", LOGIN, "Count per address", "codex", "jonas", "31 passed", "c0de4e8"),
    ("T43", LOGIN, "Same time for unknown accounts", "claude", "priya", "p < 0.01", "77ab0d2"),
    ("T50", PDF, "Template from the design file", "gemini", "maya", "12 pages compared", "e41c9b0"),
    ("T60", FLAGS, "Secure and HttpOnly", "codex", "priya", "9 passed", "f00dbad"),
    ("T61", FLAGS, "SameSite", "codex", "priya", "4 passed", "f00dca7"),
)
SHOWN = (
    "38 passed in 3.87s. Counters come back from login_attempts within 2 s of a restart; "
    "killed Redis 20 times."
)


def write_pact(directory: Path) -> None:
    log = PactLog(directory)
    for task, feature, spec, owner, reviewer, shown, commit in ACCEPTED:
        log.assign(task, feature, owner, reviewer, spec=spec)
        log.show(task, feature, owner, 120, shown, commit)
        log.add("accept", reviewer, task, feature, ago=90, commit=sha(commit))
    log.assign("T44", LOGIN, "claude", "maya", spec="Survive a Redis restart", deps=["T41"])
    log.show("T44", LOGIN, "claude", 70, "36 passed. Killed Redis once.", "91d0aa4")
    log.add("changes_requested", "maya", "T44", LOGIN, ago=52, reason="If it dies in a write?")
    log.show("T44", LOGIN, "claude", 4, SHOWN, "5e1b2c7")
    log.assign("T45", LOGIN, "gemini", "jonas", spec="Show 429 in the login form", deps=["T44"])
    log.show("T45", LOGIN, "gemini", 40, "The form shows it", "b16b00b")
    log.add("changes_requested", "jonas", "T45", LOGIN, ago=12, reason="Say for how long.")
    log.assign("T51", PDF, "codex", "maya", spec="Render with WeasyPrint")
    log.assign("T53", PDF, "gemini", "jonas", spec="Totals in the customer's currency")
    log.add("join", "codex", "T51", PDF, ago=31, roles=["worker"])


async def bind(team: Team, session: str, directory: Path, repo: str = REPO) -> None:
    """The session shows the pact in this directory, as `accord git bind` does it."""
    for action, about in (
        ("pact-changed", {"directory": str(directory)}),
        ("session-started", {"session": session}),
        ("pact-changed", {"directory": str(directory)}),
    ):
        answer = await asyncio.to_thread(
            send_action, team.server.home / "bridge.sock", action, repo=repo, **about
        )
        assert "error" not in answer, answer


async def pact_of_an_afternoon(team: Team, directory: Path) -> str:
    """Returns the session that is bound to the repository."""
    write_pact(directory)
    members = ("jonas", "maya", "priya", "claude", "codex", "gemini")
    room = await team.session("Harbor, this week", *members)
    await bind(team, room["maya"].id, directory)
    return room["maya"].id
