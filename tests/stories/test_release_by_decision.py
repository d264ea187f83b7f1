"""A release by rule: held, proven, judged twice, approved, run, and kept with the commit."""

import asyncio
import json
from pathlib import Path

import pytest

from accord.client import Client, ServerRefused, Session
from tests.helpers.clients.bridge_client import send_action
from tests.helpers.clients.cli import UserShell
from tests.helpers.docket.batch_text import evidence, item, result, step, valid_judgement
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves
from tests.stories.test_prompt_to_why import Repo

HEAD = "<<<B exec_capability=RUNTIME_OK close_policy=REAL_ONLY>>>\n"
DEPLOYS = valid_judgement("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO", 20)])
BATCH = (
    HEAD
    + item(
        "TESTS",
        valid_judgement("TESTS", "suite", steps=[step("Run", "suite", "suite_green=YES/NO")]),
    )
    + item("DEPLOY", DEPLOYS, attrs="depends_on=TESTS")
)
LIE = item("TESTS", more=f"{result(1)}\n{evidence()}", plan=None)


def bound(name: str, output: str) -> dict[str, dict[str, str]]:
    return {"decision": {"batch": "release", "item": name, "step": output}}


async def runs(agent: Session, proposal: str) -> None:
    """The agent waits for its grant, begins, and reports that it went well."""
    granted = await asyncio.wait_for(agent.decision(proposal), 60)
    await agent.execute(granted)
    await agent.result(granted, success=True, duration_ms=5, result="42 passed")


@proves("UNI-15", "UNI-18", "UNI-19", "OPEN-135")
async def test_release_is_held_approved_run_and_recorded_with_the_commit(
    server: ServerProcess, tmp_path: Path
) -> None:
    alice = UserShell(tmp_path / "alice", server, server.issue_token("alice", "human", ("admin",)))
    id = alice.output_of("session", "create", "--name", "Release")
    repo = Repo(tmp_path / "code", server.home)
    repo.accord("git", "install")
    name = repo.git("config", "accord.repo").strip()
    await asyncio.to_thread(
        send_action, server.home / "bridge.sock", "session-started", repo=name, session=id
    )
    batch = tmp_path / "batch.txt"
    batch.write_text(BATCH, "utf-8")
    alice.output_of("session", "context", id, "add", "decision:release", str(batch))

    async with (
        Client(server.url, token=server.issue_token("claude", "agent", ("driver",))) as one,
        Client(server.url, token=server.issue_token("codex", "agent", ("adversary",))) as two,
    ):
        claude, codex = await one.join(id), await two.join(id)
        deploys = await claude.propose(
            "deploy", bound("DEPLOY", "deployed=YES/NO"), category="deploy", risk="high"
        )

        held = alice("approve", deploys)
        assert held.code == 5
        assert "held back by the decision release: DEPLOY is STANDBY" in held.err
        (tool,) = (await one.session(id)).tools
        assert tool.held is not None
        assert tool.held.item == "DEPLOY"
        with pytest.raises(ServerRefused, match="an agent cannot claim REAL"):
            await claude.update_context("decision:release", {"batch": LIE})

        tests = await claude.propose(
            "suite", bound("TESTS", "suite_green=YES/NO"), category="shell_execute"
        )
        alice.output_of("approve", tests)
        await runs(claude, tests)

        again = HEAD + item("DEPLOY", DEPLOYS)
        await codex.add_context("decision:release:codex", {"batch": again})
        shown = alice.output_of("gates")
        assert "◆ release/DEPLOY: DO NOW, ACTIVE" in shown
        assert "◆ judged by alice and codex" in shown
        (gate,) = (await one.session(id)).gates
        assert gate.action is not None
        ruled = gate.action.decision
        assert ruled is not None
        assert ruled.judges == ("alice", "codex")
        alice.output_of("approve", deploys)
        await runs(claude, deploys)

    await asyncio.to_thread(repo.commit, "api.py", "feat: ship v42")

    note = repo.note()
    (kept,) = json.loads(json.dumps(note))["decisions"]
    first, second = kept["verdicts"]
    assert (first["item"], second["item"]) == ("TESTS", "DEPLOY")
    assert second == {
        "batch": "release",
        "item": "DEPLOY",
        "step": "deployed=YES/NO",
        "verdict": "DO NOW",
        "confidence": ruled.confidence,
        "snapshot": ruled.sha256,
    }
    assert {each["by"] for each in kept["votes"]} == {"human:alice"}
    assert "approvals" not in kept  # a deployment covers no file of the commit
    assert repo.trailer("PVP-Session") == id
