"""How late a machine is by itself, whatever a server on it does."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Self

NAP = 0.05
# A server that is merely busy makes nobody else on the machine wait for so long.
STALL = 0.5


def processor_wait(pids: Iterable[int]) -> float:
    """The seconds that threads of these processes were ready to run, but other processes ran.

    Linux counts them; elsewhere it is 0.
    """
    total_ns = 0
    for pid in pids:
        for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with suppress(OSError):  # the thread has ended
                total_ns += int(file.read_text().split()[1])
    return total_ns / 1e9


class Machine:
    """Naps and writes to a server's disk, over and over; notes where that took far too long."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self.clock = clock
        self.stalls: list[tuple[float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def stood_still(self, since: float, until: float) -> float:
        """For how many seconds between these it did nothing for anybody."""
        parts = ((max(since, began), min(until, ended)) for began, ended in self.stalls)
        return sum(max(0.0, ended - began) for began, ended in parts)

    def took(self, began: float, ended: float) -> None:
        """So long something took that takes no time."""
        if ended - began > STALL:
            self.stalls.append((began, ended))

    def _watch(self) -> None:
        with TemporaryFile(dir=self.folder, buffering=0) as file:
            while not self._over.is_set():
                began = self.clock()
                self._over.wait(NAP)
                file.write(b"x")
                os.fsync(file.fileno())
                self.took(began, self.clock())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
