"""Shuts the server down cleanly on Ctrl-C and SIGTERM, at any moment of its start."""

import signal
from types import FrameType
from typing import Self

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Before the server is ready, a signal interrupts the start; afterwards uvicorn handles it.

    uvicorn raises the signal again after its shutdown; it must not end the process before the
    store is closed.
    """

    def __init__(self) -> None:
        self._ready = False

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._on_signal) for number in STOP_SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hand_over(self) -> None:
        """Leave signals to uvicorn from now on."""
        self._ready = True

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if not self._ready:
            raise KeyboardInterrupt
