"""Three vendors' agents edit one repository; people approve; the commit names them all."""

import asyncio
from pathlib import Path
from typing import Any

from accord.api.policies import StandingGrantRequest
from tests.daemon.test_reports import TRANSCRIPTS, write_transcript
from tests.daemon.test_signed_policy import sign
from tests.helpers.clients.bridge_client import send_action
from tests.helpers.hosts.gated_agent import GatedAgent, People
from tests.helpers.hosts.samples import read_sample
from tests.helpers.servers.server_process import ServerProcess
from tests.stories.test_prompt_to_why import Repo

CLAUDE, CODEX, GEMINI = "claude-code", "codex", "gemini"
EDITS = {
    CLAUDE: ("PostToolUse-Write", "", "g.txt"),
    CODEX: ("PostToolUse-apply_patch", "lib", "lib/made.txt"),
    GEMINI: ("AfterTool-write_file", "", "f.txt"),
}
MODELS = {CLAUDE: "claude-opus-5", CODEX: "gpt-5.5", GEMINI: "gemini-2.5-flash"}


def edit(agent: GatedAgent, people: People, approver: str) -> str:
    """One edit as its host makes it: refused, approved by one person, made, reported."""
    name, below, file = EDITS[agent.host]
    done = read_sample(agent.host, name, agent.home, agent.root)
    done["cwd"] = str(agent.root / below)
    write_transcript(done, *TRANSCRIPTS[agent.host][0])
    asked = {key: value for key, value in done.items() if key != "tool_response"}
    assert agent.hook("pre-tool", asked).decision == "deny"
    people.approve(id=approver)
    assert agent.hook("pre-tool", asked).decision != "deny"
    (agent.root / file).write_text("hello\n")
    agent.hook("post-tool", done)
    return file


def test_commit_names_agents_models_and_who_approved(server: ServerProcess, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "code", server.home)
    repo.commit("README", "chore: begin")
    repo.accord("git", "install")
    people = People(server)
    id = repo.git("config", "accord.repo").strip()
    send_action(server.home / "bridge.sock", "session-started", repo=id, session=people.session)
    (repo.folder / "lib").mkdir()
    home = tmp_path / "home"
    agents = [GatedAgent(people, home, host, repo.folder, f"ann-{host}") for host in EDITS]

    try:
        for agent in agents:
            edit(agent, people, "bob")
            agent.kill_daemon()
        server.restart()
        repo.git("add", "-A")
        repo.git("commit", "-q", "-m", "feat: three files")
    finally:
        GatedAgent.stop_daemon_of(home)

    assisted = set(repo.trailer("Assisted-by").replace("\n", ",").split(","))
    assert assisted == {f"ann-{host}:{model}" for host, model in MODELS.items()}
    assert repo.trailer("Approved-By") == "human:bob"
    (made,) = repo.note()["decisions"]
    assert made["covers"] == "whole"
    decided = repo.trailer("Decision-By")
    assert all(f"ann-{host}" in decided for host in EDITS)
    shown = repo.accord("why", "lib/made.txt")
    assert "ann-codex" in shown
    assert "bob" in shown


def test_file_written_differently_from_its_approval_is_covered_by_nobody(
    server: ServerProcess, tmp_path: Path
) -> None:
    repo = Repo(tmp_path / "code", server.home)
    repo.commit("README", "chore: begin")
    repo.accord("git", "install")
    people = People(server)
    told: dict[str, Any] = {
        "repo": repo.git("config", "accord.repo").strip(),
        "session": people.session,
    }
    send_action(server.home / "bridge.sock", "session-started", **told)
    agent = GatedAgent(people, tmp_path / "home", CLAUDE, repo.folder)

    try:
        file = edit(agent, people, "bob")
    finally:
        GatedAgent.stop_daemon_of(agent.home)
    (repo.folder / file).write_text("hello, and a back door\n")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "feat: one file")

    assert repo.trailer("Approved-By") == ""


def test_standing_grant_is_in_the_note_and_approves_no_commit(
    server: ServerProcess, tmp_path: Path
) -> None:
    repo = Repo(tmp_path / "code", server.home)
    repo.commit("README", "chore: begin")
    repo.accord("git", "install")
    id = repo.git("config", "accord.repo").strip()
    people = People(server)
    send_action(server.home / "bridge.sock", "session-started", repo=id, session=people.session)
    agent = GatedAgent(people, tmp_path / "home", CLAUDE, repo.folder, "ann-claude", repository=id)
    rules = '[[path]]\nwrite = ["*.txt"]\ncategory = "file_write"\nrisk = "low"\n'
    sign(people, id, f"version = 1\n{rules}")
    wanted = StandingGrantRequest(agent="ann-claude", write=("*.txt",), count=1, seconds=600)

    try:
        assert not agent.ask("ls").decision, "the agent is a member from now on"
        asyncio.run(people.client("bob").give_standing_grant(people.session, wanted))
        done = read_sample(CLAUDE, EDITS[CLAUDE][0], agent.home, agent.root)
        asked = {key: value for key, value in done.items() if key != "tool_response"}
        assert agent.hook("pre-tool", asked).decision == "allow", "Bob's grant votes at once"
        (repo.folder / "g.txt").write_text("hello\n")
        agent.hook("post-tool", done)
        assert agent.hook("pre-tool", asked).decision == "deny", "it was for one call"
    finally:
        GatedAgent.stop_daemon_of(agent.home)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "feat: one file")

    assert repo.trailer("Approved-By") == ""
    assert "ann-claude" in repo.trailer("Assisted-by")
    (made,) = repo.note()["decisions"]
    (run,) = made["tool_executions"]
    assert run["standing"] == ["human:bob"]
    assert not run.get("approved_by")
    assert made.get("coverage", []) == []
    why = " ".join(repo.accord("why", "HEAD").split())  # it may be wrapped
    assert "standing human:bob had granted calls alike for g.txt; this covers nothing" in why, why
