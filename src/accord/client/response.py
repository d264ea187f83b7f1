"""An answer that is written bit by bit."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Literal, Self

from accord.core.kernel.log import Body
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart, UsageStats

from .errors import ClientError
from .outbox import Answer

# Chunks on their way at once: writing does not wait for each, and does not run far ahead either.
MOST_UNDER_WAY = 64

Finish = Literal["complete", "interrupted", "error", "max_tokens", "tool_use"]
Say = Callable[[Body, str | None], Answer]


class Response:
    """A response stream: `async with session.respond(prompt) as out: await out.write(text)`.

    Set `usage` and `finish_reason` before the end. An exception ends the stream with `error`,
    cancellation with `interrupted`.
    """

    def __init__(self, say: Say, agent: str, prompt: str) -> None:
        self._say = say
        self._start = ResponseStart(agent=agent, prompt_ref=prompt)
        self._under_way: deque[Answer] = deque()
        self.id = ""
        self.usage: UsageStats | None = None
        self.finish_reason: Finish = "complete"

    async def __aenter__(self) -> Self:
        """The stream has begun for everybody."""
        self.id = (await self._say(self._start, None)).id
        return self

    async def write(self, text: str) -> None:
        """More of the answer; raises what became of earlier bits."""
        while self._under_way and (
            self._under_way[0].done() or len(self._under_way) >= MOST_UNDER_WAY
        ):
            await self._under_way.popleft()
        self._under_way.append(self._say(ResponseChunk(text=text), self.id))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The stream has ended for everybody, unless the writer was stopped."""
        if error is None:
            end = self._end(self.finish_reason)
            await asyncio.gather(*self._under_way, end)
            return
        stopped = isinstance(error, asyncio.CancelledError)
        with contextlib.suppress(ClientError):
            end = self._end("interrupted" if stopped else "error")
            if isinstance(error, Exception):
                await end

    def _end(self, reason: Finish) -> Answer:
        return self._say(ResponseEnd(finish_reason=reason, usage=self.usage), self.id)
