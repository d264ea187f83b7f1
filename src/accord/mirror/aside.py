"""A question to a file system that may never answer, asked where nobody has to wait for it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Aside(Generic[T]):
    """One question at a time, in a thread of its own: what hangs there takes no one's turn."""

    def __init__(self) -> None:
        self._asked: asyncio.Future[T] | None = None

    async def ask(self, question: Callable[[], T], patience: float) -> T | None:
        """The answer. None when it does not come in time: whoever asks next is told that one."""
        asked = self._asked
        late = asked is not None
        if asked is None:
            asked = self._asked = _begin(question)
        done, _ = await asyncio.wait([asked], timeout=0 if late else patience)
        if not done:
            return None
        self._asked = None
        return asked.result()


def _begin(question: Callable[[], T]) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            answer = question()
        except Exception as no:  # noqa: BLE001 - it is raised where the question was asked
            tell, word = asked.set_exception, no
            _later(loop, lambda: tell(word))
        else:
            _later(loop, lambda: asked.set_result(answer))

    # A daemon: a server that stops does not wait for a disk that does not answer.
    Thread(target=work, name="pact", daemon=True).start()
    return asked


def _later(loop: asyncio.AbstractEventLoop, tell: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the server has stopped meanwhile
        loop.call_soon_threadsafe(tell)
