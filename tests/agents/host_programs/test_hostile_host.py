"""A host program that lies, crashes, babbles or never answers: said in the session, and ended."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from accord.agents.conversation import Conversation
from accord.agents.host_programs import host_behavior, line_program
from accord.agents.host_programs.claude_stream import ClaudeDriver
from accord.agents.host_programs.host_behavior import HostBehavior
from accord.agents.loop import Agent
from accord.agents.tools.call_report import CallReporter
from accord.client import Client
from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolOutput, ToolPropose, ToolResult
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.conversation.responses import ResponseEnd
from tests.agents.test_interrupts import response_text
from tests.agents.test_loop import open_session
from tests.cli.agent.test_agent import programs_in
from tests.helpers.servers.server_process import ServerProcess

PROGRAM = """#!{python}
import json, sys, time
def send(**message): print(json.dumps(message), flush=True)
def read(): return json.loads(sys.stdin.readline())
def begin():
    id = read()["request_id"]
    send(type="control_response",
         response=dict(subtype="success", request_id=id, response=dict()))
def say(text):
    delta = dict(type="content_block_delta", delta=dict(text=text))
    send(type="stream_event", event=delta, parent_tool_use_id=None)
def ask(number, **request):
    send(type="control_request", request_id=number, request=dict(subtype="can_use_tool", **request))
def result(id, text):
    block = dict(type="tool_result", tool_use_id=id, content=text)
    send(type="user", message=dict(content=[block]))
{body}
"""


@asynccontextmanager
async def host_agent(
    server: ServerProcess, session: str, tmp_path: Path, body: str
) -> AsyncIterator[None]:
    """Claude is driven from a program with this body."""
    program = tmp_path / "claude"
    program.write_text(PROGRAM.format(python=sys.executable, body=body))
    program.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()

    async def start(workdir: Path, fork: str | None) -> ClaudeDriver:
        return await ClaudeDriver.start(workdir, session, fork, "", str(program))

    async def find(_: str | None) -> Path:
        return work

    async def read_context(key: str, fork: str | None) -> str:
        raise AssertionError((key, fork))

    async with Client(
        server.url, token=server.issue_token("claude", "agent", ["driver"])
    ) as client:
        seat = await client.join(session)
        conversation = Conversation(seat.me)
        behavior = HostBehavior(start, conversation, CallReporter(seat.me), read_context, find)
        agent = Agent(seat, behavior, work, on_message=conversation.receive)
        running = asyncio.create_task(agent.run())
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await behavior.close()
    assert programs_in(work) == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit('no\\x1b[31m licence')", "no[31m licence"),
        ("begin(); read(); say('Hm'); sys.exit(3)", "exit code 3"),
        ("begin(); read(); print('x' * 300000); time.sleep(600)", "wrote a line"),
        ("time.sleep(600)", "did not get ready"),
        ("read(); send(type='control_response', response=1)", "not asked"),
    ],
    ids=["no start", "crash", "endless line", "silence", "nonsense"],
)
async def test_failure_is_told_and_nothing_is_left_running(
    body: str,
    words: str,
    server: ServerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line_program, "MAX_LINE_BYTES", 100_000)
    monkeypatch.setattr(
        host_behavior, "START_TIMEOUT_S", 2.0 if words == "did not get ready" else 60
    )
    async with (
        open_session(server) as room,
        host_agent(server, room.alice.id, tmp_path, body),
    ):
        await room.alice.prompt("Go", "claude")
        report: ErrorReport = await room.wait_for(ErrorReport)
        end: ResponseEnd = await room.wait_for(ResponseEnd)

    assert report.code == "AGENT_ERROR"
    assert words in report.message
    assert "\x1b" not in report.message
    assert end.finish_reason == "error"


async def test_a_lying_host_gets_no_run_on_record_that_people_did_not_allow(
    server: ServerProcess, tmp_path: Path
) -> None:
    body = """
begin(); read()
print("no JSON"); print("[1]"); send(type=1); send(type="control_request"); send()
result("never-asked", "I ran something")
ask(1, tool_name=7, input={}); assert read()["response"]["response"]["behavior"] == "deny"
ask(2, tool_name="Bash", input={"command": "accord approve x"}, tool_use_id="b")
assert read()["response"]["response"]["behavior"] == "deny"
ask(3, tool_name="Bash", input={"command": "touch a"}, tool_use_id="c")
result("c", "I did not wait")
answer = read()["response"]["response"]
assert answer == {"behavior": "allow", "updatedInput": {"command": "touch a"}}, answer
send(type="control_request", request_id=4, request=dict(subtype="become_admin"))
assert read()["response"]["subtype"] == "error"
say("\\x1b]0;title\\x07 done")
send(type="result", total_cost_usd=-5, usage=dict(input_tokens="many", output_tokens=-1))
read()
"""
    async with (
        open_session(server) as room,
        host_agent(server, room.alice.id, tmp_path, body),
    ):
        await room.alice.prompt("Go", "claude")
        await room.wait_for(GateRequest)
        await room.alice.approve(room.messages_of(ToolPropose)[0].id)
        await room.wait_for(ResponseEnd)
        result: ToolResult = await room.wait_for(ToolResult)

    assert room.count(ErrorReport) == 0
    assert room.count(ToolPropose) == 1
    assert room.count(ToolOutput) == 0
    assert (result.success, result.error) == (False, "its host ended")
    assert response_text(room).endswith("done")
    end = room.messages_of(ResponseEnd)[-1].body
    assert isinstance(end, ResponseEnd)
    assert end.usage is not None
    assert (end.usage.input_tokens, end.usage.output_tokens, end.usage.cost_usd) == (0, 0, 0)
