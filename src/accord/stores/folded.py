"""A ledger, folded: from a cache in the git directory where that is right, else from its lines.

The cache may be deleted at any time. It is believed when the file begins with the very bytes that
it was made of.
"""

import contextlib
import hashlib
from pathlib import Path

import msgspec

from accord import __version__
from accord.core.dialects import pact, pactfold
from accord.core.kernel.refusal import Refused
from accord.core.work.event import Entry
from accord.core.work.fold import Fold
from accord.core.work.state import Work
from accord.engine.ports import Mark
from accord.stores.ledger import FileLedger, contents, replace_file

# Fewer lines are folded sooner than a cache is read.
WORTHWHILE = 2000
LARGEST_CACHE = 256 << 20


class Part(msgspec.Struct, frozen=True):
    """The beginning of a ledger, of which a cache was made."""

    shape: str
    size: int
    digest: bytes
    lines: int
    at: str


class Kept(Part, frozen=True):
    """What the cache holds; `work` and `seen` stay bytes until somebody needs them."""

    work: msgspec.Raw
    seen: msgspec.Raw


class Keeping(Part, frozen=True):
    """The same as it is written, all at once."""

    work: Work
    seen: list[str]


class Shown(msgspec.Struct, frozen=True):
    """That the ledger with this mark renders to the file with this digest."""

    shape: str
    mark: Mark
    digest: bytes


class Folded(msgspec.Struct, frozen=True):
    """A ledger as it was read: its state, its end, and the lines that are no events."""

    work: Work
    mark: Mark
    at: str
    faults: tuple[pact.Fault, ...] = ()


_decode = msgspec.msgpack.Decoder(Kept).decode
_encode = msgspec.msgpack.Encoder().encode
_ids = msgspec.msgpack.Decoder(list[str]).decode
_work = msgspec.msgpack.Decoder(Work).decode
_shown = msgspec.msgpack.Decoder(Shown).decode


class Folder:
    """Folds a ledger as quickly as it can."""

    def __init__(self, ledger: FileLedger, cache: Path | None) -> None:
        self._ledger = ledger
        self._cache = cache
        self._held: pactfold.Whole | None = None

    def load(self, *, fresh: bool = False) -> Folded:
        """The state of the ledger as it is now; `fresh` believes no cache."""
        if fresh:
            self._forget()
        kept = self._kept()
        data, mark = self._ledger.read()
        if kept and (found := self._go_on(kept, data, mark)):
            return found
        return self._from_start(data, mark)

    def _from_start(self, data: bytes, mark: Mark) -> Folded:
        # Held while we are: a command that ends leaves it to the system, which frees it at once.
        whole = self._held = pactfold.folded(data)
        work = whole.fold.work()
        if not whole.faults:
            self._keep(data, whole.lines, whole.fold, work)
        return Folded(work, mark, whole.last, tuple(whole.faults))

    def _go_on(self, kept: Kept, data: bytes, mark: Mark) -> Folded | None:
        """The cached state and what was appended since; None where that is not all that changed."""
        if len(data) < kept.size or digest(memoryview(data)[: kept.size]) != kept.digest:
            return None
        reading = pact.read(data[kept.size :], kept.lines + 1, kept.at)
        if reading.faults or any(entry.at < kept.at for entry in reading.entries[:1]):
            return None
        # What has no time has that of the line before it, which the cache does not know.
        first = min(reading.entries, key=_line, default=None)
        if first and not pact.instant(first.event.ts):
            return None
        work = _work(kept.work)
        if not reading.entries:
            return Folded(work, mark, kept.at)
        made = Fold(work, _ids(kept.seen), kept.at).take(reading.entries)
        work = made.work()
        if len(reading.entries) > WORTHWHILE:
            self._keep(data, reading.next - 1, made, work)
        return Folded(work, mark, reading.last)

    def _kept(self) -> Kept | None:
        try:
            kept = _decode(contents(self._cache, LARGEST_CACHE)) if self._cache else None
        except (OSError, Refused, msgspec.DecodeError):
            return None
        return kept if kept and kept.shape == __version__ else None

    def _forget(self) -> None:
        if self._cache:
            with contextlib.suppress(OSError):
                self._cache.unlink()

    def _keep(self, data: bytes, lines: int, made: Fold, work: Work) -> None:
        if not self._cache or lines < WORTHWHILE:
            return
        begin = (__version__, len(data), digest(data), lines, made.at)
        _save(self._cache, Keeping(*begin, work, list(made.seen)))


class Shelf:
    """Remembers which rendered file belongs to which ledger, so that a look at it is quick."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def keep(self, mark: Mark, rendered: bytes) -> None:
        """This ledger renders to this."""
        if self._path:
            _save(self._path, Shown(__version__, mark, digest(rendered)))

    def knows(self, mark: Mark, rendered: bytes) -> bool:
        """Whether it does; a no may only mean that nobody remembers."""
        try:
            shown = _shown(contents(self._path, LARGEST_CACHE)) if self._path else None
        except (OSError, Refused, msgspec.DecodeError):
            return False
        return shown == Shown(__version__, mark, digest(rendered))


def _save(path: Path, content: Keeping | Shown) -> None:
    # Somewhere nobody may write, there is no cache.
    with contextlib.suppress(OSError):
        replace_file(path, _encode(content))


def _line(entry: Entry) -> int:
    return entry.line


def digest(data: bytes | memoryview) -> bytes:
    """What tells two contents apart."""
    return hashlib.sha256(data).digest()
