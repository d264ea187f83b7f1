"""Calls to a file system that may hang, run in a thread with a timeout."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """Runs one call at a time in a thread of its own, so that a hung disk blocks nothing else."""

    def __init__(self) -> None:
        self._pending: asyncio.Future[T] | None = None

    async def call(self, function: Callable[[], T], timeout_s: float) -> T | None:
        """The call's result, or None on timeout; a late result is returned to the next caller."""
        future = self._pending
        is_pending = future is not None
        if future is None:
            future = self._pending = _start_thread(function)
        done, _ = await asyncio.wait([future], timeout=0 if is_pending else timeout_s)
        if not done:
            return None
        self._pending = None
        return future.result()


def _start_thread(function: Callable[[], T]) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - re-raised in the caller
            set_exception, failure = future.set_exception, error
            _call_in_loop(loop, lambda: set_exception(failure))
        else:
            _call_in_loop(loop, lambda: future.set_result(result))

    # A daemon, so that a server can stop while a disk does not respond.
    Thread(target=work, name="pact", daemon=True).start()
    return future


def _call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop was closed meanwhile
        loop.call_soon_threadsafe(callback)
