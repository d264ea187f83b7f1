"""One ledger file on this machine: detects changes and reads its events."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from accord.core.kernel.refusal import Refused
from accord.core.work.format.mirror_lines import MAX_FAULTS, digest_prefix, parse_sources
from accord.core.work.mirror_order import SourceEvent
from accord.pact.ledger import DEFAULT_MAX_LOG_BYTES, FileLedger, LedgerMark
from accord.pact.mirror.background_call import BackgroundCall

LOG_FILE = "log.jsonl"
TOO_LARGE_NOTICE = "The log is larger than {most} MiB, the limit pact_log"
NOT_A_LOG_NOTICE = f"The log has more than {MAX_FAULTS} lines that are not events"
UNREADABLE_NOTICE = "The log cannot be read, or was removed"
NO_ANSWER_NOTICE = "The log is still being read, or its disk does not respond"


class LedgerStatus(NamedTuple):
    """Status of a ledger. `trouble` is why it could not be read; known events are kept then.

    `faults` are the numbers of the lines that are not events.
    """

    mark: LedgerMark = LedgerMark()
    faults: tuple[int, ...] = ()
    trouble: str = ""


class LedgerContent(NamedTuple):
    """What was read: the complete lines (size, hash, count, faults), and the digest of each event.

    If the file still begins with these lines, only what follows them is parsed.
    """

    size: int = 0
    hash: bytes = sha256().digest()
    lines: int = 0
    faults: tuple[int, ...] = ()
    digests: Mapping[str, bytes] = {}


class RefreshResult(NamedTuple):
    """Result of a refresh: whether the file was read, and the events found."""

    read: bool = False
    events: Sequence[SourceEvent] = ()


class LedgerFile:
    """A directory with a ledger, which is only ever read."""

    def __init__(self, directory: str, most: int = DEFAULT_MAX_LOG_BYTES) -> None:
        path = Path(directory)
        self._max_bytes = most
        self._ledger = FileLedger(path / LOG_FILE, path, most=lambda: most)
        self.status = LedgerStatus()
        self.content = LedgerContent()
        self.background = BackgroundCall[RefreshResult]()
        self.is_silent = False  # the last refresh has not returned yet
        self.was_reread = False  # parsed again from the beginning; reset by the reader of the flag

    @property
    def _has_content(self) -> bool:
        return bool(self.content.size or self.content.digests)

    @property
    def trouble(self) -> str:
        """Why the known events may be out of date; empty if they are not."""
        never_read = "" if self._has_content else UNREADABLE_NOTICE
        return NO_ANSWER_NOTICE if self.is_silent else self.status.trouble or never_read

    @property
    def blind_reason(self) -> str:
        """Why unread events may exist; a removed log has none."""
        if self.is_silent and not self._has_content:
            return NO_ANSWER_NOTICE
        return "" if self.status.trouble == UNREADABLE_NOTICE else self.status.trouble

    def refresh(self) -> RefreshResult:
        """Read the file if it changed."""
        if self.has_changed():
            return RefreshResult(read=True, events=self.read())
        return RefreshResult()

    def has_changed(self) -> bool:
        """Whether the file's mark changed since it was last read; does not open the file."""
        return self._current_mark() != self.status.mark

    def read(self) -> Sequence[SourceEvent]:
        """The events that are new in the file; all of them if it does not begin as before.

        An empty or missing file does not mean a pact without tasks: git replaces files one by one
        on a branch switch, and removing a log does not accept its tasks.
        """
        mark = self._current_mark()
        if mark.size > self._max_bytes:
            return self._set_trouble(mark, TOO_LARGE_NOTICE.format(most=self._max_bytes >> 20))
        try:
            data, mark = self._ledger.read()
        except (OSError, ValueError, Refused):
            return self._set_trouble(mark, UNREADABLE_NOTICE)
        if not mark.size:
            return self._set_trouble(mark, UNREADABLE_NOTICE)
        return self._parse(data, mark)

    def _parse(self, data: bytes, mark: LedgerMark) -> Sequence[SourceEvent]:
        known, view = self.content, memoryview(data)
        digest = sha256(view[: known.size])
        is_same = len(data) >= known.size and digest.digest() == known.hash
        if not is_same:
            known, digest = LedgerContent(), sha256()
        parsed = parse_sources(data[known.size :], known.lines + 1, known.digests)
        faults = known.faults + tuple(fault.line for fault in parsed.faults)
        if len(faults) > MAX_FAULTS:
            return self._set_trouble(mark, NOT_A_LOG_NOTICE)
        # The last line is parsed again if it has no line break yet.
        size, lines = data.rfind(b"\n") + 1, data.count(b"\n")
        digest.update(view[known.size : size])
        self.content = LedgerContent(
            size,
            digest.digest(),
            lines,
            tuple(line for line in faults if line <= lines),
            {**known.digests, **{event.key: digest_prefix(event) for event in parsed.events}},
        )
        self.status = LedgerStatus(mark, faults)
        self.was_reread = self.was_reread or not is_same
        return parsed.events

    def _set_trouble(self, mark: LedgerMark, trouble: str) -> Sequence[SourceEvent]:
        self.status = self.status._replace(mark=mark, trouble=trouble)
        return ()

    def _current_mark(self) -> LedgerMark:
        try:
            return self._ledger.mark()
        except (OSError, ValueError):  # ValueError for an invalid path
            return LedgerMark()
