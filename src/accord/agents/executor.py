"""Runs granted tool calls, and nothing else."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from accord.agents import shell
from accord.agents.file_tools import FILE_TOOLS, FileToolError, run_file_tool
from accord.agents.tools.reading import READING_TOOLS, run_reading_tool
from accord.agents.tools.work_tree_record import RunRecord, WorkTreeRecorder
from accord.client import ClientError, ServerRefused, Session
from accord.core.room.approval.grants import ToolExecute
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult

INTERRUPTED_MESSAGE = "stopped by an interrupt"


class ExecutionResult(shell.CommandResult, frozen=True):
    """How a tool call ended and what it printed; `started` is False if the server refused it."""

    output: str = ""
    started: bool = True


async def run_granted(
    session: Session,
    granted: ToolExecute,
    body: ToolPropose,
    workdir: Path,
    limits: shell.CommandLimits,
    extra_env: Mapping[str, str],
    recorder: WorkTreeRecorder | None = None,
) -> ExecutionResult:
    """Run a granted call: the only place where anything is run.

    The server hears of the start first, which uses up the grant. Cancelling kills the command and
    reports that to the session. In a work tree of its own, what it changes is recorded.
    """
    is_recorded = recorder is not None and body.tool_name not in READING_TOOLS
    if recorder is None or not is_recorded:
        return await _run(session, granted, body, workdir, limits, extra_env, None)
    async with recorder.run() as record:
        return await _run(session, granted, body, workdir, limits, extra_env, record)


async def _run(
    session: Session,
    granted: ToolExecute,
    body: ToolPropose,
    workdir: Path,
    limits: shell.CommandLimits,
    extra_env: Mapping[str, str],
    record: RunRecord | None,
) -> ExecutionResult:
    try:
        await session.execute(granted)
    except ServerRefused as refusal:
        return ExecutionResult(None, 0, refusal.message, started=False)
    output: list[str] = []
    started_at = time.monotonic()

    async def forward_output(stream: shell.StreamName, text: str) -> None:
        output.append(text)
        await session.output(granted, text, stream)

    try:
        done = await run_tool(body, workdir, forward_output, limits, extra_env)
    except BaseException:
        with contextlib.suppress(ClientError):
            duration_ms = int((time.monotonic() - started_at) * 1000)
            result = build_tool_result(
                granted, shell.CommandResult(None, duration_ms, INTERRUPTED_MESSAGE)
            )
            _ = session.say(result, granted.tool_proposal)
        raise
    result = replace(
        build_tool_result(granted, done), metadata=await record.metadata() if record else None
    )
    await session.send(result, granted.tool_proposal)
    return ExecutionResult(
        done.exit_code, done.duration_ms, done.error, done.truncated, "".join(output).strip()
    )


def build_tool_result(granted: ToolExecute, done: shell.CommandResult) -> ToolResult:
    """The `tool.result` message for the end of a command."""
    cut = " (output was truncated)" if done.truncated else ""
    return ToolResult(
        tool_proposal=granted.tool_proposal,
        success=done.success,
        duration_ms=done.duration_ms,
        result={"exit_code": done.exit_code},
        error=f"{done.error}{cut}" if done.error else None,
        grant=granted.grant.id if granted.grant else None,
    )


async def run_tool(
    body: ToolPropose,
    workdir: Path,
    forward_output: shell.OutputListener,
    limits: shell.CommandLimits,
    extra_env: Mapping[str, str],
) -> shell.CommandResult:
    """Run the tool; a call that cannot be run gives a result with an error."""
    if body.tool_name in FILE_TOOLS:
        return await change_file(body, workdir, forward_output)
    if body.tool_name in READING_TOOLS:
        return await run_reading_tool(
            body.tool_name, body.arguments, workdir, forward_output, limits
        )
    if body.tool_name != "shell":
        known = ", ".join((*FILE_TOOLS, *READING_TOOLS, "shell"))
        return shell.CommandResult(
            None, 0, f"this agent has no tool named {body.tool_name!r}, only {known}"
        )
    try:
        call = shell.parse_call(body.arguments)
    except shell.InvalidCommandError as refusal:
        return shell.CommandResult(None, 0, str(refusal))
    return await shell.run_command(call, workdir, forward_output, limits, extra_env)


async def change_file(
    body: ToolPropose, workdir: Path, forward_output: shell.OutputListener
) -> shell.CommandResult:
    """Write or edit a file; the output says which."""
    started_at = time.monotonic()
    try:
        paths = await asyncio.to_thread(run_file_tool, body.tool_name, body.arguments, workdir)
    except FileToolError as error:
        return shell.CommandResult(None, 0, str(error))
    await forward_output("stdout", "".join(f"wrote {path}\n" for path in paths))
    return shell.CommandResult(0, int((time.monotonic() - started_at) * 1000))
