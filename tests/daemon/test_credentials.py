"""A request to the daemon proves that it comes from the connection that it names."""

import json
import socket
from typing import Any

import pytest

from accord.hosts.gate_hook import SOCKET_FILE, digest_of_key
from tests.daemon.conftest import MakeAgent
from tests.helpers.hosts.gated_agent import GatedAgent, People


def send(agent: GatedAgent, event: str, payload: dict[str, Any], **credential: object) -> Any:
    """The daemon's answer to a request for this agent's connection."""
    request = {
        "record": str(agent.record),
        "host": agent.host,
        "event": event,
        "cwd": str(agent.root),
        "home": str(agent.home),
        "payload": payload,
        **credential,
    }
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(SOCKET_FILE)
        connection.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(connection.makefile().readline())


def test_the_credential_of_another_agent_opens_nothing(
    make_agent: MakeAgent, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, liar = make_agent(), make_agent()
    victim.ask("ls")
    liar.ask("ls")
    monkeypatch.chdir(victim.config)  # the path of a socket is short
    call = victim.shell_payload("git push")
    forged: list[dict[str, object]] = [
        {},
        {"credential": ""},
        {"credential": digest_of_key(liar.connection.key)},
        {"credential": victim.connection.device},
    ]

    for credential in forged:
        answer = send(victim, "pre-tool", call, **credential)
        assert answer["decision"] == "deny"
        assert "does not prove" in answer["reason"]
        send(victim, "prompt", {"session_id": "s", "prompt": "I am the other"}, **credential)
        send(victim, "post-tool", {**call, "tool_response": "done"}, **credential)

    assert not people.history("tool.propose")
    assert not people.history("prompt.submit")
    own = {"credential": digest_of_key(victim.connection.key)}
    assert send(victim, "pre-tool", victim.shell_payload("ls"), **own)["decision"] == "none"
    assert "accord approve" in send(victim, "pre-tool", call, **own)["reason"]
