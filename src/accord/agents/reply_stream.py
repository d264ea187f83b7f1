"""Streams one reply of a model into the session: thinking first, then the answer."""

import asyncio
import time
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from accord.client import Session
from accord.client.response_stream import FinishReason, Response, Thinking
from accord.core.room.conversation.responses import UsageStats

MAX_CHUNK_CHARS = 32 << 10


class ReplyStream:
    """Opens a stream when there is something to say, and always ends what it opened."""

    def __init__(self, session: Session, prompt: str) -> None:
        self._session = session
        self._prompt = prompt
        self._open = AsyncExitStack()
        self._thinking: Thinking | None = None
        self._response: Response | None = None
        self._started_at = time.monotonic()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the streams; an error ends the response as one, cancellation as interrupted."""
        if isinstance(error, Exception) and not isinstance(error, asyncio.CancelledError):
            await self._answer()
        await self._open.__aexit__(kind, error, trace)

    @property
    def has_begun(self) -> bool:
        """Whether the session saw something of it."""
        return self._thinking is not None or self._response is not None

    @property
    def elapsed_ms(self) -> int:
        """How long it has taken."""
        return int((time.monotonic() - self._started_at) * 1000)

    async def thinking(self, text: str) -> None:
        """Add to the thinking."""
        if self._thinking is None:
            await self._close()
            thinking = self._session.think(self._prompt)
            self._thinking = await self._open.enter_async_context(thinking)
        for start in range(0, len(text), MAX_CHUNK_CHARS):
            await self._thinking.write(text[start : start + MAX_CHUNK_CHARS])

    async def text(self, text: str) -> None:
        """Add to the answer."""
        response = await self._answer()
        for start in range(0, len(text), MAX_CHUNK_CHARS):
            await response.write(text[start : start + MAX_CHUNK_CHARS])

    async def finish(self, reason: FinishReason, usage: UsageStats | None) -> None:
        """End the response; there is one for every reply, so that its usage is on record."""
        response = await self._answer()
        response.finish_reason, response.usage = reason, usage
        await self._close()

    async def _answer(self) -> Response:
        if self._response is None:
            await self._close()
            respond = self._session.respond(self._prompt)
            self._response = await self._open.enter_async_context(respond)
        return self._response

    async def _close(self) -> None:
        await self._open.aclose()
        self._open = AsyncExitStack()
        self._thinking = None
