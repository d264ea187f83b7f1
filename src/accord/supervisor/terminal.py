"""The person's terminal: raw while the host runs, and as it was before whatever happens."""

import fcntl
import os
import struct
import termios
import tty
from collections.abc import Iterable
from typing import Any

SIZE = struct.Struct("HHHH")
DEFAULT_SIZE = (24, 80)
# What a program may have left on, and how each is turned off: other screen, paste, mouse, focus.
RESETTABLE_MODES = (
    1,
    9,
    47,
    1000,
    1002,
    1003,
    1004,
    1005,
    1006,
    1015,
    1047,
    1049,
    2004,
    2026,
    2031,
)
SHOW_CURSOR, PLAIN_TEXT, POP_KEYBOARD = b"\x1b[?25h", b"\x1b[0m", b"\x1b[<u"


def size_of(fd: int) -> tuple[int, int]:
    """Rows and columns."""
    try:
        rows, columns, _, _ = SIZE.unpack(fcntl.ioctl(fd, termios.TIOCGWINSZ, bytes(SIZE.size)))
    except OSError:
        return DEFAULT_SIZE
    return (rows, columns) if rows and columns else DEFAULT_SIZE


def copy_size(source: int, target: int) -> tuple[int, int]:
    """Give one terminal the size of another, pixels included; returns rows and columns."""
    try:
        packed = fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(SIZE.size))
    except OSError:
        packed = SIZE.pack(*DEFAULT_SIZE, 0, 0)
    if SIZE.unpack(packed)[:2] == (0, 0):
        packed = SIZE.pack(*DEFAULT_SIZE, 0, 0)
    fcntl.ioctl(target, termios.TIOCSWINSZ, packed)
    return size_of(target)


class RawTerminal:
    """The terminal of this process; `restore` may be called any number of times."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.saved = termios.tcgetattr(fd)

    def make_raw(self) -> None:
        """Every key goes through as it is."""
        tty.setraw(self.fd, termios.TCSADRAIN)

    def restore(self) -> None:
        """As it was."""
        restore(self.fd, self.saved)


def restore(fd: int, saved: list[Any]) -> None:
    """Give a terminal its settings back; nothing happens if it is gone."""
    try:
        termios.tcsetattr(fd, termios.TCSADRAIN, saved)
    except (termios.error, OSError):
        return


def saved_to_json(saved: list[Any]) -> list[Any]:
    """The settings as JSON can hold them: control characters are bytes or numbers."""
    *flags, characters = saved
    return [*flags, [c if isinstance(c, int) else c.decode("latin-1") for c in characters]]


def saved_from_json(values: list[Any]) -> list[Any]:
    """The settings again."""
    *flags, characters = values
    return [*flags, [c if isinstance(c, int) else c.encode("latin-1") for c in characters]]


def leave_modes(fd: int, modes: Iterable[int]) -> None:
    """Turn off what a program that was killed has left on."""
    left = set(modes).intersection(RESETTABLE_MODES)
    off = b"".join(b"\x1b[?%dl" % mode for mode in sorted(left))
    try:
        os.write(fd, off + SHOW_CURSOR + PLAIN_TEXT)
    except OSError:
        return
