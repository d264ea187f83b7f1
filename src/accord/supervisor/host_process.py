"""The host in a PTY of its own, with job control, and how it ends.

Between us and the host is a small process that leads the session of the PTY. Without it the host's
process group would have no parent in its session, and the kernel would not let it be stopped by
the keyboard.
"""

import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

# What the leader reports: the host's process id, that it was stopped, how it ended.
REPORT = struct.Struct("=ci")
STARTED, STOPPED, ENDED, NOT_STARTED = b"p", b"s", b"e", b"n"
EXIT_NOT_FOUND, EXIT_NOT_EXECUTABLE = 127, 126


class HostProcess(NamedTuple):
    """A host that was started; `reports` is the pipe of its leader."""

    leader: int
    master: int
    reports: int


def start_host(
    argv: Sequence[str], environment: Mapping[str, str], size: bytes | None = None
) -> HostProcess:
    """Start it; the current directory is ours."""
    reading, writing = os.pipe()
    leader, master = pty.fork()
    if leader == 0:
        os.close(reading)
        _lead(argv, environment, writing, size)
    os.close(writing)
    os.set_blocking(master, False)
    os.set_blocking(reading, False)
    return HostProcess(leader, master, reading)


def _lead(
    argv: Sequence[str], environment: Mapping[str, str], reports: int, size: bytes | None
) -> NoReturn:
    """In the new session: start the host in the foreground, and report what happens to it."""
    try:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        if size is not None:
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
        leads_group, in_foreground = os.pipe()
        host = os.fork()
        if host == 0:
            os.close(leads_group)
            _become_host(argv, environment, reports, in_foreground)
        os.close(in_foreground)
        # The host alone gives itself the terminal: done here as well, it could come after a shell
        # has given the terminal to a command of its own, and take it away from that.
        os.read(leads_group, 1)
        os.close(leads_group)
        os.write(reports, REPORT.pack(STARTED, host))
        _report_until_end(host, reports)
    finally:
        os._exit(0)


def _become_host(
    argv: Sequence[str], environment: Mapping[str, str], reports: int, in_foreground: int
) -> NoReturn:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    os.close(in_foreground)
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue
    try:
        os.execvpe(argv[0], list(argv), dict(environment))  # noqa: S606 - the point: no shell
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        os.write(reports, REPORT.pack(NOT_STARTED, error.errno or 0))
        os._exit(EXIT_NOT_FOUND if missing else EXIT_NOT_EXECUTABLE)


def _report_until_end(host: int, reports: int) -> None:
    while True:
        _, status = os.waitpid(host, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.write(reports, REPORT.pack(STOPPED, os.WSTOPSIG(status)))
        else:
            os.write(reports, REPORT.pack(ENDED, os.waitstatus_to_exitcode(status)))
            return


def exit_code_of(code: int) -> int:
    """As a shell reports it: 128 and the number of the signal that ended it."""
    return code if code >= 0 else 128 - code


def flush_before_fork() -> None:
    """So that nothing that we printed appears twice."""
    sys.stdout.flush()
    sys.stderr.flush()
