"""The proof that nobody changed the log: hashes that follow from each other, and signed heads."""

from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from accord.core.kernel.chain import Head, genesis, link
from accord.core.kernel.cuts import Cut
from accord.core.kernel.log import Instant
from accord.core.people.keys import KeyRotated
from accord.engine import proven
from accord.engine.ports import EventLog, Row, StoreError
from accord.reading import rows, unsealed

PEOPLE = "people/"

# Whatever a changed byte can make of a stored record when it is read back.
UNREADABLE = (msgspec.MsgspecError, LookupError, ValueError, TypeError, RecursionError)


class Mark(msgspec.Struct, frozen=True):
    """A head somebody noted earlier, to compare with."""

    version: int
    hash: str


class Fault(Exception):  # noqa: N818 - a finding, not a failure of ours
    """The first place at which a stream does not hold."""

    def __init__(self, version: int, what: str) -> None:
        super().__init__(what)
        self.version = version
        self.what = what


class Finding(msgspec.Struct, frozen=True):
    """How far one stream holds. `version` and `hash` are its head, for somebody to note.

    `signed` is the newest version that a signature covers; `vouched` says whether that key, and
    that of the cut if there is one, lies in the key files, and not only in the log itself.
    """

    stream: str
    version: int
    hash: str
    signed: int = 0
    signed_at: Instant | None = None
    vouched: bool = False
    bad_version: int | None = None
    problem: str | None = None
    removed: int = 0
    removed_at: Instant | None = None
    removed_by: str | None = None
    removed_why: str | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.problem is None

    @property
    def unsigned(self) -> int:
        """How many records are newer than the newest signature."""
        return self.version - self.signed


class Signatures(msgspec.Struct, frozen=True):
    """How many records the signatures cover; `counted` where they say themselves how many."""

    records: int
    problem: str | None = None
    counted: bool = False

    @property
    def uncounted(self) -> bool:
        """Whether all are from before they were counted, so that a missing one would not show."""
        return self.records > 0 and not self.counted and self.problem is None


class Keys(msgspec.Struct, frozen=True):
    """Public keys by id: from the key files, and as the log records them."""

    filed: Mapping[str, Ed25519PublicKey] = {}
    recorded: Mapping[str, Ed25519PublicKey] = {}

    def find(self, kid: str) -> Ed25519PublicKey | None:
        """The key of this id; a file is believed before the log."""
        return self.filed.get(kid) or self.recorded.get(kid)


@runtime_checkable
class Checked(Protocol):
    """A store that can look at itself as a whole."""

    async def check(self) -> list[str]:
        """What is wrong; empty when nothing is."""
        ...


async def check_store(events: EventLog) -> list[str]:
    """What the store finds wrong with itself, beyond what any stream shows."""
    return await events.check() if isinstance(events, Checked) else []


async def check_signatures(events: EventLog, keys: Keys) -> Signatures:
    """Whether those are all there that were once made, whatever stream they are of."""
    covered = await events.covered()
    if (claim := covered.claim) is None:
        return Signatures(covered.records)
    try:
        _genuine(keys, claim.version, claim.key, claim.signature, claim.claim())
    except Fault as fault:
        return Signatures(covered.records, f"record {claim.version} of {claim.stream} {fault.what}")
    except (AttributeError, *UNREADABLE) as error:
        return Signatures(covered.records, f"a signature cannot be read ({error})")
    gone = claim.total - covered.records
    if gone <= 0:
        return Signatures(covered.records, counted=True)
    was = "1 record was" if gone == 1 else f"{gone} records were"
    problem = f"{was} signed once, and the signatures are gone; look at what is not yet signed"
    return Signatures(covered.records, problem, counted=True)


async def check_each(events: EventLog, keys: Keys) -> AsyncIterator[Finding]:
    """Every stream of the log, with these keys."""
    for stream in await events.streams():
        yield await check_stream(events, stream, keys)


async def check_stream(
    events: EventLog, stream: str, keys: Keys, expected: Mark | None = None
) -> Finding:
    """One stream from its first record to its last, and its signatures."""
    finding, cut = await _checked(events, stream, keys, expected)
    # What was removed while we read was no fault.
    while not finding.holds and await proven.cut(events, stream) != cut:
        finding, cut = await _checked(events, stream, keys, expected)
    return finding


async def _checked(
    events: EventLog, stream: str, keys: Keys, expected: Mark | None
) -> tuple[Finding, Cut | None]:
    cut = await proven.cut(events, stream)
    return await _walked(events, Chain(stream, keys, expected), cut), cut


async def _walked(events: EventLog, chain: "Chain", cut: Cut | None) -> Finding:
    try:
        chain.begin(cut)
        # Heads first: while a server appends, rows read later reach at least as far.
        chain.take(await events.heads(chain.stream))
        async for row in rows(events, chain.stream):
            chain.follow(row)
        chain.end()
    except Fault as fault:
        return chain.finding(fault)
    except (StoreError, *UNREADABLE) as error:
        return chain.finding(Fault(chain.version + 1, f"cannot be read ({error})"))
    return chain.finding()


class Chain:
    """Walks along one stream and raises Fault where it does not hold."""

    def __init__(self, stream: str, keys: Keys, expected: Mark | None = None) -> None:
        self.stream = stream
        self.version = 0
        self.hash = genesis(stream)
        self.keys = keys
        self.expected = expected
        self.newest: Head | None = None
        self.cut: Cut | None = None
        self._leftover: Row | None = None
        self._heads: dict[int, list[Head]] = {}

    def begin(self, cut: Cut | None) -> None:
        """Start behind what was removed, if whoever removed it could sign."""
        if cut is None:
            return
        if cut.version < 1 or cut.stream != self.stream:
            raise Fault(1, f"has a cut of {cut.stream} {cut.version} beside it")
        _genuine(self.keys, cut.version, cut.key, cut.signature, cut.claim())
        if self.expected and self.expected.version < cut.version:
            raise Fault(self.expected.version, "was removed by retention and cannot be compared")
        self.cut, self.version, self.hash = cut, cut.version, cut.hash
        if self.expected and self.expected.version == cut.version:
            self._expect(self.expected)

    def take(self, heads: Iterable[Head]) -> None:
        """Signed heads, to be compared with the records they speak of."""
        for head in heads:
            if head.version < 1 or head.stream != self.stream:
                raise Fault(1, f"has a signature for {head.stream} {head.version} beside it")
            if self.cut and head.version < self.cut.version:
                _genuine(self.keys, head.version, head.key, head.signature, head.claim())
            elif self.cut and head.version == self.cut.version:
                self._compare(head)
            else:
                self._heads.setdefault(head.version, []).append(head)

    def follow(self, row: Row) -> None:
        """One more record; it must be the next, whole, and as it was signed."""
        if self.cut and row.version <= self.cut.version:
            self._leave(row, self.cut)
            return
        if row.version != self.version + 1:
            raise Fault(self.version + 1, "is missing")
        after = link(self.hash, row.body)
        if after != row.hash:
            raise Fault(row.version, "does not follow from the one before it")
        self._read(row)
        self.version, self.hash = row.version, after
        for head in self._heads.pop(row.version, ()):
            self._compare(head)
        if self.expected and self.expected.version == row.version:
            self._expect(self.expected)

    def end(self) -> None:
        """No signature and no note speaks of more than there is."""
        beyond = list(self._heads)
        if self.expected and self.expected.version > self.version:
            beyond.append(self.expected.version)
        if beyond:
            raise Fault(self.version + 1, f"is missing: the log once reached {max(beyond)}")

    def finding(self, fault: Fault | None = None) -> Finding:
        """What was found."""
        newest = self.newest
        signed = [each for each in (newest, self.cut) if each is not None]
        return Finding(
            self.stream,
            self.version,
            self.hash.hex(),
            newest.version if newest else 0,
            newest.at if newest else None,
            bool(signed) and all(each.key in self.keys.filed for each in signed),
            fault.version if fault else None,
            fault.what if fault else None,
            *((cut.version, cut.at, cut.by, cut.reason) if (cut := self.cut) else ()),
        )

    def _leave(self, row: Row, cut: Cut) -> None:
        """A row that is still to be removed; those before it are gone already."""
        before, self._leftover = self._leftover, row
        next_to_it = before is not None and before.version + 1 == row.version
        if before and next_to_it and link(before.hash, row.body) != row.hash:
            raise Fault(row.version, "does not follow from the one before it")
        self._read(row)
        if row.version == cut.version and row.hash != cut.hash:
            raise Fault(row.version, "is not what was cut")

    def _read(self, row: Row) -> None:
        try:
            record = unsealed(row).record
        except UNREADABLE as error:
            raise Fault(row.version, f"cannot be read ({error})") from None
        if record.id != row.id:
            raise Fault(row.version, f"is filed as {row.id}, but it is {record.id}")

    def _compare(self, head: Head) -> None:
        if head.hash != self.hash:
            raise Fault(head.version, "is not what was signed")
        _genuine(self.keys, head.version, head.key, head.signature, head.claim())
        self.newest = head

    def _expect(self, mark: Mark) -> None:
        if self.hash.hex() != mark.hash.lower():
            raise Fault(mark.version, "is not the one that was noted")


def _genuine(keys: Keys, version: int, kid: str, signature: bytes, claim: bytes) -> None:
    key = keys.find(kid)
    if key is None:
        raise Fault(version, f"is signed with {kid}, a key that nobody knows")
    try:
        key.verify(signature, claim)
    except InvalidSignature:
        raise Fault(version, "has a signature that is not genuine") from None


async def gather(events: EventLog, folder: Path) -> Keys:
    """The keys one can check signatures with."""
    return Keys(dict(_filed(folder)), await recorded(events))


async def recorded(events: EventLog) -> dict[str, Ed25519PublicKey]:
    """The public keys that the log itself names."""
    found: dict[str, Ed25519PublicKey] = {}
    for stream in await events.streams(PEOPLE):
        async for kid, pem in _rotations(events, stream):
            if key := load(pem.encode()):
                found[kid] = key
    return found


async def _rotations(events: EventLog, stream: str) -> AsyncIterator[tuple[str, str]]:
    try:
        async for row in rows(events, stream):
            event = unsealed(row).record.event
            if isinstance(event, KeyRotated):
                yield event.key.kid, event.key.public
    except (StoreError, *UNREADABLE):
        return  # what is wrong with the stream is found when its turn comes


def _filed(folder: Path) -> Iterable[tuple[str, Ed25519PublicKey]]:
    for file in sorted(folder.glob("*.pub")):
        if key := load(file.read_bytes()):
            yield file.stem, key


def load(pem: bytes) -> Ed25519PublicKey | None:
    """The key in these bytes, if they hold one of ours."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None
