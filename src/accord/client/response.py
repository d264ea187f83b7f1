"""What an agent writes bit by bit: its answer, and the thinking before it."""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Literal, Self

from accord.core.kernel.log import Body
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart, UsageStats
from accord.core.room.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart

from .errors import ClientError
from .outbox import Answer

# Chunks on their way at once: writing does not wait for each, and does not run far ahead either.
MOST_UNDER_WAY = 64

Finish = Literal["complete", "interrupted", "error", "max_tokens", "tool_use"]
Shown = Literal["all", "approvers_only"] | Iterable[str]
Say = Callable[[Body, str | None], Answer]


class Stream(ABC):
    """Something that begins, goes on and ends for everybody who may see it."""

    def __init__(self, say: Say, start: Body, chunk: Callable[[str], Body]) -> None:
        self._say = say
        self._start = start
        self._chunk = chunk
        self._under_way: deque[Answer] = deque()
        self.id = ""

    async def __aenter__(self) -> Self:
        """It has begun."""
        self.id = (await self._say(self._start, None)).id
        return self

    async def write(self, text: str) -> None:
        """More of it; raises what became of earlier bits."""
        while self._under_way and (
            self._under_way[0].done() or len(self._under_way) >= MOST_UNDER_WAY
        ):
            await self._under_way.popleft()
        self._under_way.append(self._say(self._chunk(text), self.id))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """It has ended, unless the writer was stopped."""
        if error is None:
            end = self._say(self._end(None), self.id)
            await asyncio.gather(*self._under_way, end)
            return
        with contextlib.suppress(ClientError):
            end = self._say(self._end(error), self.id)
            if isinstance(error, Exception):
                await end

    @abstractmethod
    def _end(self, error: BaseException | None) -> Body:
        """What is said last; `error` is what ended the writing, if anything did."""


class Response(Stream):
    """A response stream: `async with session.respond(prompt) as out: await out.write(text)`.

    Set `usage` and `finish_reason` before the end. An exception ends the stream with `error`,
    cancellation with `interrupted`.
    """

    def __init__(self, say: Say, agent: str, prompt: str) -> None:
        start = ResponseStart(agent=agent, prompt_ref=prompt)
        super().__init__(say, start, lambda text: ResponseChunk(text=text))
        self.usage: UsageStats | None = None
        self.finish_reason: Finish = "complete"

    def _end(self, error: BaseException | None) -> Body:
        reason: Finish = self.finish_reason
        if error is not None:
            stopped = isinstance(error, asyncio.CancelledError)
            reason = "interrupted" if stopped else "error"
        return ResponseEnd(finish_reason=reason, usage=self.usage)


class Thinking(Stream):
    """Thinking aloud: `async with session.think(prompt) as mind: await mind.write(text)`.

    Set `summary` before the end; those who could see the thinking see it.
    """

    def __init__(self, say: Say, agent: str, prompt: str, visible_to: Shown = "all") -> None:
        named = visible_to if isinstance(visible_to, str) else tuple(visible_to)
        # The server refuses any other word.
        start = ThinkingStart(agent=agent, prompt_ref=prompt, visible_to=named)  # type: ignore[arg-type]
        super().__init__(say, start, lambda text: ThinkingChunk(text=text))
        self.summary: str | None = None
        self._began = time.monotonic()

    def _end(self, error: BaseException | None) -> Body:  # noqa: ARG002 - it just ends
        took = int((time.monotonic() - self._began) * 1000)
        return ThinkingEnd(summary=self.summary, duration_ms=took)
