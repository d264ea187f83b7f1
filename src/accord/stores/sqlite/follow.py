"""For those who follow the log: the newest rows, and a bell when there may be more."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

from accord.stores.bell import Bell
from accord.stores.sqlite.jobs import Commit
from accord.stores.sqlite.recent import Recent

# Commits of others are looked for this often.
EVERY_S = 0.2
# Commits of this process ring so soon, together: nobody who follows the log is in more of a hurry.
SOON_S = 0.02


class Follow:
    """Costs nothing while nobody follows."""

    def __init__(self, changes: Callable[[], int], position: Callable[[], int]) -> None:
        self.bell = Bell()
        self.recent = Recent()
        self._changes = changes
        self._position = position
        self._followers = 0
        self._soon: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None

    @contextmanager
    def following(self) -> Iterator["Follow"]:
        """While inside, the rows of others are looked for too."""
        self._followers += 1
        if self._watch is None:
            self._watch = asyncio.create_task(self._look())
        try:
            yield self
        finally:
            self._followers -= 1
            if not self._followers:
                self._stop()

    def committed(self, commit: Commit) -> None:
        """This process appended."""
        if commit.rows and self._followers:
            self.recent.add(commit.rows, commit.last)
            if self._soon is None:
                self._soon = asyncio.get_running_loop().call_later(SOON_S, self._ring)

    def _ring(self) -> None:
        self._soon = None
        self.bell.ring()

    def end(self) -> None:
        """Wake everybody for the last time."""
        self._stop()
        self.bell.ring()

    def _stop(self) -> None:
        self.recent.forget()
        if self._soon:
            self._soon.cancel()
            self._soon = None
        if self._watch:
            self._watch.cancel()
            self._watch = None

    async def _look(self) -> None:
        seen = -1
        while True:
            try:
                now = self._changes()
                if now != seen and self._position() != self.recent.last:
                    self.recent.forget()
                    self.bell.ring()
                seen = now
            except apsw.Error:  # whoever reads is told what is wrong
                pass
            await asyncio.sleep(EVERY_S)
