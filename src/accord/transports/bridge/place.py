"""Where the bridge's sockets lie, and how one comes to lie there without harm to anybody."""

import errno
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

FILE = "bridge.sock"
COMPATIBLE = Path("/tmp/pvp-git-bridge.sock")  # noqa: S108 - PVP 18.1 names it
LONGEST_PATH = 103  # of a socket, on the stricter of the systems
BACKLOG = 64
ALIVE_S = 0.5
WRITABLE_BY_OTHERS = 0o022


class Unusable(Exception):  # noqa: N818 - a reason to go on without
    """Nobody can listen there; the sentence says why."""


class Bound(NamedTuple):
    """A socket that listens, and which file is its own."""

    path: Path
    sock: socket.socket
    device: int
    inode: int

    def remove(self) -> None:
        """Take the file away, unless it is another one by now."""
        with suppress(OSError):
            there = self.path.lstat()
            if (there.st_dev, there.st_ino) == (self.device, self.inode):
                self.path.unlink()


def private(home: Path) -> Path:
    """The socket of one data directory."""
    return home / FILE


def shared(env: Mapping[str, str], compatible: Path = COMPATIBLE) -> Iterator[Path]:
    """Where hooks that know of no data directory look, the safest first."""
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if Path(runtime).is_absolute():
        yield Path(runtime) / "accord" / FILE
    yield compatible


def bind(path: Path) -> Bound:
    """Listen there, for our own user alone; raises Unusable and then nothing was touched."""
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise Unusable(f"{path} is too long for a socket; choose a shorter --data-dir")
    _prepare(path.parent)
    _make_way(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The mode holds from the first moment: between bind and chmod anybody could connect.
    before = os.umask(0o177)
    try:
        sock.bind(str(path))  # fails on whatever lies there, dangling links included
    except OSError as error:
        sock.close()
        raise Unusable(f"{path}: {error.strerror or error}") from error
    finally:
        os.umask(before)
    there = path.lstat()
    sock.listen(BACKLOG)
    sock.setblocking(False)  # noqa: FBT003 - the standard library's shape
    return Bound(path, sock, there.st_dev, there.st_ino)


def _prepare(folder: Path) -> None:
    """A folder where nobody else can put something in the socket's place."""
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        info = folder.lstat()
    except OSError as error:
        raise Unusable(f"{folder}: {error.strerror or error}") from error
    sticky = bool(info.st_mode & stat.S_ISVTX)
    ours = info.st_uid == os.geteuid() and not info.st_mode & WRITABLE_BY_OTHERS
    if not stat.S_ISDIR(info.st_mode) or not (ours or sticky):
        raise Unusable(f"{folder} is not a folder that only you can change")


def _make_way(path: Path) -> None:
    """Remove a socket that a killed server left; whatever else lies there stays."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror or error}") from error
    if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.geteuid():
        raise Unusable(f"{path} is somebody else's, or no socket")
    if _alive(path):
        raise Unusable(f"another server listens on {path}")
    with suppress(FileNotFoundError):
        path.unlink()


def _alive(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(ALIVE_S)
        try:
            probe.connect(str(path))
        except OSError as error:
            return error.errno not in {errno.ECONNREFUSED, errno.ENOENT}
        return True
