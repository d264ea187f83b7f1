"""`accord connect --check` and `accord doctor` name every way in which a gate does not hold."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accord.hosts.connections import connection_path, hook_command, read_connection
from accord.hosts.hook_events import HOOK_EVENTS, PRE_TOOL
from tests.helpers.hosts.connecting_shell import ConnectingShell, StartShell
from tests.helpers.servers.server_process import run_server

Check = dict[str, str]


@pytest.fixture
def ann(shell_of: StartShell, request: pytest.FixtureRequest) -> Iterator[ConnectingShell]:
    """A person with a daemon of her own, which ends with the test."""
    shell = shell_of(f"ann-{abs(hash(request.node.name)) % 10**8}")
    yield shell
    shell("daemon", "stop", cwd=shell.home)


def connected(shell: ConnectingShell, host: str) -> str:
    """Connect the host; returns the connection's id."""
    found: str = shell.json("connect", host, "--yes")["connection"]
    return found


def checks(shell: ConnectingShell, host: str, code: int) -> dict[str, Check]:
    """The checks by what they are about; of several, the last that is not well."""
    listed = shell.json("connect", host, "--check", code=code)["checks"]
    by_state = sorted(listed, key=lambda each: ("ok", "warn", "fail").index(each["state"]))
    return {each["about"]: each for each in by_state}


def call_of_the_host(shell: ConnectingShell, connection: str, host: str) -> None:
    """The host runs its hook before a call, as its settings say."""
    record = connection_path(shell.environment, connection)
    event = next(each for each in HOOK_EVENTS[host] if each.event == PRE_TOOL)
    call = {"session_id": "s1", "cwd": str(shell.repo), "tool_name": "list_directory"}
    subprocess.run(
        ["/bin/sh", "-c", hook_command(record, host, event)],
        input=json.dumps({**call, "tool_input": {}}),
        text=True,
        cwd=shell.repo,
        env=shell.environment,
        check=True,
    )


@pytest.mark.parametrize("host", ["claude-code", "cursor", "gemini"])
def test_a_connection_that_holds_opens_no_gate_by_being_checked(
    host: str, ann: ConnectingShell
) -> None:
    connected(ann, host)

    found = checks(ann, host, code=0)

    assert {about for about, each in found.items() if each["state"] == "ok"} >= {
        "settings",
        "identity",
        "mcp",
        "gate",
    }
    assert ann.json("gates")["gates"] == []


def test_only_a_call_of_the_host_itself_shows_that_it_runs_the_hook(ann: ConnectingShell) -> None:
    connection = connected(ann, "gemini")
    before = checks(ann, "gemini", code=0)["calls"]
    again = checks(ann, "gemini", code=0)["calls"]

    call_of_the_host(ann, connection, "gemini")

    after = checks(ann, "gemini", code=0)["calls"]
    assert before["state"] == again["state"] == "warn"
    assert "has not asked the hook" in before["found"]
    assert after["state"] == "ok"
    assert "asked the hook on" in after["found"]
    ann.json("connect", "gemini", "--yes", "--session", ann.json("session", "create")["id"])
    assert checks(ann, "gemini", code=0)["calls"]["state"] == "warn", "connected anew"


def without_entries(shell: ConnectingShell, _connection: str) -> None:
    (shell.home / ".claude" / "settings.json").write_text("{}")


def with_hooks_disabled(shell: ConnectingShell, _connection: str) -> None:
    path = shell.home / ".claude" / "settings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "disableAllHooks": True}))


def with_broken_settings(shell: ConnectingShell, _connection: str) -> None:
    (shell.home / ".claude" / "settings.json").write_text("{ broken")


def removed_from_its_session(shell: ConnectingShell, connection: str) -> None:
    record = read_connection(connection_path(shell.environment, connection))
    assert shell("session", "remove", record.session, record.agent).code == 0


def without_a_daemon(shell: ConnectingShell, _connection: str) -> None:
    shell("daemon", "stop")
    (shell.home / ".config" / "accord" / "daemon.lock").unlink(missing_ok=True)
    (shell.home / ".config" / "accord" / "daemon.lock").mkdir()


Damage = Callable[[ConnectingShell, str], None]


@pytest.mark.parametrize(
    ("damage", "about", "said"),
    [
        (without_entries, "settings", "our entries are not in"),
        (with_hooks_disabled, "settings", "NOTHING IS GATED"),
        (with_broken_settings, "settings", "settings.json"),
        (removed_from_its_session, "identity", "any more"),
        (without_a_daemon, "gate", "the hook does not hold"),
    ],
)
def test_what_keeps_the_gate_from_holding_fails_the_check(
    damage: Damage, about: str, said: str, ann: ConnectingShell
) -> None:
    connection = connected(ann, "claude-code")
    damage(ann, connection)

    failed = checks(ann, "claude-code", code=5)[about]

    assert failed["state"] == "fail", failed
    assert said in failed["found"]
    assert failed["fix"]


def test_a_server_that_is_away_fails_identity_and_tools_and_the_gate_still_refuses(
    tmp_path: Path,
) -> None:
    with run_server(tmp_path / "server") as server:
        shell = ConnectingShell(server, tmp_path / "lea", "lea")
        connected(shell, "gemini")
    try:
        found = checks(shell, "gemini", code=5)
        assert [found[each]["state"] for each in ("identity", "mcp", "gate")] == [
            "fail",
            "fail",
            "ok",
        ]
    finally:
        shell("daemon", "stop")


def test_a_repository_that_is_gone_is_a_warning_of_the_doctor(ann: ConnectingShell) -> None:
    connected(ann, "gemini")
    shutil.rmtree(ann.repo)

    done = ann("doctor", "--json", cwd=ann.home)

    listed = json.loads(done.out)["checks"]
    gone = [each for each in listed if "repository is gone" in each["found"]]
    assert [each["state"] for each in gone] == ["warn"]


def test_opencode_is_said_not_to_be_gated(ann: ConnectingShell) -> None:
    connected(ann, "opencode")

    found = checks(ann, "opencode", code=0)

    assert (found["gate"]["state"], "NOT gated" in found["gate"]["found"]) == ("warn", True)
    assert found["mcp"]["state"] == "ok"
