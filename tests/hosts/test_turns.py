"""The harness itself: a turn ends at its deadline, and its processes with it."""

import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.helpers.hosts.host import Answer, Host, HttpMcp
from tests.helpers.hosts.scripted_model.script import Script
from tests.helpers.hosts.scripted_model.server import serve
from tests.helpers.hosts.turns import Agent

# Starts a child that leaves the process group, prints its id, and waits.
DETACHED_CHILD = """
import subprocess, sys, time
words = [sys.executable, "-c", "import time; time.sleep(600)"]
child = subprocess.Popen(words, start_new_session=True)
print(child.pid, flush=True)
time.sleep(float(sys.argv[1]))
"""
LEAVE_LOOPBACK = """
import sys, urllib.error, urllib.request
try:
    urllib.request.urlopen(f"https://{sys.argv[1]}/", timeout=20)
except urllib.error.URLError:
    pass
"""
PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)))"


def fake_host(*program: str) -> Host:
    """A host that is a Python program; the prompt is its argument."""
    return Host(
        name="fake",
        title="Fake Host",
        installed_mb=0,
        program=lambda _: program,
        files=lambda setup: {".fake/settings": setup.model_url},
        environment=lambda _: {"FAKE_KEY": "k"},
        turn_arguments=lambda prompt, _resume: [prompt],
        read_answer=lambda output: Answer(output.strip()),
    )


def ends_soon(pid: int) -> bool:
    """Whether a killed process ends; it may stay as a zombie where no process waits for it."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def agent_of(tmp_path: Path, program: str, url: str = "http://127.0.0.1:9/mcp") -> Agent:
    command = (sys.executable, "-c", program)
    with serve(Script({})) as model:
        return Agent(fake_host(*command), command, tmp_path / "a", model, HttpMcp(url, "t0k"))


def test_a_turn_is_killed_at_its_deadline_with_all_its_processes(tmp_path: Path) -> None:
    turn = agent_of(tmp_path, DETACHED_CHILD).try_run("600", timeout_s=5)

    assert turn.exit_code == -9
    assert "killed after 5 s" in turn.errors
    assert ends_soon(int(turn.answer.text))


def test_processes_that_outlive_a_turn_are_killed(tmp_path: Path) -> None:
    turn = agent_of(tmp_path, DETACHED_CHILD).run("0")

    assert turn.exit_code == 0
    assert ends_soon(int(turn.answer.text))


def test_a_host_gets_its_settings_and_none_of_our_variables(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, PRINT_ENVIRONMENT)
    turn = agent.run("ignored")

    own = {"HOME", "TMPDIR", "PATH", "TERM", "FAKE_KEY", "ACCORD_TOKEN"}
    proxies = {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}
    assert {name for name in agent.environment() if name.isupper()} == own | proxies
    assert '"ACCORD_TOKEN": "t0k"' in turn.output
    assert (agent.setup.home / ".fake/settings").read_text() == agent.model.url
    assert (agent.setup.project / ".git").is_dir()


def test_a_host_that_leaves_loopback_fails_its_turn(tmp_path: Path) -> None:
    with serve(Script({})) as model:
        command = (sys.executable, "-c", LEAVE_LOOPBACK)
        agent = Agent(fake_host(*command), command, tmp_path / "a", model)
        assert agent.try_run("elsewhere.example").outside == ("elsewhere.example:443",)
        with pytest.raises(AssertionError, match=r"elsewhere\.example:443"):
            agent.run("elsewhere.example")
