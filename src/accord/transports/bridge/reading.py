"""Reading for the bridge: stretches of rooms, and what was linked in repositories."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from accord.core.kernel.log import Instant, Record
from accord.core.kernel.refusal import Refused, Why
from accord.core.provenance.commits import CommitLinked, link_id
from accord.core.provenance.decision import DecisionCommit, Position
from accord.core.views.chain import Drafted, drafted
from accord.core.views.stretch import Stretch, cited, decision_id, heard
from accord.engine import proven
from accord.engine.ports import Codec, EventLog, Row

STEP = 500
# Further back nobody follows a hook's question; a commit every so often keeps it short.
MOST_ROWS = 50_000
ROUNDS = 3


class Linked(NamedTuple):
    """A commit with its decision, and where the log has it."""

    version: int
    at: Instant
    decision: DecisionCommit
    masked: Mapping[str, str] = {}


class Source(Protocol):
    """A log and how to read it."""

    @property
    def events(self) -> EventLog:
        """The log."""
        ...

    @property
    def codec(self) -> Codec:
        """How records are read."""
        ...


class Reader:
    """Every answer is read from the log, row by row proven."""

    def __init__(self, engine: Source) -> None:
        self.engine = engine

    async def draft(self, stretch: Stretch, wanted: str = "") -> Drafted | None:
        """The decision behind what was said since; `wanted`: the one of that id, if it is there."""
        hashes: dict[str, Row] = {}
        records: list[Record] = []
        async for row in self.rows(f"room/{stretch.room.id}", stretch.since):
            hashes[row.id] = row
            records.append(self.record(row))
            if len(records) > MOST_ROWS:
                detail = "Too much was said since the last commit to be one decision"
                raise Refused(Why.TOO_LARGE, detail)
        told = heard(stretch, records)
        if wanted:
            told = upto(stretch, told, wanted)
        if not told:
            return None
        found = drafted(stretch, told, await self.earlier(stretch.room.id, told))
        return found and placed(found, hashes, told)

    async def earlier(self, session: str, told: Sequence[Record]) -> Mapping[str, Record]:
        """What these cite and was said before them."""
        here = {record.id for record in told}
        found: dict[str, Record] = {}
        fresh: Sequence[Record] = told
        for _ in range(ROUNDS):
            missing = cited(fresh) - here - found.keys()
            if not missing:
                break
            more = await self.find(session, sorted(missing))
            fresh = list(more.values())
            found |= more
        return found

    async def find(self, session: str, ids: Sequence[str]) -> dict[str, Record]:
        """Records of a session by their ids."""
        rows = await proven.find(self.engine.events, f"room/{session}", ids)
        return {row.id: self.record(row) for row in rows}

    async def link(self, repo: str, sha: str) -> Linked | None:
        """The link of a commit."""
        rows = await proven.find(self.engine.events, f"repo/{repo}", [link_id(sha)])
        return next(filter(None, map(self.linked_in, rows)), None)

    async def decided(self, repo: str, decision: str) -> Linked | None:
        """A decision that some commit carries, or carried before it was rewritten."""
        async for row in self.rows(f"repo/{repo}", 0):
            link = self.linked_in(row)
            if link is not None and link.decision.id == decision:
                return link
        return None

    async def linked(
        self, repo: str, after: int, limit: int, session: str | None = None
    ) -> list[Linked]:
        """Links behind a place, oldest first."""
        found: list[Linked] = []
        async for row in self.rows(f"repo/{repo}", after):
            link = self.linked_in(row)
            if link is not None and session in (None, link.decision.pvp_session):
                found.append(link)
            if len(found) == limit:
                break
        return found

    def linked_in(self, row: Row) -> Linked | None:
        """The link in a row, if it is one."""
        record = self.record(row)
        if not isinstance(event := record.event, CommitLinked):
            return None
        return Linked(row.version, record.at, event.decision, event.masked or {})

    def record(self, row: Row) -> Record:
        """What stands in a row."""
        return self.engine.codec.unseal(row.stream, row.version, row.body).record

    async def rows(self, stream: str, after: int) -> AsyncIterator[Row]:
        """Every row behind this version; a record's `seq` is never above its version."""
        if after and not (await self.engine.events.streams(stream)).get(stream, 0) > after:
            return
        while page := await proven.read(self.engine.events, stream, after, STEP):
            for row in page:
                yield row
            after = page[-1].version


def upto(stretch: Stretch, told: list[Record], decision: str) -> list[Record]:
    """As far as the decision of that id went; nothing if none of this was it."""
    for place, record in enumerate(told):
        if record.seq and decision_id(stretch, record) == decision:
            after = told[place + 1 :]
            quiet = next((n for n, each in enumerate(after) if each.seq), len(after))
            return told[: place + 1 + quiet]
    return []


def placed(found: Drafted, rows: Mapping[str, Row], told: Sequence[Record]) -> Drafted:
    """With its place on the hash chain."""
    last = rows[told[-1].id]
    position = Position(stream=last.stream, version=last.version, hash=last.hash.hex())
    return found._replace(decision=replace(found.decision, position=position))
