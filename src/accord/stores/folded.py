"""A ledger, folded: from a cache in the git directory where that is right, else from its lines.

The cache may be deleted at any time. It is believed when the file is the very one it was made of,
or begins with the very bytes.
"""

import contextlib
import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from accord import __version__
from accord.core.dialects import pact
from accord.core.work.fold import Fold
from accord.core.work.state import Work
from accord.engine.ports import Mark
from accord.stores.ledger import FileLedger, replace_file

# Fewer lines are folded sooner than a cache is read.
WORTHWHILE = 2000
# A file that changed this shortly before the cache was written may have changed again unseen.
SETTLED_NS = 1_000_000_000


class Kept(msgspec.Struct, frozen=True):
    """What the cache holds; `seen` stays bytes until somebody needs it."""

    shape: str
    mark: Mark
    saved: int
    digest: bytes
    lines: int
    at: str
    work: Work
    seen: msgspec.Raw


class Folded(msgspec.Struct, frozen=True):
    """A ledger as it was read: its state, its end, and the lines that are no events."""

    work: Work
    mark: Mark
    at: str
    faults: tuple[pact.Fault, ...] = ()


_decode = msgspec.msgpack.Decoder(Kept).decode
_encode = msgspec.msgpack.Encoder().encode
_ids = msgspec.msgpack.Decoder(list[str]).decode


class Folder:
    """Folds a ledger as quickly as it can."""

    def __init__(
        self, ledger: FileLedger, cache: Path | None, now: Callable[[], int] = time.time_ns
    ) -> None:
        self._ledger = ledger
        self._cache = cache
        self._now = now

    def load(self) -> Folded:
        """The state of the ledger as it is now."""
        kept = self._kept()
        if kept and kept.mark == self._ledger.mark() and _settled(kept):
            return Folded(kept.work, kept.mark, kept.at)
        data, mark = self._ledger.read()
        if kept and (found := self._go_on(kept, data, mark)):
            return found
        return self._from_start(data, mark)

    def _from_start(self, data: bytes, mark: Mark) -> Folded:
        reading = pact.read(data)
        made = Fold().take(reading.entries)
        work = made.work()
        if not reading.faults:
            self._keep(data, mark, made, work)
        return Folded(work, mark, reading.last, tuple(reading.faults))

    def _go_on(self, kept: Kept, data: bytes, mark: Mark) -> Folded | None:
        """The cached state and what was appended since; None where that is not all that changed."""
        size = kept.mark.size
        if len(data) < size or _digest(data[:size]) != kept.digest:
            return None
        reading = pact.read(data[size:], kept.lines + 1, kept.at)
        if reading.faults or any(entry.at < kept.at for entry in reading.entries[:1]):
            return None
        if not reading.entries:
            return Folded(kept.work, mark, kept.at)
        made = Fold(kept.work, _ids(kept.seen), kept.at).take(reading.entries)
        work = made.work()
        if len(reading.entries) > WORTHWHILE:
            self._keep(data, mark, made, work)
        return Folded(work, mark, reading.last)

    def _kept(self) -> Kept | None:
        try:
            kept = _decode(self._cache.read_bytes()) if self._cache else None
        except (OSError, msgspec.DecodeError):
            return None
        return kept if kept and kept.shape == __version__ else None

    def _keep(self, data: bytes, mark: Mark, made: Fold, work: Work) -> None:
        lines = data.count(b"\n")
        if not self._cache or lines < WORTHWHILE:
            return
        seen = msgspec.Raw(_encode(sorted(made.seen)))
        kept = Kept(__version__, mark, self._now(), _digest(data), lines, made.at, work, seen)
        # Somewhere nobody may write, there is no cache.
        with contextlib.suppress(OSError):
            replace_file(self._cache, _encode(kept))


def _settled(kept: Kept) -> bool:
    return kept.saved - kept.mark.changed > SETTLED_NS


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=32).digest()
