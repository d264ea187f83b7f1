"""An agent behavior that passes prompts on to a host, one program for each fork."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from accord.agents.conversation import Conversation
from accord.agents.host_programs.host_turn import HostTurn
from accord.agents.host_programs.line_program import HostError
from accord.agents.loop import Agent, Prompt
from accord.agents.prompt_text import ReadContext, prompt_text
from accord.agents.tools.call_report import CallReporter
from accord.agents.worktrees import FindWorkdir
from accord.core.room.conversation.responses import UsageStats

START_TIMEOUT_S = 120.0
INTERRUPT_TIMEOUT_S = 5.0
MAX_PROGRAMS = 8
MAX_SUMMARY_CHARS = 24_000
INTRODUCTION = """\
You take part in a session where people and agents build software together. Your calls of tools are
shown to the people exactly as you make them, and some wait for approval. A call that was rejected
must not be tried in another way: say what you would need and why."""


class HostDriver(Protocol):
    """A running program of a host."""

    @property
    def is_running(self) -> bool:
        """Whether it can take a prompt."""
        ...

    async def turn(self, text: str, turn: HostTurn) -> UsageStats | None:
        """Answer a text completely; raises HostError."""
        ...

    async def interrupt(self) -> None:
        """End the running turn; returns when the program has confirmed it."""
        ...

    async def close(self) -> None:
        """Kill the program and everything that it started."""
        ...


StartDriver = Callable[[Path, str | None], Awaitable[HostDriver]]


class HostBehavior:
    """Answers prompts with a host; a host that is started again is told the conversation."""

    def __init__(
        self,
        start: StartDriver,
        conversation: Conversation,
        reporter: CallReporter,
        read_context: ReadContext,
        find_workdir: FindWorkdir,
    ) -> None:
        self._start = start
        self._conversation = conversation
        self._reporter = reporter
        self._read_context = read_context
        self._find_workdir = find_workdir
        self._drivers: dict[str | None, HostDriver] = {}

    async def answer(self, agent: Agent, prompt: Prompt) -> None:
        """One turn of the host, and one more for each amendment that came too late for it."""
        await agent.wait_while_paused()
        workdir = await self._find_workdir(prompt.fork)
        text = await prompt_text(prompt, self._read_context)
        async with HostTurn(agent, prompt, self._reporter, workdir) as turn:
            driver, is_new = await self._driver(prompt.fork, workdir)
            if is_new:
                text = self._with_history(prompt, text)
            while True:
                usage = await self._take_turn(prompt.fork, driver, text, turn)
                await agent.wait_while_paused()
                if not (news := prompt.news()):
                    break
                await turn.end_reply("tool_use", usage)
                text = "\n".join(news)
            await turn.end_reply("complete", usage)

    async def _take_turn(
        self, fork: str | None, driver: HostDriver, text: str, turn: HostTurn
    ) -> UsageStats | None:
        try:
            return await driver.turn(text, turn)
        except asyncio.CancelledError:
            await self._stop_turn(fork, driver)
            raise
        except HostError:
            await self._forget(fork, driver)
            raise

    async def _stop_turn(self, fork: str | None, driver: HostDriver) -> None:
        """Interrupt by the host's own means; one that does not obey is killed."""
        try:
            async with asyncio.timeout(INTERRUPT_TIMEOUT_S):
                await driver.interrupt()
        except (TimeoutError, HostError):
            await self._forget(fork, driver)

    async def _driver(self, fork: str | None, workdir: Path) -> tuple[HostDriver, bool]:
        known = self._drivers.pop(fork, None)
        if known is not None and known.is_running:
            self._drivers[fork] = known  # the newest is last
            return known, False
        if known is not None:
            await known.close()
        while len(self._drivers) >= MAX_PROGRAMS:
            await self._forget(*next(iter(self._drivers.items())))
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                driver = await self._start(workdir, fork)
        except TimeoutError:
            raise HostError("The host did not get ready in time; try it in a terminal") from None
        self._drivers[fork] = driver
        return driver, True

    def _with_history(self, prompt: Prompt, text: str) -> str:
        said = self._conversation.summary(prompt.fork, MAX_SUMMARY_CHARS, until=prompt.id)
        history = (
            f"\n\nWhat was said before:\n<conversation>\n{said}\n</conversation>" if said else ""
        )
        return f"{INTRODUCTION}{history}\n\n{text}"

    async def _forget(self, fork: str | None, driver: HostDriver) -> None:
        if self._drivers.get(fork) is driver:
            del self._drivers[fork]
        await driver.close()

    async def close(self) -> None:
        """End all programs."""
        for fork, driver in list(self._drivers.items()):
            with contextlib.suppress(Exception):
                await self._forget(fork, driver)
