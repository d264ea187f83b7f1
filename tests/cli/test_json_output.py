"""`--json` of every verb: one style of names, one style of times, one name for each thing."""

import asyncio
import contextlib
import io
import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.cli import main as cli
from accord.client import Client, Session
from accord.data_dir import store_url_of
from tests.helpers.clients.cli import clean_environment
from tests.helpers.docket.batch_text import item, valid_judgement
from tests.helpers.git.work_tree import git_environment
from tests.helpers.servers.server_process import ServerProcess, run_server

Env = dict[str, str]


class RecordedOutput:
    """Runs commands in this process, and keeps what each verb prints with --json."""

    def __init__(self) -> None:
        self.printed: dict[str, list[Any]] = {}

    def __call__(self, *words: str, code: int | None = 0, env: Env | None = None) -> Any:
        """The JSON that the command prints; a list if there are several lines."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                ended = cli.main([*words, "--json"])
        expected = code in {ended, None}
        assert expected, (words, ended, out.getvalue(), err.getvalue())
        text = out.getvalue()
        found = [json.loads(text)] if text.startswith("{\n") else parse_lines(text)
        self.printed.setdefault(verb_of(words), []).extend(found)
        return found[0] if len(found) == 1 else found


def parse_lines(text: str) -> list[Any]:
    """One value on each line."""
    return [json.loads(line) for line in text.splitlines()]


def verb_of(words: tuple[str, ...]) -> str:
    """The command, with its verb if it has verbs."""
    parser = cli.build_parser(words[0], cli.load_command(words[0]))
    return f"{words[0]} {words[1]}" if parser.verbs() else words[0]


def as_agent(server: ServerProcess, session: str, act: Callable[[Session], Awaitable[str]]) -> str:
    """Let the agent act in the session."""
    token = server.issue_token("claude", "agent", ("driver",))

    async def run() -> str:
        async with Client(server.url, token=token) as client:
            return await act(await client.join(session, listen=False))

    return asyncio.run(run())


async def ask(claude: Session) -> str:
    """Propose a call that needs approval."""
    return await claude.propose("shell", {"argv": ["ls"]}, category="shell_execute", risk="high")


# The story: everything that somebody types


def sign_in(accord: RecordedOutput, server: ServerProcess) -> None:
    """An operator signs in, and manages people."""
    made = server.admin_request(
        "POST", "/admin/invitations", {"id": "alice", "roles": ["admin", "driver", "approver"]}
    )
    accord("login", f"{server.url}#code={made['code']}")
    accord("whoami")
    accord("invite", "--role", "approver", "--name", "bob")
    waiting = accord("people", "invitations")["invitations"]
    accord("people", "list")
    accord("people", "devices")
    accord("people", "revoke", waiting[0]["id"])
    token = accord("token", "issue", "--id", "carl", "--type", "human", "--roles", "driver")
    accord("token", "list")
    accord("token", "revoke", token["jti"])
    accord("invite", "--role", "driver", "--name", "carl")
    accord("people", "remove", "carl")
    accord("keys", "list")


def work_in_a_session(accord: RecordedOutput, server: ServerProcess) -> str:
    """A session, its gates, forks and context; returns its id."""
    session: str = accord("session", "create", "--name", "Parser")["id"]
    token = server.issue_token("bob", "human", ("approver",))
    bob = {"ACCORD_URL": server.url, "ACCORD_TOKEN": token}
    accord("session", "join", session, env=bob)
    asked = as_agent(server, session, ask)
    accord("gates")
    accord("approve", asked)
    accord("reject", as_agent(server, session, ask), "--reason", "Not now")
    as_agent(server, session, ask)
    accord("gates")
    Path("notes.md").write_text("Notes\n")
    accord("session", "context", session, "add", "notes", "notes.md")
    accord("session", "context", session, "list")
    accord("session", "context", session, "show", "notes")
    accord("session", "context", session, "remove", "notes")
    accord("session", "prompt", session, "claude", "Fix it")
    fork = accord("session", "fork", session, "Grammar")["id"]
    accord("session", "forks", session)
    accord("session", "merge", session, fork, "--summary", "Shorter")
    accord("session", "stop", session, "claude", "--message", "Wait")
    accord("session", "list")
    accord("session", "show", session)
    accord("session", "log", session)
    accord("session", "export", session)
    given = accord("policy", "grant", "claude", "--run", "pytest **", "--session", session)
    accord("policy", "list")
    accord("policy", "revoke", given["id"])
    accord("session", "remove", session, "claude")
    accord("session", "readmit", session, "claude", "--roles", "driver")
    accord("session", "leave", session, env=bob)
    return session


def talk_in_a_thread(accord: RecordedOutput, server: ServerProcess) -> None:
    """A thread from its first message to its status."""
    thread = accord("thread", "create", "Parser", "--with", "bob")["thread_id"]
    token = server.issue_token("bob", "human", ("approver",))
    bob = {"ACCORD_URL": server.url, "ACCORD_TOKEN": token}
    accord("thread", "post", thread, "Hello")
    accord("inbox", env=bob)
    accord("thread", "list", env=bob)
    accord("thread", "read", thread, env=bob)
    accord("thread", "ack", thread, env=bob)
    accord("thread", "summary", thread)
    accord("thread", "add", thread, "claude")
    accord("thread", "wake", thread, "claude", code=None)  # there is no runtime to wake
    accord("thread", "status", thread, "resolved")
    accord("wakes")
    accord("agents", "list")
    accord("agents", "pause", "claude")
    accord("agents", "resume", "claude")


def connect_a_host(accord: RecordedOutput, session: str) -> None:
    """A coding agent comes and goes."""
    accord("connect", "gemini", "--session", session, "--yes")
    accord("connect", "gemini", "--check", code=None)  # depends on the machine
    with contextlib.chdir("."):  # a process of its own would leave ours where it is
        accord("daemon", "status")
    accord("disconnect", "gemini", "--yes")
    subprocess.run([sys.executable, "-m", "accord", "daemon", "stop"], check=True, timeout=60)


def commit_in_a_repository(
    accord: RecordedOutput, server: ServerProcess, session: str, remote: Path
) -> None:
    """Hooks, a commit with its record, and everything that reads it."""
    accord("git", "install")
    accord("git", "status")
    sign_a_policy(accord)
    accord("git", "bind", session)
    Path("a.txt").write_text("one\n")
    git("add", "a.txt")
    git("commit", "-qm", "feat: one")
    accord("git", "parse")
    accord("git", "coverage")
    accord("git", "tree")
    accord("git", "log")
    accord("git", "heal")
    accord("git", "places", env={"ACCORD_HOME": str(server.home)})
    accord("why", "a.txt:1")
    Path("message").write_text("feat: one\n\nPVP-Confidence: 7\n")
    accord("git", "check-message", "message", code=2)
    accord("git", "branch", "fork_01M7GMJP1Y4T7CP7A3QNGAT9X2")
    git("init", "-q", "--bare", str(remote))
    git("remote", "add", "origin", str(remote))
    accord("git", "share")
    accord("git", "fetch")
    statement = accord("git", "export", "HEAD")
    Path("proof.json").write_text(json.dumps(statement))
    accord("git", "verify", "proof.json", "--data-dir", str(server.home))
    accord("git", "unbind", session)
    accord("git", "uninstall")


def git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, timeout=60, capture_output=True)


def sign_a_policy(accord: RecordedOutput) -> None:
    """How calls are classed in this repository."""
    accord("policy", "init", "--stack", "python")
    accord("policy", "check")
    accord("policy", "test", "git push")
    accord("policy", "sign", "--yes")


def keep_a_pact(accord: RecordedOutput) -> None:
    """Tasks from their assignment to the merge."""
    ann, bob = {"PACT_AGENT_ID": "ann"}, {"PACT_AGENT_ID": "bob"}
    seats = ("--seat", "ann:orchestrator,reviewer:A.md", "--seat", "bob:worker:B.md")
    git("commit", "-q", "--allow-empty", "-m", "chore: begin")
    accord("pact", "init", "--project", "demo", *seats, env=ann)
    accord("pact", "join", "bob", "--roles", "worker", env=bob)
    assign = ("--feature", "cart", "--branch", "cart", "--owner", "bob", "--reviewer", "ann")
    accord("pact", "assign", "T1", *assign, env=ann)
    accord("pact", "watch", "--first", env=bob)
    accord("pact", "checkpoint", "T1", "--evidence", "it runs", env=bob)
    accord("pact", "changes", "T1", "--reason", "a test, please", env=ann)
    accord("pact", "checkpoint", "T1", "--evidence", "tested", env=bob)
    accord("pact", "accept", "T1", env=ann)
    accord("pact", "merge", "cart", "--no-git", env=ann)
    accord("pact", "status", env=ann)
    accord("pact", "log", env=ann)
    accord("pact", "validate", env=ann)
    accord("pact", "key", env=bob)


def decide_by_rule(accord: RecordedOutput) -> None:
    """A batch, and its snapshot."""
    batch = Path("batch.txt")
    batch.write_text("<<<B close_policy=SIMOK>>>\n" + item("A", valid_judgement("A")), "utf-8")
    Path("snapshot").write_text(accord("decide", "run", "batch.txt")["snapshot"], "utf-8")
    accord("decide", "report", "snapshot")
    accord("decide", "compare", "snapshot", "snapshot")
    accord("decide", "check", "snapshot")
    accord("decide", "check", "batch.txt", code=2)
    accord("decide", "allow", "snapshot", "A", "x=YES/NO", code=3)


def administer(accord: RecordedOutput, server: ServerProcess, session: str) -> None:
    """The end of the session, then the log without its server."""
    accord("session", "end", session)
    accord("doctor", code=None)  # depends on the machine
    accord("logout")
    home = ("--data-dir", str(server.home))
    server.stop()
    accord("keys", "rotate", *home)
    accord("compact", *home, "--session", session, "--reason", "Test")
    accord("verify", *home)
    accord("backup", *home, "copy.backup")
    accord("restore", "--data-dir", str(server.home.parent / "other"), "copy.backup")
    accord("store", "copy", store_url_of(server.home), "sqlite:copied.db")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """What every verb printed in the story."""
    folder = tmp_path_factory.mktemp("json")
    for name in ("home", "work"):
        (folder / name).mkdir()
    with pytest.MonkeyPatch.context() as patch, run_server(folder / "server") as server:
        for name in clean_environment():
            patch.delenv(name, raising=False)
        for name, value in git_environment(folder / "home").items():
            patch.setenv(name, value)
        patch.chdir(folder / "work")
        git("init", "-q", "-b", "main")
        accord = RecordedOutput()
        sign_in(accord, server)
        session = work_in_a_session(accord, server)
        talk_in_a_thread(accord, server)
        connect_a_host(accord, session)
        commit_in_a_repository(accord, server, session, folder / "remote.git")
        keep_a_pact(accord)
        decide_by_rule(accord)
        administer(accord, server, session)
        yield accord.printed


# What holds for all of it

STORED_FORMATS = frozenset({"record", "messages"})  # a note of git, and PVP's envelopes
WIRE_FORMATS = frozenset({"session log", "pact log", "git export"})
KEYED_BY_VALUES = frozenset({"people", "halted", "vouched", "arguments"})
SNAKE_CASE = re.compile("[a-z][a-z0-9]*(_[a-z0-9]+)*")
LOOKS_LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d\S*")
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
# Seconds and milliseconds since 1970, from 2017 to 2033.
EPOCH_TIMES = (range(1_500_000_000, 2_000_000_000), range(1_500_000_000_000, 2_000_000_000_000))
# Names that were in use for a thing that has another name everywhere else.
OTHER_NAMES = {
    "sha": "commit",
    "kid": "key, or id in a list of keys",
    "public": "public_key",
    "why": "reason",
    "flaws": "findings",
    "diagnostics": "findings",
    "detail": "problem",
    "sentence": "problem",
    "hint": "fix",
    "mend": "fix",
    "cure": "fix",
    "at": "a name that ends with _at",
    "iat": "issued_at",
    "exp": "expires_at",
    "agent_id": "principal",
    "workspace_id": "workspace",
}
# The sentence of a ruling that holds a proposal; a field of the HTTP responses. And a name of MSG.
# The last three are the names of MSG, as its methods have them.
KEPT_NAMES = frozenset(
    {"held.why", "threads.workspace_id", "agents.agent_id", "agents.workspace_id"}
)
REFUSED = frozenset({"thread wake"})  # nothing in the story could be woken


def fields_of(content: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field with its path, without what another format defines."""
    if isinstance(content, list):
        for each in content:
            yield from fields_of(each, path)
    if isinstance(content, dict):
        for name, value in content.items():
            yield f"{path}.{name}".removeprefix("."), value
            if name not in STORED_FORMATS | KEYED_BY_VALUES:
                yield from fields_of(value, f"{path}.{name}")


@pytest.fixture(scope="module")
def fields(printed: dict[str, list[Any]]) -> list[tuple[str, str, Any]]:
    """Verb, path and value of everything that is ours to name."""
    return [
        (verb, path, value)
        for verb, outputs in printed.items()
        if verb not in WIRE_FORMATS
        for path, value in fields_of(outputs)
    ]


def verbs_with_json() -> Iterator[str]:
    """Every command and verb that has the flag."""
    for command in cli.COMMANDS:
        parser = cli.build_parser(command, cli.load_command(command))
        verbs = parser.verbs() or {"": parser}
        for verb, inner in verbs.items():
            if "--json" in inner.flags():
                yield f"{command} {verb}".strip()


def test_the_story_has_every_verb_that_prints_json(printed: dict[str, list[Any]]) -> None:
    missing = set(verbs_with_json()) - printed.keys()

    assert not missing, "add a line to the story in this file for each of these"
    assert {verb for verb, outputs in printed.items() if not outputs} <= REFUSED


def test_names_are_in_snake_case(fields: list[tuple[str, str, Any]]) -> None:
    wrong = {
        (verb, path)
        for verb, path, _ in fields
        if not SNAKE_CASE.fullmatch(path.rpartition(".")[2])
    }

    assert not wrong


def test_a_thing_has_one_name(fields: list[tuple[str, str, Any]]) -> None:
    wrong = {
        (verb, path, f"use {OTHER_NAMES[name]}")
        for verb, path, _ in fields
        if (name := path.rpartition(".")[2]) in OTHER_NAMES
        and ".".join(path.split(".")[-2:]) not in KEPT_NAMES
    }

    assert not wrong


def test_times_are_text_in_utc_and_their_names_end_alike(
    fields: list[tuple[str, str, Any]],
) -> None:
    for verb, path, value in fields:
        numeric = isinstance(value, int) and any(value in epoch for epoch in EPOCH_TIMES)
        assert not numeric, (verb, path, value)
        is_time = isinstance(value, str) and bool(LOOKS_LIKE_A_TIME.fullmatch(value))
        if path.endswith("_at") and value is not None:
            assert is_time, (verb, path, value)
        if is_time:
            assert path.endswith("_at"), (verb, path, value)
            assert RFC_3339.fullmatch(value), (verb, path, value)


def test_formats_of_others_have_times_in_utc_too(printed: dict[str, list[Any]]) -> None:
    assert all(LOOKS_LIKE_A_TIME.fullmatch(each["ts"]) for each in printed["session log"])
    assert all(each["ts"].endswith("Z") for each in printed["session log"])
    assert all(each["ts"].endswith("Z") for each in printed["pact log"][0])


def test_a_commit_and_a_session_are_named_alike_in_every_verb(
    fields: list[tuple[str, str, Any]], printed: dict[str, list[Any]]
) -> None:
    commit = printed["git log"][0]["commits"][0]["commit"]
    session = printed["session create"][0]["id"]

    names = {path.rpartition(".")[2] for _, path, value in fields if value == commit}
    assert names == {"commit"}
    names = {path.rpartition(".")[2] for _, path, value in fields if value == session}
    assert names == {"id", "session", "session_id"}


def test_an_approval_that_was_enough_is_counted(printed: dict[str, list[Any]]) -> None:
    (approved,), (rejected,) = printed["approve"], printed["reject"]

    assert (approved["state"], approved["approvals_received"]) == ("approved", 1)
    assert (rejected["state"], rejected["approvals_received"]) == ("rejected", 0)
