"""An agent with a model answers, proposes every call, and runs exactly what was approved."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from accord.core.room.conversation.error_reports import ErrorReport
from accord.core.room.conversation.interrupts import InterruptAcknowledge
from accord.core.room.conversation.prompts import PromptConfig
from accord.core.room.conversation.responses import ResponseEnd
from accord.core.room.shared_context.context_items import ContextAdd
from tests.agents.test_interrupts import response_text
from tests.agents.test_loop import file_exists, open_session
from tests.helpers.clients.model_agent import (
    MODEL_KEY,
    PROVIDER_NAMES,
    provider_for,
    run_model_agent,
)
from tests.helpers.hosts.raw_answers import RawAnswer, serve_answers
from tests.helpers.hosts.scripted_model.script import Call, Script, Step
from tests.helpers.hosts.scripted_model.server import serve
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

TOUCH = Call("shell", {"argv": ["touch", "mark"]})
WRITE = Call("write_file", {"path": "a.txt", "content": "one\n"})


@pytest.mark.parametrize("provider", PROVIDER_NAMES)
@proves("PVP-12.2-5", "PVP-20.4-2", "PVP-20.4-3")
async def test_each_provider_streams_an_answer_and_runs_the_approved_call(
    provider: str, server: ServerProcess, tmp_path: Path
) -> None:
    script = Script({"Go": [Step("I make a mark.", [TOUCH]), Step(say="It is there.")]})
    with serve(script) as model:
        async with (
            open_session(server) as room,
            run_model_agent(server, room.alice.id, tmp_path, provider_for(provider, model.url)),
        ):
            prompt = await room.alice.prompt("Go", "claude")
            await room.wait_for(GateRequest)
            assert not file_exists(tmp_path / "mark")
            asked: ToolPropose = await room.wait_for(ToolPropose)
            await room.alice.approve(room.messages_of(ToolPropose)[0].id)
            result: ToolResult = await room.wait_for(ToolResult)
            await room.wait_for(ResponseEnd, 2)

    assert result.success
    assert file_exists(tmp_path / "mark")
    assert asked.arguments["argv"] == ["touch", "mark"]
    assert asked.arguments["command"] == "touch mark"
    assert response_text(room) == "I make a mark.It is there."
    ends: list[Any] = [each.body for each in room.messages_of(ResponseEnd)]
    assert [each.finish_reason for each in ends] == ["tool_use", "complete"]
    usage = ends[1].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (100, 10)
    assert usage.cost_usd == pytest.approx(0.0002)
    assert room.messages_of(ToolPropose)[0].ref == prompt
    assert [len(each.request.results) for each in model.exchanges] == [0, 1]
    assert all(MODEL_KEY not in each.body for each in model.exchanges)
    assert MODEL_KEY.encode() not in server.stored_bytes


async def test_a_rejected_call_does_not_run_and_the_model_reads_why(
    server: ServerProcess, tmp_path: Path
) -> None:
    script = Script({"Go": [Step(calls=[TOUCH]), Step(say="Then not.")]})
    with serve(script) as model:
        async with (
            open_session(server) as room,
            run_model_agent(server, room.alice.id, tmp_path, provider_for("anthropic", model.url)),
        ):
            await room.alice.prompt("Go", "claude")
            await room.wait_for(GateRequest)
            await room.alice.reject(room.messages_of(ToolPropose)[0].id, "too early")
            await room.wait_for(ResponseEnd, 2)

    assert not file_exists(tmp_path / "mark")
    assert room.count(ToolResult) == 0
    assert "too early" in model.exchanges[1].request.results[0].text


async def test_reads_need_no_approval_and_writes_do(server: ServerProcess, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.md").write_text("first\nsecond\n")
    reads = [
        Call("read_file", {"path": "notes.md", "offset": 2}),
        Call("search_files", {"pattern": "fir.t"}),
        Call("list_files", {}),
    ]
    script = Script({"Look": [Step(calls=reads), Step(calls=[WRITE]), Step(say="Done.")]})
    with serve(script) as model:
        async with (
            open_session(server) as room,
            run_model_agent(server, room.alice.id, work, provider_for("anthropic", model.url)),
        ):
            await room.alice.prompt("Look", "claude")
            await room.wait_for(GateRequest)
            await room.alice.approve(room.messages_of(ToolPropose)[3].id)
            await room.wait_for(ResponseEnd, 3)

    assert room.count(GateRequest) == 1
    assert (work / "a.txt").read_text() == "one\n"
    shown = [each.text for each in model.exchanges[1].request.results]
    assert shown == ["second", "./notes.md:1:first", "notes.md"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (Call("shell", {"argv": ["accord", "approve", "x"]}), "Agents may not do this"),
        (Call("shell", {"argv": "touch mark"}), "argv"),
        (Call("shell", {"argv": ["touch", "mark"], "cwd": "/"}), "argv"),
        (Call("edit_file", {"path": "../a", "old_string": "", "new_string": "x"}), "inside"),
        (Call("apply_patch", {"patch": "*** nothing"}), "apply_patch"),
        (Call("read_file", {"path": "gone.txt"}), "not a file"),
    ],
    ids=["votes", "a line", "more arguments", "outside", "no patch", "no file"],
)
async def test_what_cannot_run_is_told_to_the_model(
    call: Call, words: str, server: ServerProcess, tmp_path: Path
) -> None:
    script = Script({"Go": [Step(calls=[call]), Step(say="I see.")]})
    workdir = tmp_path / "work"
    workdir.mkdir()
    with serve(script) as model:
        async with (
            open_session(server) as room,
            run_model_agent(server, room.alice.id, workdir, provider_for("anthropic", model.url)),
        ):
            await room.alice.prompt("Go", "claude")
            approving = asyncio.create_task(approve_all(room))
            await room.wait_for(ResponseEnd, 2)
            approving.cancel()

    assert words in model.exchanges[1].request.results[0].text
    assert list(workdir.iterdir()) == []
    assert not file_exists(tmp_path / "a")


async def approve_all(room: object) -> None:
    """Alice approves each gate that opens."""
    for number in range(1, 100):
        await room.wait_for(GateRequest, number)  # type: ignore[attr-defined]
        await room.alice.approve(room.messages_of(GateRequest)[number - 1].id)  # type: ignore[attr-defined]


async def test_context_config_and_history_reach_the_model(
    server: ServerProcess, tmp_path: Path
) -> None:
    script = Script({"First": [Step(say="Blue.")], "Second": [Step(say="As I said.")]})
    config = PromptConfig(model="other", max_tokens=99, temperature=0.5, tools_allowed=("shell",))
    with serve(script) as model:
        async with open_session(server) as room:
            await room.alice.add_context("notes", "the sky")
            async with run_model_agent(
                server, room.alice.id, tmp_path, provider_for("openai-compatible", model.url)
            ):
                await room.alice.prompt("First", "claude")
                await room.wait_for(ResponseEnd)
            # A restarted agent knows the conversation from the session.
            async with run_model_agent(
                server, room.alice.id, tmp_path, provider_for("openai-compatible", model.url)
            ):
                await room.alice.prompt("Second", "claude", context_keys=["notes"], config=config)
                await room.wait_for(ResponseEnd, 2)

    second = model.exchanges[1]
    assert second.request.model == "other"
    assert {tool.name for tool in second.request.tools} == {"shell", "update_tasks"}
    for part in ("the sky", "alice: First", "Blue.", '"max_tokens":99', '"temperature":0.5'):
        assert part in second.body


async def test_a_fork_knows_what_was_said_before_it_and_nothing_of_other_forks(
    server: ServerProcess, tmp_path: Path
) -> None:
    script = Script({"ask": [Step(say="Said.")]})
    with serve(script) as model:
        async with (
            open_session(server) as room,
            run_model_agent(server, room.alice.id, tmp_path, provider_for("anthropic", model.url)),
        ):
            await room.alice.prompt("ask of the trunk", "claude")
            await room.wait_for(ResponseEnd)
            left = await room.alice.fork("left", ["claude"])
            right = await room.alice.fork("right", ["claude"])
            await room.alice.prompt("ask later in the trunk", "claude")
            await room.wait_for(ResponseEnd, 2)
            await room.alice.within(left).prompt("ask left", "claude")
            await room.wait_for(ResponseEnd, 3)
            await room.alice.within(right).prompt("ask right", "claude")
            await room.wait_for(ResponseEnd, 4)

    body = model.exchanges[3].body
    assert "ask right" in body
    assert "ask of the trunk" in body
    assert "ask left" not in body
    assert "ask later" not in body


async def test_stop_ends_the_model_request_at_once(server: ServerProcess, tmp_path: Path) -> None:
    release = asyncio.Event()

    class Endless:
        """A model that never ends its answer."""

        cancelled = False

        async def reply(self, request: object, listener: object) -> object:
            del request
            await listener.text("Thinking")  # type: ignore[attr-defined]
            release.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled = True
            raise AssertionError("unreachable")

    endless = Endless()
    async with (
        open_session(server) as room,
        run_model_agent(server, room.alice.id, tmp_path, endless),  # type: ignore[arg-type]
    ):
        await room.alice.prompt("Go", "claude")
        await asyncio.wait_for(release.wait(), 60)
        await room.alice.interrupt("stop", "Enough", "claude")
        end: ResponseEnd = await room.wait_for(ResponseEnd)
        answer: InterruptAcknowledge = await room.wait_for(InterruptAcknowledge)

    assert endless.cancelled
    assert end.finish_reason == "interrupted"
    assert answer.action_taken == "stopped"


async def test_amendment_reaches_the_model_with_the_next_request(
    server: ServerProcess, tmp_path: Path
) -> None:
    script = Script({"Go": [Step(calls=[TOUCH]), Step(say="Done.")], "in red": [Step(say="Red.")]})
    with serve(script) as model:
        async with (
            open_session(server) as room,
            run_model_agent(server, room.alice.id, tmp_path, provider_for("anthropic", model.url)),
        ):
            prompt = await room.alice.prompt("Go", "claude")
            await room.wait_for(GateRequest)
            await room.alice.amend(prompt, "Make it in red")
            await room.alice.approve(room.messages_of(ToolPropose)[0].id)
            await room.wait_for(ResponseEnd, 2)

    assert response_text(room) == "Red."
    assert "Make it in red" in model.exchanges[1].request.prompt


async def test_task_list_is_shown_in_the_session(server: ServerProcess, tmp_path: Path) -> None:
    tasks = [{"id": "1", "title": "Parse", "status": "in_progress"}]
    call = Call("update_tasks", {"goal": "A parser", "tasks": tasks})
    script = Script({"Plan": [Step(calls=[call]), Step(say="Planned.")]})
    with serve(script) as model:
        async with (
            open_session(server) as room,
            run_model_agent(server, room.alice.id, tmp_path, provider_for("anthropic", model.url)),
        ):
            await room.alice.prompt("Plan", "claude")
            await room.wait_for(ResponseEnd, 2)

        shown: Any = await room.wait_for(ContextAdd)
    assert shown.key == "session:tasks"
    assert shown.content["goal"] == "A parser"
    assert shown.content["tasks"][0]["title"] == "Parse"
    assert room.count(ToolPropose) == 0


async def test_refusing_provider_is_reported_without_the_key(
    server: ServerProcess, tmp_path: Path
) -> None:
    refusal = RawAnswer(401, f'{{"error": {{"message": "wrong key {MODEL_KEY}"}}}}'.encode())
    with serve_answers([refusal]) as raw:
        async with (
            open_session(server) as room,
            run_model_agent(server, room.alice.id, tmp_path, provider_for("anthropic", raw.url)),
        ):
            await room.alice.prompt("Go", "claude")
            report: ErrorReport = await room.wait_for(ErrorReport)
            end: ResponseEnd = await room.wait_for(ResponseEnd)

    assert raw.asked[0].headers["x-api-key"] == MODEL_KEY
    assert (report.code, end.finish_reason) == ("AGENT_ERROR", "error")
    assert report.message.endswith("answered 401: wrong key (key)")
    assert MODEL_KEY.encode() not in server.stored_bytes


async def test_idle_agent_asks_no_model(server: ServerProcess, tmp_path: Path) -> None:
    with serve(Script({"Go": [Step(say="Hello.")]})) as model:
        async with (
            open_session(server) as room,
            run_model_agent(server, room.alice.id, tmp_path, provider_for("anthropic", model.url)),
        ):
            await room.alice.add_context("notes", "news that concern no agent")
            await room.alice.fork("left", ["claude"])
            await room.alice.prompt("Go", "claude")
            await room.wait_for(ResponseEnd)
            await room.alice.add_context("more", "news after the answer")
            await room.alice.ping()

        assert len(model.exchanges) == 1
