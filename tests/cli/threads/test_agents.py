"""`accord agents` and `accord wakes`: who is here, pausing one, and what was woken."""

from collections.abc import Callable

from tests.helpers.clients.cli import UserShell
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.threads.method_client import MethodClient


def test_agents_are_listed_paused_and_resumed(
    server: ServerProcess, alice: UserShell, shell: Callable[..., UserShell]
) -> None:
    assert alice.output_of("agents").startswith("No agent has been seen yet.")
    with MethodClient.of(server, "codex") as codex:
        codex.ok("heartbeat_session", runtime="codex_cli")

    head, line = alice.output_of("agents").splitlines()
    assert head.split() == ["AGENT", "PROGRAM", "STATE", "SEEN", "MACHINE", "AWAITED", "IN"]
    assert line.split()[:3] == ["codex", "codex_cli", "active"]

    assert alice.output_of("agents", "pause", "codex") == "codex is paused: nothing wakes it"
    assert "paused by alice" in alice.output_of("agents")
    assert alice("agents", "list", "--json").json["agents"][0]["paused_by"] == "alice"
    assert alice.output_of("agents", "resume", "codex") == "codex can be woken again"
    assert "paused" not in alice.output_of("agents")

    refused = shell("bot", "driver", kind="agent")("agents", "pause", "codex")
    assert refused.code != 0
    assert "paused" not in alice.output_of("agents")


def test_wakes_are_listed_with_how_and_why(
    server: ServerProcess, alice: UserShell, shell: Callable[..., UserShell]
) -> None:
    with MethodClient.of(server, "waked") as agent:
        thread = alice("thread", "create", "T", "--with", "waked", "--json").json["thread_id"]
        assert alice.output_of("wakes", "--thread", thread).startswith("No agent was woken yet.")
        alice("thread", "post", thread, "look")
        agent.ok("heartbeat_session", runtime="codex_cli", status="active")
        alice("thread", "wake", thread, "waked")
    head, line = alice.output_of("wakes", "--thread", thread).splitlines()
    assert head.split() == ["ASKED", "AGENT", "THREAD", "BY", "HOW", "RESULT", "WHY"]
    assert line.split()[1:5] == ["waked", thread, "alice", "skipped"]
    assert line.endswith("It is active and will see the messages without being woken")
    (row,) = alice("wakes", "--agent", "waked", "--json").json["wakes"]
    assert (row["action"], row["why"]) == ("none", "already_active")
