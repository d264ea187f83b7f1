"""The hook that hosts run: its dialects, and that no failure of ours lets a call pass."""

import json
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import accord
from accord.hosts import gate_hook
from accord.hosts.connections import GATE_HOOK, hook_arguments, hook_command
from accord.hosts.hook_events import HOOK_EVENTS, PRE_TOOL
from tests.helpers.hosts.gated_agent import HookAnswer

HOSTS = sorted(gate_hook.DIALECTS)
CALL = json.dumps({"tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": "/"})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration directory whose path is longer than that of a socket may be."""
    folder = tmp_path / ("x" * 60) / ("y" * 60)
    (folder / "connections").mkdir(parents=True)
    return folder


def run_hook(
    config: Path, host: str = "codex", event: str = PRE_TOOL, call: str = CALL
) -> HookAnswer:
    words = hook_arguments(config / "connections" / "r.json", host, event)
    done = subprocess.run(words, input=call, capture_output=True, text=True, check=False)
    return HookAnswer(done.returncode, done.stdout, done.stderr)


@contextmanager
def fake_daemon(config: Path, answer: Callable[[dict[str, Any]], bytes]) -> Iterator[None]:
    """Answers with these bytes; the path of the socket is too long, so it is bound by its name."""
    before = Path.cwd()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    os.chdir(config)
    listener.bind("daemon.sock")
    os.chdir(before)
    listener.listen()

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with suppress(OSError), peer, peer.makefile("rb") as lines:
                peer.sendall(answer(json.loads(lines.readline())))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        (config / "daemon.sock").unlink()


def says(decision: str, reason: str = "because") -> Callable[[dict[str, Any]], bytes]:
    return lambda _: json.dumps({"decision": decision, "reason": reason}).encode() + b"\n"


def test_version_is_that_of_accord() -> None:
    assert accord.__version__ == gate_hook.VERSION


def test_every_host_with_events_has_a_dialect() -> None:
    assert sorted(HOOK_EVENTS) == HOSTS


@pytest.mark.parametrize("host", HOSTS)
def test_denial_is_in_the_host_s_own_words(config: Path, host: str) -> None:
    with fake_daemon(config, says("deny", "not now")):
        answer = run_hook(config, host)

    assert (answer.code, answer.decision, answer.reason) == (0, "deny", "not now")


SILENCE_IS_A_FAILURE = {"cursor": '{"permission": "allow"}'}


@pytest.mark.parametrize("host", HOSTS)
def test_no_decision_is_silence_unless_the_host_refuses_it(config: Path, host: str) -> None:
    with fake_daemon(config, says("none")):
        assert run_hook(config, host) == HookAnswer(0, SILENCE_IS_A_FAILURE.get(host, ""), "")


@pytest.mark.parametrize(("host", "said"), [("claude-code", "allow"), ("codex", "")])
def test_granted_call_is_allowed_where_the_host_knows_the_word(
    config: Path, host: str, said: str
) -> None:
    with fake_daemon(config, says("allow")):
        assert run_hook(config, host).decision == said


def test_request_carries_version_record_event_and_call(config: Path) -> None:
    seen: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> bytes:
        seen.append(request)
        return says("none")(request)

    with fake_daemon(config, answer):
        run_hook(config, "gemini")

    (request,) = seen
    assert request["version"] == accord.__version__
    assert request["record"] == str(config / "connections" / "r.json")
    assert (request["host"], request["event"]) == ("gemini", "pre-tool")
    assert request["payload"] == json.loads(CALL)


@pytest.mark.parametrize(
    "answer",
    [
        b"{}\n",
        b"[]\n",
        b"not json\n",
        b'{"decision": "approve"}\n',
        b'{"decision": true}\n',
        b'{"error": "it failed."}\n',
        b"x" * ((1 << 20) + 10) + b"\n",
    ],
)
def test_answer_that_is_no_decision_is_a_refusal(config: Path, answer: bytes) -> None:
    with fake_daemon(config, lambda _: answer):
        given = run_hook(config)

    assert given.decision == "deny"
    assert given.reason.startswith("Accord refused this call: ")


@pytest.mark.parametrize("call", ["", "not json", "[]", "null", "[" * 100_000, '"text"'])
@pytest.mark.parametrize("host", ["codex", "gemini"])
def test_input_that_is_no_call_is_a_refusal(config: Path, host: str, call: str) -> None:
    answer = run_hook(config, host, call=call)

    assert answer.decision == "deny"
    assert answer.code == 0


def test_too_large_a_call_is_a_refusal(config: Path) -> None:
    answer = run_hook(config, call=json.dumps({"x": "y" * (9 << 20)}))

    assert answer.decision == "deny"
    assert "larger than 8 MiB" in answer.reason


def test_unknown_host_is_refused_by_exit_code_and_sentence(config: Path) -> None:
    with fake_daemon(config, says("none")):
        answer = run_hook(config, "emacs")

    assert answer.code == 2
    assert answer.errors.strip()


def test_missing_arguments_are_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(GATE_HOOK)],
        input="{}",
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "accord connect" in done.stderr


def test_daemon_that_cannot_start_is_a_refusal(config: Path) -> None:
    """Where its configuration directory does not exist, no daemon can run."""
    answer = run_hook(config / "gone")

    assert answer.decision == "deny"
    assert "accord doctor" in answer.reason


def test_gate_has_a_deadline_of_its_own(config: Path) -> None:
    """The same program with a shorter deadline, and a daemon that never answers."""
    program = GATE_HOOK.read_text("utf-8").replace("GATE_SECONDS = 25.0", "GATE_SECONDS = 0.3")
    copied = config / "gate_hook.py"
    copied.write_text(program, "utf-8")
    silent = threading.Event()

    def never(_: dict[str, Any]) -> bytes:
        silent.wait(20)
        return b""

    with fake_daemon(config, never):
        words = [sys.executable, "-I", "-S", str(copied), str(config / "connections/r.json")]
        done = subprocess.run(
            [*words, "gemini", PRE_TOOL], input=CALL, capture_output=True, text=True, check=True
        )
        silent.set()

    assert json.loads(done.stdout)["decision"] == "deny"
    assert "in time" in json.loads(done.stdout)["reason"]


def test_hook_that_only_reports_never_disturbs_the_host(config: Path) -> None:
    with fake_daemon(config, lambda _: b"not json\n"):
        assert run_hook(config, event="post-tool") == HookAnswer(0, "", "")


def test_killed_hook_refuses_with_a_sentence(config: Path) -> None:
    """As hosts run it: the shell around the hook turns every end into a refusal."""
    gate = next(each for each in HOOK_EVENTS["codex"] if each.is_gate)
    line = hook_command(config / "connections" / "r.json", "codex", gate)
    killed = ["/bin/sh", "-c", "kill -9 $$"]
    words = shlex.split(line)

    command = ["/bin/sh", "-c", shlex.join([*words[:3], *killed])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "Accord refused this call" in done.stderr


def test_environment_changes_neither_imports_nor_the_daemon_asked(
    config: Path, tmp_path: Path
) -> None:
    evil = tmp_path / "evil"
    (evil / "accord").mkdir(parents=True)
    (evil / "json.py").write_text("raise SystemExit(0)\n")
    words = hook_arguments(config / "connections" / "r.json", "codex", PRE_TOOL)
    env = {"PYTHONPATH": str(evil), "XDG_CONFIG_HOME": str(evil), "HOME": str(evil)}

    with fake_daemon(config, says("deny", "asked")):
        done = subprocess.run(
            words, input=CALL, capture_output=True, text=True, env=env, cwd=evil, check=True
        )

    assert "asked" in done.stdout
