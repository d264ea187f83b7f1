"""Ctrl-C and SIGTERM end a server well, whenever they come."""

import signal
from types import FrameType
from typing import Self

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Before the server is ready a signal interrupts; afterwards it is uvicorn's.

    uvicorn repeats it to us when everybody is out; that must not end the process before the
    store is closed.
    """

    def __init__(self) -> None:
        self._ready = False

    def __enter__(self) -> Self:
        self._before = {each: signal.signal(each, self._take) for each in STOPPING}
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def ready(self) -> None:
        """From now on signals are for uvicorn."""
        self._ready = True

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        if not self._ready:
            raise KeyboardInterrupt
