"""Compares what clients of several servers were told with what the log holds afterwards.

The clients note what was acknowledged to them and what they heard. `violations` names everything
that contradicts the log, or the rules in it: a message lost or stored twice, readers with different
orders, a message of a fork heard by someone who is not in it, a sender's messages in another order
than they were sent, a gate that passed without its quorum, a vote or a grant that counted twice.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from accord.core.dialects import stored_records
from accord.core.kernel.integrity.hash_chain import genesis_hash, link_hash
from accord.core.kernel.records import Record
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.tool_proposals import ToolStarted
from accord.core.room.approval.votes import GateApproved, GatePassed
from accord.core.room.conversation.prompts import PromptSubmit
from accord.core.room.forking.forks import ForkCreated
from accord.engine.ports import Row


class Acknowledged(NamedTuple):
    """A message that the server told its sender is stored."""

    sender: str
    session: str
    id: str
    seq: int


class Heard(NamedTuple):
    """A message that a reader was sent."""

    id: str
    seq: int


class Reading(NamedTuple):
    """What one reader of a session heard, in this order; behind `joined_at` it should be all."""

    reader: str
    session: str
    heard: Sequence[Heard]
    joined_at: int = 0


class History(NamedTuple):
    """What the clients saw."""

    acknowledged: Sequence[Acknowledged]
    readings: Sequence[Reading]
    people: frozenset[str]  # who may vote
    quorum: int  # how many votes a gate needs


Streams = Mapping[str, Sequence[Record]]


def chain_violations(rows: Iterable[Row]) -> Iterator[str]:
    """Each row follows the one before it in its stream, and its hash covers both."""
    versions: dict[str, int] = defaultdict(int)
    hashes: dict[str, bytes] = {}
    for row in rows:
        versions[row.stream] += 1
        hashes[row.stream] = link_hash(hashes.get(row.stream, genesis_hash(row.stream)), row.body)
        if (row.version, row.hash) != (versions[row.stream], hashes[row.stream]):
            yield f"the chain of {row.stream} is broken at {row.version}"


def streams_of(rows: Iterable[Row]) -> dict[str, list[Record]]:
    """The records of each stream, decoded."""
    streams: dict[str, list[Record]] = defaultdict(list)
    for row in rows:
        record = stored_records.decode_record(row.stream, row.version, row.body).record
        streams[row.stream].append(record)
    return dict(streams)


def violations(history: History, streams: Streams, *, is_complete: bool = False) -> list[str]:
    """Everything that is wrong; `is_complete` if the readers have had time to hear all."""
    found = list[str]()
    for stream, records in streams.items():
        found += storage_violations(stream, records)
        found += order_violations(records)
        found += vote_violations(history, records)
        found += grant_violations(records)
    found += acknowledgement_violations(history.acknowledged, streams)
    for reading in history.readings:
        found += reading_violations(reading, streams, is_complete=is_complete)
    return found


def storage_violations(stream: str, records: Sequence[Record]) -> Iterator[str]:
    """Ids occur once; the messages of a stream are numbered without a gap; time never goes back."""
    for id, count in Counter(record.id for record in records).items():
        if count > 1:
            yield f"{id} is stored {count} times in {stream}"
    numbers = [record.seq for record in records if record.said is not None]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"the messages of {stream} are not numbered without a gap"
    times = [record.at for record in records]
    if times != sorted(times):
        yield f"time goes back in {stream}"


def acknowledgement_violations(
    acknowledged: Iterable[Acknowledged], streams: Streams
) -> Iterator[str]:
    """What was acknowledged is stored, in the place that was named."""
    places = {
        (stream, record.id): record for stream, records in streams.items() for record in records
    }
    for each in acknowledged:
        record = places.get((f"room/{each.session}", each.id))
        if record is None:
            yield f"{each.id} of {each.sender} was acknowledged and is lost"
        elif (record.seq, record.sender) != (each.seq, each.sender):
            yield f"{each.id} of {each.sender} was acknowledged at {each.seq}, not {record.seq}"


# The texts of a workload: who sends, and a number that grows with each message.
NUMBERED_TEXT = re.compile(r"\w+ (\d+)")


def order_violations(records: Iterable[Record]) -> Iterator[str]:
    """The messages of one sender are stored in the order in which they were sent."""
    latest: dict[str, int] = defaultdict(int)
    for record in records:
        said = record.said
        text = NUMBERED_TEXT.fullmatch(said.content) if isinstance(said, PromptSubmit) else None
        if text is None:
            continue
        if int(text[1]) < latest[record.sender]:
            yield f"{record.sender}'s message {text[1]} is stored behind a later one"
        latest[record.sender] = int(text[1])


def members_of_forks(records: Iterable[Record]) -> dict[str, frozenset[str]]:
    """Who may hear the messages of each fork."""
    return {
        record.fork: frozenset(record.event.members)
        for record in records
        if isinstance(record.event, ForkCreated) and record.fork is not None
    }


def reading_violations(reading: Reading, streams: Streams, *, is_complete: bool) -> Iterator[str]:
    """Readers hear the log's order, each message once, and in the end all that is for them."""
    records = streams.get(f"room/{reading.session}", [])
    forks = members_of_forks(records)
    places = {record.id: record.seq for record in records}
    numbered = [heard for heard in reading.heard if heard.seq]
    for heard in numbered:
        if places.get(heard.id) != heard.seq:
            yield f"{reading.reader} heard {heard.id} at {heard.seq}, which the log does not have"
    numbers = [heard.seq for heard in numbered]
    if numbers != sorted(set(numbers)):
        yield f"{reading.reader} heard messages twice or in another order than the log's"
    last = None if is_complete else max(numbers, default=0)
    heard_ids = {heard.id for heard in numbered}
    for record in records:
        is_inside = record.fork is None or reading.reader in forks.get(record.fork, ())
        is_for_reader = record.said is not None and record.to is None and is_inside
        is_due = record.seq > reading.joined_at and (last is None or record.seq <= last)
        if is_for_reader and is_due and record.id not in heard_ids:
            yield f"{reading.reader} never heard {record.id} ({record.seq})"
        is_hidden = not is_inside and not record.event.room_wide
        if is_hidden and record.id in heard_ids:
            yield f"{reading.reader} heard {record.id} of a fork of others"


def vote_violations(history: History, records: Iterable[Record]) -> Iterator[str]:
    """No gate passes without its quorum of people, each of whom counts once."""
    votes: dict[str, list[str]] = defaultdict(list)
    for record in records:
        event = record.event
        if isinstance(event, GateApproved):
            if event.seat not in history.people or event.seat != record.actor:
                yield f"{record.actor} voted for {event.gate} as {event.seat}"
            votes[event.gate].append(event.seat)
        elif isinstance(event, GatePassed):
            counted = set(event.approved_by)
            if len(counted) < len(event.approved_by):
                yield f"a vote counts twice in {event.gate}: {event.approved_by}"
            if len(counted) < history.quorum or not counted <= set(votes[event.gate]):
                yield f"{event.gate} passed with the votes of {sorted(counted)}"


def grant_violations(records: Iterable[Record]) -> Iterator[str]:
    """A grant is used once, after it was given, for the proposal it was given for."""
    given: dict[str, str] = {}
    used = set[str]()
    for record in records:
        event = record.event
        if isinstance(event, ToolCleared) and event.said.grant is not None:
            if event.said.tool_proposal in given.values():
                yield f"{event.said.tool_proposal} was granted twice"
            given[event.said.grant.id] = event.said.tool_proposal
        elif isinstance(event, ToolStarted):
            grant = event.said.grant.id if event.said.grant else ""
            if given.get(grant) != event.said.tool_proposal:
                yield f"{event.said.tool_proposal} ran without a grant"
            if grant in used:
                yield f"the grant {grant} was used twice"
            used.add(grant)
