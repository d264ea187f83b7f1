"""Reads the files that a killed server left, from round to round."""

import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, Protocol

from accord.client import AcceptedMessage, Session
from accord.core.dialects import stored_records
from accord.core.kernel.integrity.hash_chain import genesis_hash, link_hash
from accord.engine.ports import Row

ROWS = """
    SELECT r.pos, s.name, r.version, r.id, r.body, r.hash
    FROM records r JOIN streams s ON s.key = r.stream WHERE r.pos > ? ORDER BY r.pos
"""


class StoredMessage(NamedTuple):
    """The part of a stored envelope that is looked at."""

    id: str
    seq: int
    kind: str
    text: str


class Acknowledging(Protocol):
    """Somebody who notes what was acknowledged."""

    session: Session
    acknowledged: list[AcceptedMessage]


class StreamContent:
    """One stream, as far as it was read."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.version = 0
        self.at = 0
        self.hash = genesis_hash(stream)
        self.said: list[StoredMessage] = []
        self.places: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def follow(self, row: Row) -> None:
        """The next row: in its place, sealed to the one before, never earlier, said once."""
        record = stored_records.decode_record(row.stream, row.version, row.body).record
        self.version, self.hash = self.version + 1, link_hash(self.hash, row.body)
        assert (row.version, row.hash, row.id) == (self.version, self.hash, record.id)
        assert record.at >= self.at, "time went back"
        self.at = record.at
        if record.said is None:
            return
        assert record.seq == len(self.said) + 1, "a number is missing"
        assert record.id not in self.places, "something is there twice"
        text = getattr(record.said, "content", "") or getattr(record.said, "text", "") or ""
        self.places[record.id] = record.seq
        self.said.append(StoredMessage(record.id, record.seq, type(record.said).__name__, text))
        self._count(text)

    def _count(self, text: str) -> None:
        """What one speaker says comes in the order it was said."""
        speaker, colon, number = text.partition(":")
        if colon:
            assert int(number) == self.counts.get(speaker, 0), "out of order"
            self.counts[speaker] = int(number) + 1


class StoredLog:
    """Every stream, read from a copy of the files as the dead process left them."""

    def __init__(self, home: Path, scratch: Path) -> None:
        self._home = home
        self._scratch = scratch
        self._position = 0
        self._checked: dict[int, int] = {}
        self.pages: dict[str, StreamContent] = {}

    def read(self, *, whole: bool = False) -> None:
        """Follow what is new; `whole` has SQLite look at everything too.

        Only what SQLite would write to is copied: a long log costs no more than a short one.
        """
        self._scratch.mkdir()
        database = self._scratch / "accord.db"
        try:
            database.hardlink_to(self._home / "accord.db")
        except OSError:  # it lies on another disk
            shutil.copy(self._home / "accord.db", database)
        if (wal := self._home / "accord.db-wal").exists():
            shutil.copy(wal, self._scratch)
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            if whole:
                assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            for position, stream, *rest in db.execute(ROWS, (self._position,)):
                assert position == self._position + 1, "a position is missing"
                self._position = position
                self.pages.setdefault(stream, StreamContent(stream)).follow(Row(stream, *rest))
        shutil.rmtree(self._scratch)

    def check(self, speakers: Iterable[Acknowledging]) -> None:
        """What anybody was told is stored is there, in the place they were told."""
        for speaker in speakers:
            places = self.of(speaker.session.id).places
            start = self._checked.get(id(speaker), 0)
            for accepted in speaker.acknowledged[start:]:
                assert places.get(accepted.id) == accepted.seq, "what was acknowledged is lost"
            self._checked[id(speaker)] = len(speaker.acknowledged)

    @property
    def size(self) -> int:
        """How many records were read."""
        return self._position

    def of(self, session: str) -> StreamContent:
        """One session."""
        return self.pages[f"room/{session}"]

    def rooms(self) -> Sequence[StreamContent]:
        """All of them."""
        return [page for stream, page in self.pages.items() if stream.startswith("room/")]
