"""Passes bytes between the person's terminal and the host's, and types prompts between keystrokes.

It does as little as possible, so that a keystroke is not delayed: it reads, writes, counts, and
copies the output to the link, which has the model of the screen and talks to the server. The link
may end at any moment; a new one is started.
"""

import errno
import gc
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from accord.supervisor.frames import Frame, FrameKind, FrameReader, encoded, with_fields
from accord.supervisor.host_process import (
    ENDED,
    NOT_STARTED,
    REPORT,
    STARTED,
    STOPPED,
    exit_code_of,
    flush_before_fork,
    start_host,
)
from accord.supervisor.keyboard import Keyboard, Paste
from accord.supervisor.prompt_line import STATE_ANSWER, STATE_QUESTION
from accord.supervisor.terminal import SIZE, RawTerminal, copy_size, saved_to_json, size_of

READ_BYTES = 64 << 10
# Beyond this the person's terminal is not read until the host takes what is there.
MAX_TO_HOST = 256 << 10
# Kept for a link that is started later, so that it knows the screen.
KEPT_OUTPUT = 1 << 20
MAX_TO_LINK = 8 << 20
FIRST_RESTART_S, MAX_RESTART_S = 1.0, 30.0
# How long output is awaited after the host has ended: another process may hold its terminal.
LAST_OUTPUT_MS = 200
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
READABLE = select.POLLIN | select.POLLHUP | select.POLLERR

# Starts a link; returns our end of its socket, or None if there is none.
StartLink = Callable[[], socket.socket | None]


class Relay:
    """One host in its terminal, from start to end."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        start_link: StartLink,
        *,
        streams: tuple[int, int] = (0, 1),
        facts: Mapping[str, Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._argv, self._environment = argv, environment
        self._start_link = start_link
        self._input, self._display = streams
        self._facts = dict(facts or {})
        self._clock = clock
        self._terminal = RawTerminal(self._input)
        self._keyboard = Keyboard()
        self._poll = select.poll()
        self._host = 0
        self._early_signals: list[int] = []
        self._exit_code: int | None = None
        self._output = 0
        self._kept = bytearray()
        self._question_tail = b""
        self._answers = 0
        self._to_host = bytearray()
        self._link: socket.socket | None = None
        self._to_link = bytearray()
        self._frames = FrameReader()
        self._has_gap = False
        self._next_link_at: float | None = 0.0  # None: there is none
        self._restart_s = FIRST_RESTART_S

    def run(self) -> int:
        """Run the host; returns its exit code, with the terminal as it was."""
        flush_before_fork()
        rows, columns = size_of(self._input)
        size = SIZE.pack(rows, columns, 0, 0)
        self._process = start_host(self._argv, self._environment, size)
        self._master = self._process.master
        self._signals, signal_writer = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(signal_writer, False)
        for fd in (self._signals, self._process.reports, self._master, self._input):
            self._poll.register(fd, READABLE)
        with _signals_to(signal_writer), _without_pauses():
            try:
                self._terminal.make_raw()
                copy_size(self._input, self._master)
                while self._exit_code is None:
                    self._step()
                self._drain()
            finally:
                self._terminal.restore()
                self._close()
        os.waitpid(self._process.leader, 0)
        return exit_code_of(self._exit_code)

    # The loop

    def _step(self) -> None:
        now = self._clock()
        if self._link is None and self._next_link_at is not None and now >= self._next_link_at:
            self._open_link(now)
        ready = dict(self._poll.poll(self._timeout_ms(now)))
        # The person first: a keystroke waits for nothing else.
        if self._input in ready:
            self._from_person()
        if (events := ready.get(self._master, 0)) & READABLE:
            self._from_host()
        if events & select.POLLOUT:
            self._flush_to_host()
        if self._link is not None and (events := ready.get(self._link.fileno(), 0)):
            self._serve_link(events)
        if self._signals in ready:
            self._on_signals()
        if self._process.reports in ready:
            self._on_reports()
        self._on_time()

    def _timeout_ms(self, now: float) -> int | None:
        waits = [0.05] if self._keyboard.is_holding or self._answers else []
        if self._link is None and self._next_link_at is not None:
            waits.append(max(0.0, self._next_link_at - now))
        return int(min(waits) * 1000) + 1 if waits else None

    def _on_time(self) -> None:
        now = self._clock()
        self._send_to_host(self._keyboard.tick(now))
        if self._answers and self._keyboard.is_between_keys(now):
            self._send_to_host(STATE_ANSWER * self._answers)
            self._answers = 0

    # The person

    def _from_person(self) -> None:
        try:
            data = os.read(self._input, READ_BYTES)
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            self._poll.unregister(self._input)
            self._signal_host(signal.SIGHUP)
            return
        before = self._keyboard.keystrokes
        self._send_to_host(self._keyboard.press(data, self._clock()))
        if self._keyboard.keystrokes != before:
            self._tell_keys()

    def _send_to_host(self, data: bytes) -> None:
        if not data:
            return
        if self._to_host:
            self._to_host += data
            return
        written = self._write_some(data)
        if written < len(data):
            self._to_host += data[written:]
            self._watch_host()

    def _write_some(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._master, data)
        except BlockingIOError:
            return 0
        except OSError:  # the host is gone; its end is reported by its leader
            return len(data)

    def _flush_to_host(self) -> None:
        del self._to_host[: self._write_some(self._to_host)]
        self._watch_host()

    def _watch_host(self) -> None:
        waits = READABLE | (select.POLLOUT if self._to_host else 0)
        with suppress(KeyError, OSError):
            self._poll.modify(self._master, waits)
            full = len(self._to_host) > MAX_TO_HOST
            self._poll.modify(self._input, 0 if full else READABLE)

    # The host

    def _from_host(self) -> bool:
        """Show what it wrote; returns whether there was anything."""
        try:
            data = os.read(self._master, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in {errno.EIO, errno.EBADF}:
                raise
            data = b""
        if not data:  # no process has its terminal open any more
            with suppress(KeyError):
                self._poll.unregister(self._master)
            return False
        _write_all(self._display, data)
        self._note_output(data)
        return True

    def _note_output(self, data: bytes) -> None:
        self._output += len(data)
        self._kept += data
        if len(self._kept) > 2 * KEPT_OUTPUT:
            del self._kept[:-KEPT_OUTPUT]
        joined = self._question_tail + data
        self._answers += joined.count(STATE_QUESTION)
        tail = joined[-(len(STATE_QUESTION) - 1) :]
        self._question_tail = b"" if tail.endswith(STATE_QUESTION) else tail
        self._tell(encoded(FrameKind.OUTPUT, data))

    def _on_reports(self) -> None:
        try:
            data = os.read(self._process.reports, READ_BYTES)
        except BlockingIOError:
            return
        if not data:  # the leader was killed, and the host with it
            self._exit_code = self._exit_code if self._exit_code is not None else -signal.SIGHUP
            self._poll.unregister(self._process.reports)
        for kind, value in REPORT.iter_unpack(data):
            if kind == STARTED:
                self._host = value
                while self._early_signals:
                    self._signal_host(self._early_signals.pop(0))
                self._tell(with_fields(FrameKind.BEGIN, host=value))
            elif kind == STOPPED:
                self._stop_with_host()
            elif kind == ENDED:
                self._exit_code = value
            elif kind == NOT_STARTED:
                text = f"accord: {self._argv[0]} cannot be started: {os.strerror(value)}\r\n"
                _write_all(self._display, text.encode())

    def _stop_with_host(self) -> None:
        """The person stopped it with the keyboard: give the terminal back until it goes on."""
        while self._from_host():
            pass
        self._terminal.restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        # Here we go on: `fg` has sent SIGCONT.
        self._terminal.make_raw()
        copy_size(self._input, self._master)
        self._signal_host(signal.SIGCONT)

    def _drain(self) -> None:
        """What the host wrote last."""
        poll = select.poll()
        poll.register(self._master, READABLE)
        while poll.poll(LAST_OUTPUT_MS) and self._from_host():
            pass

    def _signal_host(self, number: int) -> None:
        """It may be running, and have written, before its leader has said which process it is."""
        if not self._host:
            self._early_signals.append(number)
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._host, number)

    # Signals

    def _on_signals(self) -> None:
        for number in os.read(self._signals, READ_BYTES):
            if number == signal.SIGWINCH:
                rows, columns = copy_size(self._input, self._master)
                self._tell(with_fields(FrameKind.SIZE, rows=rows, columns=columns))
            elif number == signal.SIGCONT:
                self._terminal.make_raw()
            elif number == signal.SIGTSTP:
                self._signal_host(signal.SIGSTOP)
            else:
                self._signal_host(number)

    # The link

    def _open_link(self, now: float) -> None:
        self._link = self._start_link()
        self._next_link_at = now + self._restart_s
        self._restart_s = min(self._restart_s * 2, MAX_RESTART_S)
        if self._link is None:
            self._next_link_at = None
            return
        self._link.settimeout(0.0)
        self._frames, self._to_link = FrameReader(), bytearray()
        self._poll.register(self._link.fileno(), READABLE)
        kept = bytes(self._kept[-KEPT_OUTPUT:])
        rows, columns = size_of(self._input)
        begin = {
            **self._facts,
            "host": self._host,
            "rows": rows,
            "columns": columns,
            "output": self._output - len(kept),
            "sent": self._keyboard.sent,
            "terminal": saved_to_json(self._terminal.saved),
        }
        self._tell(with_fields(FrameKind.BEGIN, **begin))
        if kept:
            self._tell(encoded(FrameKind.OUTPUT, kept))
        self._tell_keys()

    def _tell_keys(self) -> None:
        keys = self._keyboard
        self._tell(with_fields(FrameKind.KEYS, count=keys.keystrokes, at=keys.typed_at))

    def _tell(self, frame: bytes) -> None:
        if self._link is None:
            return
        if len(self._to_link) + len(frame) > MAX_TO_LINK:
            self._has_gap = True
            return
        if self._has_gap:  # what was left out is said, and the screen counts as unknown
            frame = with_fields(FrameKind.GAP, output=self._output) + frame
            self._has_gap = False
        self._to_link += frame
        self._flush_to_link()

    def _flush_to_link(self) -> None:
        if self._link is None:
            return
        try:
            del self._to_link[: self._link.send(self._to_link)]
        except BlockingIOError:
            pass
        except OSError:
            self._lose_link()
            return
        waits = READABLE | (select.POLLOUT if self._to_link else 0)
        self._poll.modify(self._link.fileno(), waits)

    def _lose_link(self) -> None:
        if self._link is not None:
            self._poll.unregister(self._link.fileno())
            self._link.close()
            self._link = None
            self._send_to_host(self._keyboard.lose_link())

    def _serve_link(self, events: int) -> None:
        link = self._link
        if events & select.POLLOUT:
            self._flush_to_link()
        if not events & READABLE or link is None or self._link is not link:
            return
        try:
            data = link.recv(READ_BYTES)
            frames = list(self._frames.feed(data))
        except BlockingIOError:
            return
        except (OSError, ValueError):
            data, frames = b"", []
        for frame in frames:
            self._restart_s = FIRST_RESTART_S
            self._obey(frame)
        if not data:
            self._lose_link()

    def _obey(self, frame: Frame) -> None:
        fields = frame.fields
        wake = str(fields.get("wake", ""))
        if frame.kind is FrameKind.PASTE:
            self._look_once_more()
            request = Paste(**fields)
            typing, data = self._keyboard.paste(request, self._clock(), self._output)
        elif frame.kind is FrameKind.ENTER:
            self._look_once_more()
            seen = int(fields.get("seen_output", -1))
            typing, data = self._keyboard.enter(wake, seen, self._output)
        elif frame.kind is FrameKind.ABANDON:
            self._send_to_host(self._keyboard.abandon(wake))
            return
        else:
            return
        self._send_to_host(data)
        self._tell(with_fields(FrameKind.TYPED, wake=wake, what=typing))

    def _look_once_more(self) -> None:
        """Take in what has arrived and was not read, so that nothing is typed into it."""
        poll = select.poll()
        poll.register(self._input, READABLE)
        if poll.poll(0):
            self._from_person()
        while self._from_host():
            pass

    def _close(self) -> None:
        self._tell(with_fields(FrameKind.END, exit_code=self._exit_code))
        if self._link is not None:
            self._link.settimeout(1.0)
            with suppress(OSError):
                self._link.sendall(self._to_link)
        self._lose_link()
        for fd in (self._master, self._process.reports, self._signals):
            os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])
        except OSError:  # the terminal is gone; the end of input says so too
            return


@contextmanager
def _signals_to(writer: int) -> Iterator[None]:
    """Signals as bytes in a pipe, for as long as the host runs."""
    numbers = (*FORWARDED, signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    old_writer = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(old_writer)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writer)


@contextmanager
def _without_pauses() -> Iterator[None]:
    """The collector of cycles would delay a keystroke now and then; nothing here makes cycles."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
