"""What bash would run for a text, found out in a process of its own.

A text that the parser crashes on, or takes too long for, ends that process and not this one. Then
nothing is known about the text and it is refused: it is never taken for an empty script.
"""

import atexit
import os
import select
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import lru_cache

import msgspec

from accord.core.kernel.refusal import Reason, Refused
from accord.core.policy.shell_syntax import Script

MAX_SCRIPT_BYTES = 65_536
# Hooks ask about the same short texts again and again.
CACHED_TEXTS, MAX_CACHED_LENGTH = 128, 2048
LENGTH_BYTES = 4
MAX_ANSWER_BYTES = 16 << 20
# The process limits its own CPU time; this is for a machine on which it does not get any.
TIMEOUT_S = 10.0
COMMAND = (sys.executable, "-I", "-m", "accord.shell_grammar")


FAILED = "The command cannot be analysed, because {why}; split it into shorter and simpler ones"


def parse_shell(text: str) -> Script:
    """Everything that bash would run for this text; raises Refused."""
    try:
        source = text.encode()
    except UnicodeEncodeError:
        return Script(problem="it is not valid Unicode")
    if len(source) > MAX_SCRIPT_BYTES:
        return Script(problem=f"it is longer than {MAX_SCRIPT_BYTES} bytes")
    if "\0" in text:
        return Script(problem="it contains a NUL character")
    return _parse_cached(text) if len(text) <= MAX_CACHED_LENGTH else _child.parse(source)


@lru_cache(maxsize=CACHED_TEXTS)
def _parse_cached(text: str) -> Script:
    return _child.parse(text.encode())


class _ParserProcess:
    """The process, which is started when it is needed and again after each failure."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._decoder = msgspec.msgpack.Decoder(Script)

    def parse(self, source: bytes) -> Script:
        """What the process says about a text; raises Refused."""
        with self._lock:
            try:
                answer = self._ask(source, time.monotonic() + TIMEOUT_S)
                return self._decoder.decode(answer)
            except EOFError:
                why = "the parser fails on it or takes too long"
            except TimeoutError:
                why = "the parser did not answer in time"
            except (OSError, msgspec.DecodeError) as error:
                why = f"the parser does not work ({type(error).__name__})"
            self.end()
        raise Refused(Reason.MALFORMED, FAILED.format(why=why))

    def _ask(self, source: bytes, deadline: float) -> bytes:
        process = self._running()
        assert process.stdin is not None  # noqa: S101 - started with pipes
        assert process.stdout is not None  # noqa: S101 - the same
        _write(process.stdin.fileno(), _length(source) + source, deadline)
        output = process.stdout.fileno()
        length = int.from_bytes(_read(output, LENGTH_BYTES, deadline))
        if length > MAX_ANSWER_BYTES:
            raise EOFError
        return _read(output, length, deadline)

    def _running(self) -> "subprocess.Popen[bytes]":
        """The process; it ends by itself when nothing is asked for a while."""
        if self._process is not None and self._process.poll() is not None:
            self.end()
        if self._process is None:
            self._process = subprocess.Popen(
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            assert self._process.stdin is not None  # noqa: S101 - started with pipes
            os.set_blocking(self._process.stdin.fileno(), False)
        return self._process

    def end(self) -> None:
        """Kill the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    def forget(self) -> None:
        """In a forked process: the parser belongs to the parent, where the lock may be held."""
        self._lock = threading.Lock()
        if self._process is not None:
            self._process.returncode = 0  # not a child of this process
            self._process = None


def _length(data: bytes) -> bytes:
    return len(data).to_bytes(LENGTH_BYTES)


def _write(handle: int, data: bytes, deadline: float) -> None:
    while data:
        _wait(handle, select.POLLOUT, deadline)
        data = data[os.write(handle, data) :]


def _read(handle: int, size: int, deadline: float) -> bytes:
    """So many bytes; raises EOFError if the process ended before, TimeoutError."""
    data = b""
    while len(data) < size:
        _wait(handle, select.POLLIN, deadline)
        part = os.read(handle, size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def _wait(handle: int, event: int, deadline: float) -> None:
    """Wait until the handle is ready; `select` would not take the many handles of a server."""
    poll = select.poll()
    poll.register(handle, event)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise TimeoutError


_child = _ParserProcess()
atexit.register(_child.end)
os.register_at_fork(after_in_child=_child.forget)
