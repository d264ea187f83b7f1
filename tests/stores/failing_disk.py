"""A simulated disk that fails at a chosen call."""

import threading
from collections.abc import Callable

import apsw

Name = str | apsw.URIFilename | None
Fault = Callable[[], Exception]


class FailingDisk(apsw.VFS):
    """The usual one; from the `first` operation on, `times` of them fail."""

    def __init__(self) -> None:
        self.usual = apsw.vfs_names()[0]
        super().__init__("failing-at", self.usual, makedefault=True)
        self._lock = threading.Lock()
        self.heal()

    def heal(self) -> None:
        """From now on everything goes well."""
        self.count, self.first, self.times = 0, 0, 0
        self.fault: Fault = apsw.IOError

    def fail(self, first: int, times: int, fault: Fault) -> None:
        """Counted from now."""
        self.count, self.first, self.times, self.fault = 0, first, times, fault

    def step(self) -> None:
        """One more operation."""
        with self._lock:
            self.count += 1
            failing = self.first and self.first <= self.count < self.first + self.times
        if failing:
            raise self.fault()

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        self.step()
        return FailingFile(self, name, flags)


class FailingFile(apsw.VFSFile):
    """A file that fails with its disk."""

    def __init__(self, disk: FailingDisk, name: Name, flags: list[int]) -> None:
        super().__init__(disk.usual, name, flags)
        self._disk = disk

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.step()
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.step()
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.step()
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.step()
        super().xSync(flags)
