"""Heartbeats that `accord mcp` sends for the host that started it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.cli.mcp.heartbeats import (
    CLIENT_INFO_KEY,
    INTERVAL_S,
    Heartbeats,
    is_agents,
    runtime_name,
)
from accord.waking.machine import machine_name
from tests.cli.test_mcp import INITIALIZE, INITIALIZED, Host, call, environment, listing
from tests.helpers.clients.mcp_requests import modern_meta
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.threads.method_client import MethodClient
from tests.helpers.threads.wake_scene import eventually
from tests.spec import proves

REF = "0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
CODEX_META = {"x-codex-turn-metadata": {"thread_id": REF, "session_id": REF}}


@pytest.fixture
def operator(server: ServerProcess) -> Iterator[MethodClient]:
    with MethodClient.of(server, "olga", kind="human", roles=["admin"]) as client:
        yield client


def host_of(server: ServerProcess, tmp_path: Path, token: str) -> Host:
    return Host(environment(tmp_path, ACCORD_URL=server.url, ACCORD_TOKEN=token))


def runtimes(operator: MethodClient, agent: str) -> list[dict[str, Any]]:
    found = operator.ok("list_agents", target_agent_id=agent)["agents"]
    return [row for each in found for row in each["runtimes"]]


@proves("MSG-3.7-1", "MSG-2.4-1", "OPEN-130")
def test_the_registry_shows_a_host_alive_until_it_ends(
    server: ServerProcess, operator: MethodClient, tmp_path: Path
) -> None:
    host = host_of(server, tmp_path, server.issue_token("gem", "agent"))
    host.ask(INITIALIZE)
    host.ask(INITIALIZED)
    [row] = eventually(lambda: runtimes(operator, "gem"))
    assert (row["runtime"], row["status"]) == ("gemini_cli", "idle")
    assert (row["management_mode"], row["resumable"]) == ("unmanaged", False)
    # Nothing but answers is written to the host: a heartbeat is no message to it.
    assert host.ask(listing(7))["id"] == 7
    assert host.close() == 0
    assert runtimes(operator, "gem")[0]["status"] == "offline"


def test_a_codex_that_called_a_tool_can_be_resumed_where_it_started(
    server: ServerProcess, operator: MethodClient, tmp_path: Path
) -> None:
    host = host_of(server, tmp_path, server.issue_token("codex", "agent"))
    name = {CLIENT_INFO_KEY: {"name": "codex-mcp-client", "version": "0.169.0"}}
    host.ask(call("whats_waiting", {}, _meta=modern_meta() | name | CODEX_META))
    [row] = eventually(lambda: runtimes(operator, "codex"))
    assert (row["runtime"], row["status"], row["resumable"]) == ("codex_cli", "active", True)
    assert row["machine"] == machine_name()
    assert host.close() == 0


def test_a_host_that_ends_before_its_first_heartbeat_is_known_by_what_it_did(
    server: ServerProcess, operator: MethodClient, tmp_path: Path
) -> None:
    host = host_of(server, tmp_path, server.issue_token("quick", "agent"))
    host.ask(INITIALIZE)
    host.ask(call("whats_waiting", {}, _meta=CODEX_META))
    assert host.close() == 0
    assert [row["status"] for row in runtimes(operator, "quick")] == ["offline"]


def test_nothing_is_reported_of_a_person(
    server: ServerProcess, operator: MethodClient, tmp_path: Path
) -> None:
    host = host_of(server, tmp_path, server.issue_token("ann", "human"))
    host.ask(INITIALIZE)
    host.ask(call("whats_waiting", {}))
    assert host.close() == 0
    assert runtimes(operator, "ann") == []


class Waits:
    """Stands for the event that ends the heartbeats; lets so many pass without any time."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.waited: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        return len(self.waited) > self.rounds

    def set(self) -> None:
        self.rounds = 0


@proves("MSG-3.7-1")
def test_an_idle_host_sends_one_heartbeat_in_thirty_seconds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    waits, sent = Waits(5), list[dict[str, Any]]()
    monkeypatch.setattr("threading.Event", lambda: waits)
    beats = Heartbeats({"HOME": str(tmp_path)}, sent.append)
    beats._runtime = "gemini_cli"
    beats._run()
    assert len(sent) == 5
    assert waits.waited[1:] == [INTERVAL_S] * 5 == [30.0] * 5
    assert {each["status"] for each in sent} == {"idle"}


def test_the_conversation_of_claude_code_is_read_from_its_own_file(tmp_path: Path) -> None:
    sessions = tmp_path / ".claude" / "sessions"
    sessions.mkdir(parents=True)
    file = sessions / f"{os.getppid()}.json"
    beats = Heartbeats({"HOME": str(tmp_path)}, lambda _: None)
    beats._runtime = "claude_code"
    assert beats.report()["resumable"] is False
    for content, expected in [
        (json.dumps({"sessionId": REF}), REF),
        (json.dumps({"sessionId": "latest"}), None),
        (json.dumps([REF]), None),
        ("{", None),
    ]:
        file.write_text(content)
        assert beats.report().get("runtime_ref") == expected
    beats._runtime = "gemini_cli"
    file.write_text(json.dumps({"sessionId": REF}))
    assert "runtime_ref" not in beats.report()


@pytest.mark.parametrize(
    ("name", "runtime"),
    [
        ("claude-code", "claude_code"),
        ("codex-mcp-client", "codex_cli"),
        ("My Client 2.0!", "my_client_2_0"),
        ("42", "mcp_client"),
        ("日本", "mcp_client"),
        (None, "mcp_client"),
    ],
)
def test_a_runtime_is_named_after_the_program(name: object, runtime: str) -> None:
    assert runtime_name(name) == runtime


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "a.!.c", "a.W10.c", "a.e30.c"])
def test_what_is_no_agents_token_reports_nothing(token: str) -> None:
    assert not is_agents(token)
