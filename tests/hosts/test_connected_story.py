"""Two people, Claude Code and Codex in one session and repository, through crashes of ours."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.docs.shell import Shell
from tests.helpers.hosts.gated_agent import is_zombie, wait_until
from tests.helpers.hosts.scripted_model.script import Call, Script, Step, ToolResult
from tests.helpers.hosts.scripted_model.server import ScriptedModel, serve
from tests.helpers.hosts.table import chosen_hosts
from tests.helpers.servers.server_process import ServerProcess
from tests.hosts.conftest import MakeAgent
from tests.hosts.test_connect_pages import Reader

pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not {"claude", "codex"} <= set(chosen_hosts()),
        reason="Claude Code and Codex are not chosen",
    ),
]

DELETE = "rm -r old"
TRY = [Step(calls=[Call("Bash", {"command": DELETE})]), Step(say="Tried.")]
CLAUDE = Script({"Remove the old parser": TRY, "Go on": TRY, "Once more": TRY})


def review(thread: str) -> Script:
    """Codex reports a problem in the thread."""
    finding = {
        "thread_id": thread,
        "schema_version": 1,
        "kind": "event",
        "body": "The old parser is still imported.",
        "metadata": {"event_type": "finding_reported", "task_id": "T1"},
        "idempotency_key": "finding-1",
    }
    return Script({"Review": [Step(calls=[Call("post_message", finding)]), Step(say="Reported.")]})


def ask(shell: Shell, command: str) -> Any:
    """The JSON that a command prints."""
    done = shell.run(command)
    assert done.code == 0, f"{command}: {done.text}"
    return json.loads(done.text)


def last_result(model: ScriptedModel) -> ToolResult:
    """What the model was shown last."""
    return model.exchanges[-1].request.own_results[-1]


def kill_daemon(shell: Shell) -> None:
    """Kill the daemon of this home as a crash would."""
    pid = ask(shell, "accord daemon status --json")["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or is_zombie(pid))


@pytest.mark.usefixtures("stopped_daemons")
def test_a_refused_call_passes_once_after_the_other_person_s_approval(
    server: ServerProcess, make_agent: MakeAgent, tmp_path: Path
) -> None:
    repo = tmp_path / "shop"
    old = repo / "old"
    with serve(CLAUDE) as claude, Reader(make_agent("claude", claude, None), server) as alice:
        assert alice.run(f"git init -q {repo} && cd {repo} && mkdir old").code == 0
        named = "git -c user.name=Alice -c user.email=alice@example.org"
        begin = f"touch old/parser.py && git add -A && {named} commit -qm 'chore: begin'"
        assert alice.run(begin).code == 0
        connected = ask(alice, "accord connect claude-code --yes --json")
        session = connected["session"]
        bob = {
            "ACCORD_URL": server.url,
            "ACCORD_TOKEN": server.issue_token("bob", roles=["approver"]),
        }
        as_bob = " ".join(f"{name}={value}" for name, value in bob.items())
        assert alice.run(f"{as_bob} accord session join {session}").code == 0

        assert alice.run('claude -p "Remove the old parser."').code == 0
        assert "Accord" in last_result(claude).text
        assert old.exists()

        (gate,) = ask(alice, f"{as_bob} accord gates --json")["gates"]
        server.kill()
        kill_daemon(alice)
        server.start()
        assert alice.run(f"{as_bob} accord approve {gate['id']}").code == 0
        assert alice.run('claude -p --continue "Go on."').code == 0
        assert not old.exists(), last_result(claude).text
        assert alice.run(f"accord git install && accord git bind {session}").code == 0
        assert alice.run(f"{named} commit -qam 'feat: drop the old parser'").code == 0
        message = alice.run("git log -1 --format=%B").text
        assert "Decision-By: ai:alice-claude-code,human:alice" in message
        assert "Assisted-by: alice-claude-code:" in message
        assert "human:bob said yes" in alice.run("accord why HEAD").text

        assert alice.run('mkdir old; claude -p --continue "Once more."').code == 0
        assert "Accord" in last_result(claude).text
        assert old.exists(), "the approval was for one call"

        thread = ask(alice, "accord thread create Review --with bob --json")["thread_id"]
        with (
            serve(review(thread)) as model,
            Reader(make_agent("codex", model, None), server) as own,
        ):
            assert own.run(f"cd {repo}").code == 0
            agent = ask(own, f"accord connect codex --session {session} --yes --json")["agent"]
            assert alice.run(f"accord thread add {thread} {agent}").code == 0
            assert own.run('codex exec "Review."').code == 0
            assert last_result(model).json()["message_id"]

        (item,) = ask(alice, f"accord thread summary {thread} --json")["open_items"]
        assert (item["event_type"], item["reported_by"]) == ("finding_reported", agent)
        members = {
            each["id"] for each in ask(alice, f"accord session show {session} --json")["members"]
        }
        assert {"alice", "bob", "alice-claude-code", "alice-codex"} <= members
