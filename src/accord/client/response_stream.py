"""Streams an agent's response and its thinking in chunks."""

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Literal, Self

from accord.client.connection.outbox import AcceptedFuture
from accord.client.errors import ClientError
from accord.core.kernel.messages import Body
from accord.core.room.conversation.responses import (
    ResponseChunk,
    ResponseEnd,
    ResponseStart,
    UsageStats,
)
from accord.core.room.conversation.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart

# Chunks in flight: write() does not wait for each acknowledgement, but cannot run far ahead.
MAX_UNACKNOWLEDGED_CHUNKS = 64

FinishReason = Literal["complete", "interrupted", "error", "max_tokens", "tool_use"]
Visibility = Literal["all", "approvers_only"] | Iterable[str]
SayFunction = Callable[[Body, str | None], AcceptedFuture]


class ChunkWriter(ABC):
    """A stream with a start message, any number of chunks, and an end message."""

    def __init__(self, say: SayFunction, start: Body, chunk: Callable[[str], Body]) -> None:
        self._say = say
        self._start_body = start
        self._chunk_body = chunk
        self._unacknowledged: deque[AcceptedFuture] = deque()
        self.id = ""

    async def __aenter__(self) -> Self:
        """Send the start message."""
        self.id = (await self._say(self._start_body, None)).id
        return self

    async def write(self, text: str) -> None:
        """Send one chunk; raises the refusal of an earlier one."""
        while self._unacknowledged and (
            self._unacknowledged[0].done() or len(self._unacknowledged) >= MAX_UNACKNOWLEDGED_CHUNKS
        ):
            await self._unacknowledged.popleft()
        self._unacknowledged.append(self._say(self._chunk_body(text), self.id))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Send the end message; on cancellation, without waiting for the acknowledgement."""
        if error is None:
            end = self._say(self._end_body(None), self.id)
            await asyncio.gather(*self._unacknowledged, end)
            return
        with contextlib.suppress(ClientError):
            end = self._say(self._end_body(error), self.id)
            if isinstance(error, Exception):
                await end

    @abstractmethod
    def _end_body(self, error: BaseException | None) -> Body:
        """The end message; `error` is the exception that ended the stream, if any."""


class Response(ChunkWriter):
    """A response: `async with session.respond(prompt) as out: await out.write(text)`.

    Set `usage` and `finish_reason` before the end. An exception ends the stream with `error`,
    cancellation with `interrupted`.
    """

    def __init__(self, say: SayFunction, agent: str, prompt: str) -> None:
        start = ResponseStart(agent=agent, prompt_ref=prompt)
        super().__init__(say, start, lambda text: ResponseChunk(text=text))
        self.usage: UsageStats | None = None
        self.finish_reason: FinishReason = "complete"

    def _end_body(self, error: BaseException | None) -> Body:
        reason: FinishReason = self.finish_reason
        if error is not None:
            stopped = isinstance(error, asyncio.CancelledError)
            reason = "interrupted" if stopped else "error"
        return ResponseEnd(finish_reason=reason, usage=self.usage)


class Thinking(ChunkWriter):
    """Thinking aloud: `async with session.think(prompt) as thoughts: await thoughts.write(text)`.

    Set `summary` before the end; it is visible to the same members as the chunks.
    """

    def __init__(
        self, say: SayFunction, agent: str, prompt: str, visible_to: Visibility = "all"
    ) -> None:
        audience = visible_to if isinstance(visible_to, str) else tuple(visible_to)
        start = ThinkingStart(agent=agent, prompt_ref=prompt, visible_to=audience)  # type: ignore[arg-type]  # the server refuses other words
        super().__init__(say, start, lambda text: ThinkingChunk(text=text))
        self.summary: str | None = None
        self._started_at = time.monotonic()

    def _end_body(self, error: BaseException | None) -> Body:  # noqa: ARG002 - ends the same way
        duration_ms = int((time.monotonic() - self._started_at) * 1000)
        return ThinkingEnd(summary=self.summary, duration_ms=duration_ms)
