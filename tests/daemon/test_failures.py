"""What happens when the daemon, the server or a record is gone, old or another one's."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

from accord.core.kernel.role_permissions import Role
from accord.core.room.membership.role_assignment import ParticipantRoleChange
from accord.hosts.connections import delete_connection, save_connection
from accord.hosts.gate_hook import SOCKET_FILE
from tests.daemon.conftest import MakeAgent
from tests.helpers.hosts.gated_agent import (
    ACCORD,
    PERSON,
    GatedAgent,
    HookAnswer,
    People,
    wait_until,
)
from tests.helpers.servers.server_process import ServerProcess

RISKY = "git push origin main"


def test_killed_daemon_is_replaced_and_a_grant_survives_it(
    lonely_agent: GatedAgent, people: People
) -> None:
    agent = lonely_agent
    assert agent.ask(RISKY).decision == "deny"
    agent.kill_daemon()
    people.approve()

    assert agent.ask(RISKY).decision == "allow"
    assert agent.ask(RISKY).decision == "deny"


def test_result_after_the_daemon_was_killed_finds_its_proposal(
    lonely_agent: GatedAgent, people: People
) -> None:
    agent = lonely_agent
    agent.ask(RISKY)
    people.approve()
    payload = agent.shell_payload(RISKY)
    assert agent.hook("pre-tool", payload).decision == "allow"
    agent.kill_daemon()

    agent.hook("post-tool", {**payload, "tool_response": {"stdout": "ok", "stderr": ""}})

    assert len(people.history("tool.result")) == 1


def test_first_hooks_that_race_start_one_daemon(lonely_agent: GatedAgent) -> None:
    agent = lonely_agent
    hooks = [agent.start_hook("pre-tool", agent.shell_payload("ls")) for _ in range(5)]
    answers = [HookAnswer(0, *each.communicate()) for each in hooks]

    assert answers == [HookAnswer(0, "", "")] * 5
    listening = [line for line in agent.daemon_log.splitlines() if "listening" in line]
    assert len(listening) == 1


def test_socket_and_log_are_private(lonely_agent: GatedAgent) -> None:
    lonely_agent.ask("ls")

    for name in (SOCKET_FILE, "daemon.log", "daemon.lock"):
        assert stat.S_IMODE((lonely_agent.config / name).stat().st_mode) == 0o600


def test_daemon_keeps_no_secret_in_its_log(lonely_agent: GatedAgent) -> None:
    lonely_agent.ask("echo a-secret-word")

    assert lonely_agent.connection.key not in lonely_agent.daemon_log
    assert "a-secret-word" not in lonely_agent.daemon_log


def test_older_daemon_is_replaced_without_a_word(lonely_agent: GatedAgent) -> None:
    agent = lonely_agent
    agent.config.mkdir(parents=True, exist_ok=True)
    old = start_daemon_of_version(agent, "0.0.9")
    try:
        assert agent.ask("ls") == HookAnswer(0, "", "")
        assert old.wait(timeout=30) == 0
        assert agent.daemon_pid not in (None, old.pid)
    finally:
        old.kill()


def test_newer_daemon_serves_an_older_hook(lonely_agent: GatedAgent) -> None:
    agent = lonely_agent
    new = start_daemon_of_version(agent, "99.0.0")
    try:
        assert agent.ask("ls") == HookAnswer(0, "", "")
        assert agent.daemon_pid == new.pid
    finally:
        new.terminate()
        assert new.wait(timeout=30) == 0


def start_daemon_of_version(agent: GatedAgent, version: str) -> "subprocess.Popen[bytes]":
    program = (
        f"import accord; accord.__version__ = {version!r}\n"
        "from accord.cli.main import main\n"
        "raise SystemExit(main(['daemon', 'run']))"
    )
    process = subprocess.Popen([sys.executable, "-c", program], env=agent.env)
    wait_until((agent.config / SOCKET_FILE).exists)
    return process


def test_server_away_denies_all_but_reads_and_serves_again(
    lonely_agent: GatedAgent, people: People, shared_server: ServerProcess
) -> None:
    agent = lonely_agent
    agent.ask(RISKY)
    people.approve()
    shared_server.kill()
    try:
        assert agent.ask("ls").decision == ""
        away = agent.ask(RISKY)
        assert away.decision == "deny"
        assert "cannot be asked" in away.reason
        agent.kill_daemon()
        assert agent.ask("ls").decision == "deny", "no policy was verified by this daemon"
    finally:
        shared_server.start()
    assert agent.ask("ls").decision == ""
    assert agent.ask(RISKY).decision == "allow"


def test_frozen_server_does_not_hold_a_hook(
    lonely_agent: GatedAgent, shared_server: ServerProcess
) -> None:
    shared_server.suspend()
    try:
        assert lonely_agent.ask("ls").decision == "deny"
    finally:
        shared_server.resume()


def test_disconnected_host_is_refused(agent: GatedAgent) -> None:
    agent.ask("ls")
    delete_connection(agent.env, agent.connection.id)

    answer = agent.ask("ls")

    assert answer.decision == "deny"
    assert "no longer connected" in answer.reason


def test_record_outside_the_configuration_is_refused(agent: GatedAgent, tmp_path: Path) -> None:
    """An agent cannot point the daemon at a record of its own making."""
    own = {"HOME": str(tmp_path), "PATH": ""}
    forged = save_connection(own, agent.connection)
    (forged.parent.parent / SOCKET_FILE).symlink_to(agent.config / SOCKET_FILE)
    agent.ask("ls")
    agent.record = forged

    answer = agent.ask("ls")

    assert answer.decision == "deny"
    assert "is not a connection of this user" in answer.reason


def test_record_of_another_host_is_refused(make_agent: MakeAgent) -> None:
    claude, codex = make_agent("claude-code"), make_agent("codex")
    claude.record = codex.record

    answer = claude.ask("ls")

    assert answer.decision == "deny"
    assert "accord connect" in answer.reason


def test_environment_and_settings_file_change_nothing(agent: GatedAgent, people: People) -> None:
    (agent.root / ".accord.toml").write_text('url = "http://127.0.0.1:1"\nsession = "other"\n')
    evil = {"ACCORD_URL": "http://127.0.0.1:1", "ACCORD_SESSION": "other", "ACCORD_TOKEN": "x"}

    agent.hook("pre-tool", agent.shell_payload(RISKY), **evil, XDG_CONFIG_HOME=str(agent.root))

    (gate,) = people.state.gates
    assert gate.initiator == agent.connection.agent


def test_revoked_agent_is_refused(agent: GatedAgent, people: People) -> None:
    agent.ask("ls")
    device = agent.connection.device
    people.server.admin_request("DELETE", f"/admin/devices/{device}")

    wait_until(lambda: agent.ask("ls").decision == "deny")
    assert "does not let this agent in" in agent.ask(RISKY).reason
    assert people.state.gates == ()


def test_agent_that_was_removed_from_its_session_is_refused_reads_too(
    agent: GatedAgent, people: People
) -> None:
    assert agent.ask("ls") == HookAnswer(0, "", "")
    id = agent.connection.agent
    people.send(ParticipantRoleChange(id, (Role.DRIVER,), (), PERSON, "Enough"))

    wait_until(lambda: "ann removed you" in agent.ask("ls").reason)

    assert agent.ask("ls").decision == "deny"


def test_ended_session_is_refused_with_what_to_do(agent: GatedAgent, people: People) -> None:
    from accord.core.room.session_lifecycle import SessionEnd

    agent.ask("ls")
    people.send(SessionEnd(reason="done", final_state="completed"))

    wait_until(lambda: "has ended" in agent.ask("ls").reason)
    assert "accord connect" in agent.ask("ls").reason


def test_status_and_stop(lonely_agent: GatedAgent) -> None:
    agent = lonely_agent
    before = run(agent, "daemon", "status")
    agent.ask("ls")
    during = run(agent, "daemon", "status")
    pid = agent.daemon_pid
    stopped = run(agent, "daemon", "stop")

    assert before == "The daemon is not running. The next gate hook starts it.\n"
    assert f"{agent.connection.agent} (claude-code)" in during
    assert stopped == "The daemon has stopped.\n"
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    assert run(agent, "daemon", "stop") == "The daemon was not running.\n"


def run(agent: GatedAgent, *words: str) -> str:
    done = subprocess.run(
        [*ACCORD, *words], env=agent.env, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_request_that_is_no_request_gets_an_error(lonely_agent: GatedAgent) -> None:
    import socket

    lonely_agent.ask("ls")
    before = Path.cwd()
    os.chdir(lonely_agent.config)
    try:
        for data in (b"{}\n", b"nonsense\n", b'{"record": 1}\n'):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.connect(SOCKET_FILE)
                connection.sendall(data)
                assert "error" in json.loads(connection.makefile().readline())
    finally:
        os.chdir(before)
    assert lonely_agent.ask("ls").decision == ""


def test_daemon_survives_the_host_that_started_it(lonely_agent: GatedAgent) -> None:
    """A host that ends kills its process group; the daemon is in none of the host's."""
    agent = lonely_agent
    process = subprocess.Popen(
        ["/bin/sh", "-c", agent.command("pre-tool")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=agent.env,
        start_new_session=True,
    )
    process.communicate(json.dumps(agent.shell_payload("ls")).encode())
    pid = agent.daemon_pid
    assert pid is not None

    assert os.getpgid(pid) != process.pid
    os.kill(pid, signal.SIG_DFL)


def test_command_that_the_parser_fails_on_is_refused_and_the_daemon_goes_on(
    agent: GatedAgent, people: People
) -> None:
    assert not agent.ask("ls").decision
    pid = agent.daemon_pid

    refused = agent.ask("@(a|b) " * 6700)

    assert refused.decision == "deny"
    assert "cannot be analysed" in refused.reason
    assert not people.state.gates
    assert not agent.ask("ls").decision
    assert agent.daemon_pid == pid
