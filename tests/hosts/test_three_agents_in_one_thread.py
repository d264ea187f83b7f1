"""Claude Code, Codex and Gemini CLI in one thread of a real server, over both MCP transports."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.helpers.hosts.codex import MODEL_THAT_WRITES_CODE
from tests.helpers.hosts.host import HttpMcp, McpServer, StdioMcp
from tests.helpers.hosts.scripted_model.script import Call, Script, Step, ToolResult
from tests.helpers.hosts.scripted_model.server import serve
from tests.helpers.hosts.table import chosen_hosts
from tests.helpers.hosts.turns import Agent, Turn
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.threads.method_client import MethodClient
from tests.hosts.conftest import MakeAgent

pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(900),
    pytest.mark.skipif(len(chosen_hosts()) < 2, reason="fewer than two hosts are chosen"),
]

REPORT, READ = "Report what you have done.", "Read what the others have done."
TRANSPORTS: Mapping[str, Callable[[ServerProcess, str], McpServer]] = {
    "http": lambda server, token: HttpMcp(f"{server.url}/mcp", token),
    "stdio": lambda server, token: StdioMcp(
        [sys.executable, "-m", "accord", "mcp"],
        {"ACCORD_URL": server.url, "ACCORD_TOKEN": token},
    ),
}
# Codex is the one host that looks at this name: its model calls tools from JavaScript here.
MODELS = {"stdio": MODEL_THAT_WRITES_CODE}


@dataclass(frozen=True)
class Member:
    """A host in the thread; `client` is the same agent over HTTP, to compare."""

    name: str
    client: MethodClient
    agent: Agent


def body_of(name: str) -> str:
    """What an agent reports."""
    return f"The parser part of {name} is done; {name} has run its tests."


def script_of(name: str, thread: str, another: str) -> Script:
    """An agent that makes each kind of mistake once, and then does it right."""
    message = {
        "thread_id": thread,
        "schema_version": 1,
        "body": body_of(name),
        "idempotency_key": f"{name}-1",
    }

    def acknowledge(beyond: int) -> Callable[[Sequence[ToolResult]], dict[str, Any]]:
        return lambda seen: {
            "thread_id": thread,
            "last_read_seq": seen[0].json()["next_seq"] + beyond,
        }

    return Script(
        {
            REPORT: [
                Step(calls=[Call("post_message", {**message, "sender_agent_id": another})]),
                Step(calls=[Call("post_message", message)]),
                Step(calls=[Call("post_message", message)]),
                Step(say="Reported."),
            ],
            READ: [
                Step(calls=[Call("read_messages", {"thread_id": thread})]),
                Step(calls=[Call("ack_read", acknowledge(beyond=100))]),
                Step(calls=[Call("ack_read", acknowledge(beyond=0))]),
                Step(calls=[Call("get_thread", {"thread_id": thread})]),
                Step(say="Read."),
            ],
        }
    )


@pytest.fixture
def olga(server: ServerProcess) -> Iterator[MethodClient]:
    """An operator."""
    with MethodClient.of(server, "olga", kind="human", roles=["admin"]) as client:
        yield client


def run_all(members: Sequence[Member], prompt: str, sessions: Mapping[str, str]) -> dict[str, Turn]:
    """One turn of every host, all at the same time."""
    with ThreadPoolExecutor(len(members)) as pool:
        started = {
            each.name: pool.submit(each.agent.run, prompt, resume=sessions.get(each.name, ""))
            for each in members
        }
        return {name: turn.result() for name, turn in started.items()}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_agents_of_three_vendors_hear_each_other(
    transport: str, server: ServerProcess, olga: MethodClient, make_agent: MakeAgent
) -> None:
    names = chosen_hosts()
    thread = olga.thread(*names)
    with ExitStack() as stack:
        members = []
        for name, another in zip(names, (*names[1:], names[0]), strict=True):
            client = stack.enter_context(MethodClient.of(server, name))
            model = stack.enter_context(serve(script_of(name, thread, another)))
            mcp = TRANSPORTS[transport](server, client.token)
            agent = replace(make_agent(name, model, mcp), model_name=MODELS.get(transport, ""))
            members.append(Member(name, client, agent))

        reported = run_all(members, REPORT, {})
        server.restart()
        sessions = {name: turn.answer.session_id for name, turn in reported.items()}
        read = run_all(members, READ, sessions)

        for name, turn in reported.items():
            check_report(turn, name)
        page = olga.ok("read_messages", thread_id=thread)
        check_record(page, names, {each.name: each.client.claims for each in members})
        for name, turn in read.items():
            assert turn.answer.session_id == sessions[name]
            check_reading(turn, page["messages"], name)


def check_report(turn: Turn, name: str) -> None:
    """To pose as another agent is refused; the same message twice is one message."""
    posed, first, again = turn.results_of("post_message")
    assert "CLAIM_MISMATCH" in posed.text, (name, posed)
    assert first.json()["message_id"] == again.json()["message_id"], name
    assert turn.answer.text == "Reported."


def check_record(
    page: dict[str, Any], names: Sequence[str], claims: Mapping[str, Mapping[str, Any]]
) -> None:
    """Every message is there once, in order, from its real sender, and read by the others."""
    messages = page["messages"]
    assert [each["seq"] for each in messages] == list(range(1, len(names) + 1))
    assert {each["sender_agent_id"]: each["body"] for each in messages} == {
        name: body_of(name) for name in names
    }
    for each in messages:
        sender = each["sender_agent_id"]
        assert each["sender_verified"] is True
        assert each["sender_session_id"] == claims[sender]["session_id"]
        others = {name: "acked" for name in names if name != sender}
        assert each["delivery"] == others, each


def check_reading(turn: Turn, messages: Sequence[dict[str, Any]], name: str) -> None:
    """The model saw what is on the record, marked as quoted; a cursor ends with the thread."""
    shown = turn.result_of("read_messages").json()
    seen = [(each["seq"], each["sender_agent_id"], each["body"]) for each in shown["messages"]]
    assert seen == [(each["seq"], each["sender_agent_id"], each["body"]) for each in messages]
    assert all(each["quoted"] and each["sender_verified"] for each in shown["messages"]), name
    assert "quoted data" in shown["notice"]
    refused, accepted = turn.results_of("ack_read")
    assert "VALIDATION_ERROR" in refused.text, (name, refused)
    assert accepted.json()["ok"] is True
    assert turn.result_of("get_thread").json()["unread"] == 0
    assert turn.answer.text == "Read."
