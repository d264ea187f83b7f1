"""A disk whose power can be cut: what was not synced may be lost, in part and in any order.

Reads and writes go to real files. Beside them it keeps what a disk would hold for certain, and
what waits in its caches. `image` is what somebody might find after a power cut at this moment:
of everything unsynced all, nothing or any 512-byte sectors, in the order written or another; a
file that was made or deleted is there or not until its folder was synced; what a file was
lengthened by may be rubbish.
"""

import random
import threading
from collections.abc import Callable
from pathlib import Path

import apsw

SECTOR = 512
# SQLite syncs the folder of these with their first sync.
SYNCS_FOLDER = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
Name = str | apsw.URIFilename | None
Change = tuple[int, bytes | None]  # where, and what; None cuts the file off there


class Inode:
    """One file: what is on the disk, and what is on its way there."""

    def __init__(self, durable: bytes = b"") -> None:
        self.durable = bytearray(durable)
        self.pending: list[Change] = []
        self.linked = False

    def write(self, data: bytes, offset: int) -> None:
        """In pieces, each of which may be lost alone."""
        start = 0
        while start < len(data):
            end = start + SECTOR - (offset + start) % SECTOR
            self.pending.append((offset + start, data[start:end]))
            start = end

    def sync(self) -> None:
        """Everything written is on the disk."""
        for change in self.pending:
            apply(self.durable, change, bytes)
        self.pending.clear()

    def after_cut(self, rng: random.Random) -> bytes:
        """What may be left of it."""
        data = bytearray(self.durable)
        share = rng.choice((0, 0.1, 0.5, 0.9, 1))
        left = [change for change in self.pending if rng.random() < share]
        if rng.random() < 1 / 2:
            rng.shuffle(left)
        fill = bytes if rng.random() < 1 / 2 else rng.randbytes
        for change in left:
            apply(data, change, fill)
        return bytes(data)


def apply(data: bytearray, change: Change, fill: Callable[[int], bytes]) -> None:
    """One piece of a write, or a truncation."""
    offset, written = change
    if written is None:
        del data[offset:]
        return
    if offset > len(data):
        data += fill(offset - len(data))
    data[offset : offset + len(written)] = written


class PowerDisk(apsw.VFS):
    """The disk on which SQLite opens every file until `unregister`.

    `moment` is called before each change and each sync, with everything at rest.
    """

    def __init__(self, moment: Callable[["PowerDisk"], None] = lambda _: None) -> None:
        self.usual = apsw.vfs_names()[0]
        super().__init__("power", self.usual, makedefault=True)
        self.moment = moment
        self.honest = True
        self.changes = 0
        self._lock = threading.RLock()
        # What each name may lead to after a cut: first what is certain, then what came later.
        self._entries: dict[str, list[Inode | None]] = {}
        self._numbers: dict[int, Inode] = {}

    def xOpen(self, name: Name, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if not path:
            return apsw.VFSFile(self.usual, name, flags)
        with self._lock:
            return PowerFile(self, name, flags, self._inode(path))

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        with self.change():
            super().xDelete(filename, syncdir)
            self._entries.setdefault(filename, [None]).append(None)
            if syncdir:
                self.sync_folder()

    def _inode(self, path: str) -> Inode:
        candidates = self._entries.setdefault(path, [None])
        inode = candidates[-1]
        if inode is None:
            inode = self._linked(Path(path))
            candidates.append(inode)
        return inode

    def _linked(self, path: Path) -> Inode:
        """A file that came to this name without us, be it one that we know by another."""
        if not path.exists():
            return Inode()
        number = path.stat().st_ino
        return self._numbers.setdefault(number, Inode(path.read_bytes()))

    def note(self, path: str, inode: Inode) -> None:
        """Know this file again under another name."""
        self._numbers[Path(path).stat().st_ino] = inode

    def change(self) -> threading.RLock:
        """Hold this while something changes."""
        with self._lock:
            self.changes += 1
            self.moment(self)
        return self._lock

    def sync_folder(self) -> None:
        """Every name leads to what it leads to now."""
        for path, candidates in self._entries.items():
            self._entries[path] = candidates[-1:]

    def image(self, into: Path, rng: random.Random) -> None:
        """The files as they may be found if the power goes now."""
        into.mkdir()
        for path, candidates in self._entries.items():
            inode = rng.choice(candidates)
            if inode is not None:
                (into / Path(path).name).write_bytes(inode.after_cut(rng))


class PowerFile(apsw.VFSFile):
    """A file on such a disk."""

    def __init__(self, disk: PowerDisk, name: Name, flags: list[int], inode: Inode) -> None:
        super().__init__(disk.usual, name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._disk = disk
        self._inode = inode
        disk.note(str(path), inode)
        self._syncs_folder = bool(flags[0] & SYNCS_FOLDER)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        with self._disk.change():
            super().xWrite(data, offset)
            self._inode.write(bytes(data), offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        with self._disk.change():
            super().xTruncate(newsize)
            self._inode.pending.append((newsize, None))

    def xSync(self, flags: int) -> None:  # noqa: N802
        """On the disk, if it is honest; the real one need not be asked."""
        with self._disk.change():
            if not self._disk.honest:
                return
            self._inode.sync()
            if self._syncs_folder and not self._inode.linked:
                self._inode.linked = True
                self._disk.sync_folder()
