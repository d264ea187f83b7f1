"""A person's terminal, as a test plays it: types, resizes, and waits for what appears."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

WAIT_S = 20.0


class OuterTerminal:
    """A program in a PTY whose other end the test holds."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        size: tuple[int, int] = (40, 110),
    ) -> None:
        self.shown = b""
        self.exit_code: int | None = None
        self._after = 0
        # An open end of our own: what is set there can be read after the program has ended.
        self.master, self.slave = pty.openpty()
        self.resize(*size)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
                for fd in range(3):
                    os.dup2(self.slave, fd)
                os.closerange(3, 256)
                if cwd is not None:
                    os.chdir(cwd)
                os.execvpe(argv[0], list(argv), dict(os.environ if env is None else env))  # noqa: S606
            finally:
                os._exit(126)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.slave)

    def resize(self, rows: int, columns: int) -> None:
        """As a window system does; the kernel tells the foreground processes."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: bytes | str) -> None:
        """Type."""
        os.write(self.master, keys.encode() if isinstance(keys, str) else keys)

    def read(self, timeout_s: float = 0.0) -> bytes:
        """What is there, or appears within the time."""
        ready, _, _ = select.select([self.master], [], [], timeout_s)
        try:
            data = os.read(self.master, 1 << 16) if ready else b""
        except OSError:
            data = b""
        self.shown += data
        return data

    def wait_until(
        self, happens: Callable[[], Any], wait_s: float = WAIT_S, about: str = "it did not happen"
    ) -> Any:
        """What this returns once it is true, reading all the while."""
        give_up = time.monotonic() + wait_s
        while not (found := happens()):
            assert time.monotonic() < give_up, f"{about}; shown: {self.shown[-2000:]!r}"
            self.read(0.02)
        return found

    def wait_for(self, text: bytes | str, wait_s: float = WAIT_S) -> None:
        """Until this was shown, after what was waited for before."""
        wanted = text.encode() if isinstance(text, str) else text
        start = self._after
        self.wait_until(lambda: wanted in self.shown[start:], wait_s)
        self._after = self.shown.index(wanted, start) + len(wanted)

    def wait_for_end(self, wait_s: float = WAIT_S) -> int:
        """The exit code, 128 and more for a signal."""

        def ended() -> bool:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self.exit_code = code if code >= 0 else 128 - code
            return bool(pid)

        self.wait_until(ended, wait_s)
        while self.read(0.05):
            pass
        assert self.exit_code is not None
        return self.exit_code

    @property
    def is_as_before(self) -> bool:
        """Whether the settings of the terminal are those of the beginning."""
        return termios.tcgetattr(self.slave) == self.before

    @property
    def is_raw(self) -> bool:
        """Whether every key passes as it is."""
        return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO)
