"""Paths of the bridge's sockets, and how to create one safely."""

import errno
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

SOCKET_FILE = "bridge.sock"
COMPATIBLE_SOCKET = Path("/tmp/pvp-git-bridge.sock")  # noqa: S108 - PVP 18.1 names it
MAX_SOCKET_PATH_BYTES = 103  # the smaller limit of Linux and macOS
LISTEN_BACKLOG = 64
LIVENESS_TIMEOUT_S = 0.5
GROUP_OTHER_WRITE_BITS = 0o022


class UnusableSocket(Exception):  # noqa: N818 - a reason to go on without
    """The socket cannot be used; the message says why."""


class BoundSocket(NamedTuple):
    """A listening socket and the identity of its file."""

    path: Path
    sock: socket.socket
    device: int
    inode: int

    def remove(self) -> None:
        """Remove the file, unless another process has replaced it."""
        with suppress(OSError):
            file_status = self.path.lstat()
            if (file_status.st_dev, file_status.st_ino) == (self.device, self.inode):
                self.path.unlink()


def data_dir_socket(home: Path) -> Path:
    """The socket of a data directory."""
    return home / SOCKET_FILE


def shared_sockets(env: Mapping[str, str], compatible: Path = COMPATIBLE_SOCKET) -> Iterator[Path]:
    """Default sockets for hooks that do not know the data directory, the safest first."""
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if Path(runtime).is_absolute():
        yield Path(runtime) / "accord" / SOCKET_FILE
    yield compatible


def bind_socket(path: Path) -> BoundSocket:
    """Listen for our own user only; raises UnusableSocket without having changed anything."""
    if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
        raise UnusableSocket(f"{path} is too long for a Unix socket; choose a shorter --data-dir")
    _ensure_private_folder(path.parent)
    _remove_stale_socket(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Set the mode before bind: between bind and chmod any user could connect.
    previous_umask = os.umask(0o177)
    try:
        sock.bind(str(path))  # fails if anything exists there, including dangling links
    except OSError as error:
        sock.close()
        raise UnusableSocket(f"{path}: {error.strerror or error}") from error
    finally:
        os.umask(previous_umask)
    file_status = path.lstat()
    sock.listen(LISTEN_BACKLOG)
    sock.setblocking(False)  # noqa: FBT003 - the standard library's shape
    return BoundSocket(path, sock, file_status.st_dev, file_status.st_ino)


def _ensure_private_folder(folder: Path) -> None:
    """Ensure that other users cannot replace the socket."""
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        info = folder.lstat()
    except OSError as error:
        raise UnusableSocket(f"{folder}: {error.strerror or error}") from error
    sticky = bool(info.st_mode & stat.S_ISVTX)
    is_ours = info.st_uid == os.geteuid() and not info.st_mode & GROUP_OTHER_WRITE_BITS
    if not stat.S_ISDIR(info.st_mode) or not (is_ours or sticky):
        raise UnusableSocket(f"{folder} is not a directory that only you can write to")


def _remove_stale_socket(path: Path) -> None:
    """Remove a socket left by a killed server, and nothing else."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnusableSocket(f"{path}: {error.strerror or error}") from error
    if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.geteuid():
        raise UnusableSocket(f"{path} belongs to another user or is not a socket")
    if _is_listening(path):
        raise UnusableSocket(f"another server is listening on {path}")
    with suppress(FileNotFoundError):
        path.unlink()


def _is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(LIVENESS_TIMEOUT_S)
        try:
            probe.connect(str(path))
        except OSError as error:
            return error.errno not in {errno.ECONNREFUSED, errno.ENOENT}
        return True
