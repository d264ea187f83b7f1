"""The hands of an agent: they run what was granted, and nothing else."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path

from accord.agents import shell
from accord.client import ClientError, ServerRefused, Session
from accord.core.room.grants import ToolExecute
from accord.core.room.tools import ToolPropose, ToolResult

STOPPED = "stopped by an interrupt"


class Done(shell.Done, frozen=True):
    """How it ended, with what it printed; `began` is False where the server said no."""

    printed: str = ""
    began: bool = True


async def run(
    session: Session,
    granted: ToolExecute,
    body: ToolPropose,
    workdir: Path,
    limits: shell.Limits,
    told: Mapping[str, str],
) -> Done:
    """The one place where anything is run; the server is told first, and counts the use.

    Whoever cancels it has killed the command, and the room is told so.
    """
    try:
        await session.execute(granted)
    except ServerRefused as no:
        return Done(None, 0, no.message, began=False)
    printed: list[str] = []
    began = time.monotonic()

    async def hear(stream: shell.Stream, text: str) -> None:
        printed.append(text)
        await session.output(granted, text, stream)

    try:
        done = await perform(body, workdir, hear, limits, told)
    except BaseException:
        with contextlib.suppress(ClientError):
            took = int((time.monotonic() - began) * 1000)
            ended = result(granted, shell.Done(None, took, STOPPED))
            _ = session.say(ended, granted.tool_proposal)
        raise
    await session.send(result(granted, done), granted.tool_proposal)
    return Done(done.code, done.duration_ms, done.problem, done.cut, "".join(printed).strip())


def result(granted: ToolExecute, done: shell.Done) -> ToolResult:
    """How it ended, as the room hears it."""
    cut = " (output was cut)" if done.cut else ""
    return ToolResult(
        tool_proposal=granted.tool_proposal,
        success=done.success,
        duration_ms=done.duration_ms,
        result={"exit_code": done.code},
        error=f"{done.problem}{cut}" if done.problem else None,
        grant=granted.grant.id if granted.grant else None,
    )


async def perform(
    body: ToolPropose,
    workdir: Path,
    hear: shell.Listener,
    limits: shell.Limits,
    told: Mapping[str, str],
) -> shell.Done:
    """Do it; what cannot be done has a reason, too."""
    if body.tool_name != "shell":
        return shell.Done(None, 0, f"there is no tool {body.tool_name} here")
    try:
        made = shell.call(body.arguments)
    except shell.NotACommandError as no:
        return shell.Done(None, 0, str(no))
    return await shell.run(made, workdir, hear, limits, told)
