"""A ledger as far as it was read: which events stand in it, and how to know the file again."""

from collections.abc import Callable
from hashlib import sha256

from accord.core.dialects.pactmirror import MOST_FAULTS, Sources, mark_of, sources

# Of what was read, so much is compared whenever the file has grown.
TAIL = 4 << 10
# And so much is read at once when all of it is.
STRIDE = 1 << 20

Read = Callable[[int, int], bytes]


class Reading:
    """Whole lines from the beginning on. A file that begins otherwise needs another one."""

    def __init__(self, node: int = 0) -> None:
        self.node = node
        self.size = 0
        self.known: dict[str, bytes] = {}
        self.faults: tuple[int, ...] = ()
        self._lines = 0
        self._tail = b""
        self._hash = sha256()

    def take(self, data: bytes) -> Sources | None:
        """The events in what comes next; None, and nothing is taken, where too much is none."""
        found = sources(data, self._lines + 1, self.known)
        faults = self.faults + tuple(fault.line for fault in found.faults)
        if len(faults) > MOST_FAULTS:
            return None
        self.known.update((each.key, mark_of(each)) for each in found.found)
        self.faults = faults
        self.size += len(data)
        self._lines += data.count(b"\n")
        self._tail = (self._tail + data[-TAIL:])[-TAIL:]
        self._hash.update(data)
        return found

    @property
    def next_line(self) -> int:
        """The number of the line that comes next."""
        return self._lines + 1

    def goes_on(self, node: int, size: int, read: Read) -> bool:
        """Whether the file is still the same one, as far as one sees without reading it again.

        Another file in its place may begin with all of it, as git leaves it: that is compared.
        """
        if size < self.size:
            return False
        if node != self.node:
            return self._begins(node, read)
        return read(self.size - len(self._tail), len(self._tail)) == self._tail

    def _begins(self, node: int, read: Read) -> bool:
        if not self.size or not self.holds(read):
            return False
        self.node = node
        return True

    def holds(self, read: Read) -> bool:
        """Whether every byte of it is still there."""
        whole = sha256()
        for start in range(0, self.size, STRIDE):
            whole.update(read(start, min(STRIDE, self.size - start)))
        return whole.digest() == self._hash.digest()
