"""Two people, Claude Code, Codex and Gemini CLI in one session and repository, through crashes."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.docs.shell import Shell
from tests.helpers.git.hook_timeout import extend_hook_timeout
from tests.helpers.hosts.gated_agent import is_zombie, wait_until
from tests.helpers.hosts.scripted_model.script import Call, Script, Step, ToolResult
from tests.helpers.hosts.scripted_model.server import ScriptedModel, serve
from tests.helpers.hosts.table import chosen_hosts
from tests.helpers.servers.server_process import ServerProcess
from tests.hosts.conftest import MakeAgent
from tests.hosts.test_connect_pages import Reader
from tests.spec import proves

pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not {"claude", "codex", "gemini"} <= set(chosen_hosts()),
        reason="Claude Code, Codex and Gemini CLI are not all chosen",
    ),
]

NAMED = "git -c user.name=Alice -c user.email=alice@example.org"
DELETE = "rm -r old"
TRY = [Step(calls=[Call("Bash", {"command": DELETE})]), Step(say="Tried.")]
CLAUDE = Script({"Remove the old parser": TRY, "Go on": TRY, "Once more": TRY})
FIX = [Step(calls=[Call("exec_command", {"cmd": "touch parser.py"})]), Step(say="Tried.")]
GRAMMAR = "expression = term { '+' term }\n"


def review(thread: str) -> Script:
    """Codex reports a problem in the thread, and mends it."""
    finding = {
        "thread_id": thread,
        "schema_version": 1,
        "kind": "event",
        "body": "Nothing parses now.",
        "metadata": {"event_type": "finding_reported", "task_id": "T1"},
        "idempotency_key": "finding-1",
    }
    reports = [Step(calls=[Call("post_message", finding)]), Step(say="Reported.")]
    return Script({"Review": reports, "Mend it": FIX, "Go on": FIX})


def write_grammar(repo: Path) -> Script:
    """Gemini writes a file."""
    arguments = {"file_path": str(repo / "grammar.txt"), "content": GRAMMAR}
    steps = [Step(calls=[Call("write_file", arguments)]), Step(say="Tried.")]
    return Script({"Write a grammar": steps, "Go on": steps})


def ask(shell: Shell, command: str) -> Any:
    """The JSON that a command prints."""
    return json.loads(run(shell, command))


def run(shell: Shell, command: str) -> str:
    """What a command that ends well prints."""
    done = shell.run(command)
    assert done.code == 0, f"{command}: {done.text}"
    return done.text


def last_result(model: ScriptedModel) -> ToolResult:
    """What the model was shown last."""
    return model.exchanges[-1].request.own_results[-1]


def kill_daemon(shell: Shell) -> None:
    """Kill the daemon of this home as a crash would."""
    pid = ask(shell, "accord daemon status --json")["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or is_zombie(pid))


class Story:
    """Alice's repository and shell, Bob's token, and a home for each host."""

    def __init__(self, server: ServerProcess, make_agent: MakeAgent, repo: Path) -> None:
        self.server, self.make_agent, self.repo = server, make_agent, repo
        self.session = ""
        self.stack = ExitStack()
        token = server.issue_token("bob", roles=["approver"])
        self.as_bob = f"ACCORD_URL={server.url} ACCORD_TOKEN={token} accord"

    def host(self, name: str, script: Script) -> tuple[ScriptedModel, Shell]:
        """A host in a home of its own, where Alice is signed in, at the repository."""
        model = self.stack.enter_context(serve(script))
        reader = Reader(self.make_agent(name, model, None), self.server)
        shell = self.stack.enter_context(reader)
        run(shell, f"mkdir -p {self.repo} && cd {self.repo}")
        return model, shell

    def bob_approves_the_only_gate(self, shell: Shell) -> None:
        (gate,) = ask(shell, f"{self.as_bob} gates --json")["gates"]
        run(shell, f"{self.as_bob} approve {gate['id']}")


@pytest.fixture
def story(
    server: ServerProcess, make_agent: MakeAgent, stopped_daemons: None, tmp_path: Path
) -> Iterator[Story]:
    made = Story(server, make_agent, tmp_path / "shop")
    with made.stack:
        yield made


def claude_removes_the_parser(story: Story) -> Shell:
    """Refused, approved by Bob while server and daemon crash, passed once, refused again."""
    claude, alice = story.host("claude", CLAUDE)
    old = story.repo / "old"
    run(alice, "git init -q -b main && mkdir old && touch old/parser.py && git add -A")
    run(alice, f"{NAMED} commit -qm begin")
    story.session = ask(alice, "accord connect claude-code --yes --json")["session"]
    run(alice, f"{story.as_bob} session join {story.session}")
    run(alice, f"accord git install && accord git bind {story.session}")
    extend_hook_timeout(story.repo / ".git/hooks")

    run(alice, 'claude -p "Remove the old parser."')
    assert "Accord" in last_result(claude).text
    assert old.exists()

    story.server.kill()
    kill_daemon(alice)
    story.server.start()
    story.bob_approves_the_only_gate(alice)
    run(alice, 'claude -p --continue "Go on."')
    assert not old.exists(), last_result(claude).text

    run(alice, 'mkdir old; claude -p --continue "Once more."')
    assert "Accord" in last_result(claude).text
    assert old.exists(), "the approval was for one call"
    (again,) = ask(alice, "accord gates --json")["gates"]
    run(alice, f"rmdir old; accord reject {again['id']} --reason 'It is done'")
    return alice


def codex_reviews_and_mends(story: Story, alice: Shell) -> None:
    """A finding in a thread, and a command that Bob approves."""
    thread = ask(alice, "accord thread create Review --with bob --json")["thread_id"]
    model, shell = story.host("codex", review(thread))
    connected = ask(shell, f"accord connect codex --session {story.session} --yes --json")
    run(alice, f"accord thread add {thread} {connected['agent']}")
    run(shell, 'codex exec "Review."')
    assert last_result(model).json()["message_id"]
    (item,) = ask(alice, f"accord thread summary {thread} --json")["open_items"]
    assert (item["event_type"], item["reported_by"]) == ("finding_reported", connected["agent"])

    run(shell, 'codex exec "Mend it."')
    assert "Accord" in last_result(model).text
    story.bob_approves_the_only_gate(alice)
    run(shell, 'codex exec resume --last "Go on."')
    assert (story.repo / "parser.py").exists(), last_result(model).text


def gemini_works_in_a_fork(story: Story, alice: Shell) -> str:
    """Its prompts and calls are in the fork, where Bob approves, and on a branch of its own."""
    model, shell = story.host("gemini", write_grammar(story.repo))
    connected = ask(shell, f"accord connect gemini --session {story.session} --yes --json")
    members = f"{connected['agent']},bob"
    fork = run(
        alice, f'accord session fork {story.session} "Try a grammar" --with {members}'
    ).strip()
    assert ask(shell, f"accord connect gemini --fork {fork} --yes --json")["fork"] == fork
    branch = run(alice, f"accord git branch {fork}").strip()
    run(alice, f"git switch -q {branch}")
    gemini = "gemini --approval-mode yolo -m gemini-2.5-flash"
    run(shell, f'{gemini} -p "Write a grammar."')
    assert "Accord" in last_result(model).text
    story.bob_approves_the_only_gate(alice)
    run(shell, f'{gemini} --resume latest -p "Go on."')
    assert (story.repo / "grammar.txt").read_text() == GRAMMAR, last_result(model).text
    run(alice, f"git add -A && {NAMED} commit -qm 'feat: a grammar'")
    return fork


@proves("UNI-13", "PVP-13-1", "PVP-14-1", "PVP-14.3-1", "PVP-16.1-3", "PVP-16.3-3")
def test_three_vendors_agents_and_two_people_work_in_one_session(story: Story) -> None:
    alice = claude_removes_the_parser(story)
    codex_reviews_and_mends(story, alice)
    run(alice, f"git add -A && {NAMED} commit -qm 'feat: another parser'")
    agents = ("alice-claude-code", "alice-codex")
    message = run(alice, "git log -1 --format=%B")
    assert f"Decision-By: {','.join(f'ai:{each}' for each in agents)},human:alice" in message
    assert "Assisted-by: alice-claude-code:claude-opus-5-5,alice-codex:gpt-5.5" in message
    why = run(alice, "accord why HEAD")
    assert "decided by   ai:alice-claude-code, ai:alice-codex and human:alice" in why
    assert "human:bob said yes for touch parser.py" in why

    fork = gemini_works_in_a_fork(story, alice)
    message = run(alice, "git log -1 --format=%B")
    assert f"PVP-Fork: {fork}" in message
    assert "Assisted-by: alice-gemini:gemini-2.5-flash" in message
    run(alice, f"accord session merge {story.session} {fork} --summary 'A grammar'")
    take = "merge -q --no-ff -m 'feat: take the grammar'"
    run(alice, f"git switch -q main && {NAMED} {take} pvp/{fork}")
    assert f"merges       fork {fork}" in run(alice, "accord why HEAD")
    why = run(alice, "accord why grammar.txt:1")
    assert "decided by   ai:alice-gemini and human:alice" in why
    assert "approved by  human:bob for grammar.txt" in why

    told = ask(alice, f"accord session show {story.session} --json")["members"]
    members = {"alice", "bob", "alice-gemini", *agents}
    assert {each["id"] for each in told} == members
    roles = [each["roles"] for each in told if each["type"] == "agent"]
    assert roles == [["driver"]] * 3, "no agent is an admin or approver, though Alice is one"
    tree = run(alice, "accord git tree")
    assert all(member in tree for member in members)
