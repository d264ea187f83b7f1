"""Verification: hash chains and signed heads show whether the log was changed."""

from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from accord.core.kernel.integrity.hash_chain import SignedHead, genesis_hash, link_hash
from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.core.kernel.messages import Instant
from accord.core.people.signing_keys import KeyRotated
from accord.engine.ports import DamagedError, EventLog, Row, StoreError
from accord.engine.streams import verified_reads
from accord.engine.streams.verified_reads import read_rows
from accord.operations.local_log import decode_row

PEOPLE_PREFIX = "people/"

# Everything that decoding a changed record can raise.
# A decoder's message about damaged bytes is of no help, and may quote them.
# Nor is a store's advice to run the very command that asks.
UNREADABLE_PLACE = "cannot be read, because the store is damaged there"
UNREADABLE_NOW = "cannot be read, because the store failed; check its disk or server, and try again"
UNREADABLE = "is not in a form that Accord writes"
DECODE_ERRORS = (msgspec.MsgspecError, LookupError, ValueError, TypeError, RecursionError)


class NotedHead(msgspec.Struct, frozen=True):
    """A head that the operator noted earlier, to compare with."""

    version: int
    hash: str


class ChainFault(Exception):  # noqa: N818 - a finding, not a failure of ours
    """The first record at which verification fails."""

    def __init__(self, version: int, what: str) -> None:
        super().__init__(what)
        self.version = version
        self.problem = what


class StreamReport(msgspec.Struct, frozen=True):
    """Result for one stream. `version` and `hash` are its head, for the operator to note.

    `signed` is the newest version that a signature covers; `vouched` says whether that key, and the
    key of the cut if there is one, is in the key files and not only in the log itself.
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
        return self.problem is None

    @property
    def unsigned(self) -> int:
        """Number of records newer than the newest signature."""
        return self.version - self.signed


class SignatureReport(msgspec.Struct, frozen=True):
    """How many records signatures cover; `counted` if the signatures state their number."""

    records: int
    problem: str | None = None
    counted: bool = False

    @property
    def uncounted(self) -> bool:
        """Whether no signature states a count, so that a deleted one would not be noticed."""
        return self.records > 0 and not self.counted and self.problem is None


class PublicKeys(msgspec.Struct, frozen=True):
    """Public keys by id: from the key files, and as the log records them."""

    from_files: Mapping[str, Ed25519PublicKey] = {}
    from_log: Mapping[str, Ed25519PublicKey] = {}

    def find(self, kid: str) -> Ed25519PublicKey | None:
        """The key with this id; key files take precedence over the log."""
        return self.from_files.get(kid) or self.from_log.get(kid)


@runtime_checkable
class SelfCheckingStore(Protocol):
    """A store that can verify itself as a whole."""

    async def check(self) -> list[str]:
        """Problems found; empty if there are none."""
        ...


async def check_store(events: EventLog) -> list[str]:
    """Problems of the store as a whole, which no single stream shows."""
    return await events.check() if isinstance(events, SelfCheckingStore) else []


async def check_signatures(events: EventLog, keys: PublicKeys) -> SignatureReport:
    """Whether any signature that was ever made is missing."""
    covered = await events.signature_coverage()
    if (claim := covered.head) is None:
        return SignatureReport(covered.records)
    try:
        _check_signature(keys, claim.version, claim.key, claim.signature, claim.signed_bytes())
    except ChainFault as fault:
        return SignatureReport(
            covered.records, f"record {claim.version} of {claim.stream} {fault.problem}"
        )
    except (AttributeError, *DECODE_ERRORS):
        return SignatureReport(covered.records, "a signature is not in a form that Accord writes")
    gone = claim.total - covered.records
    if gone <= 0:
        return SignatureReport(covered.records, counted=True)
    was = "1 record was" if gone == 1 else f"{gone} records were"
    problem = f"{was} signed, but the signatures are missing; check the records shown as unsigned"
    return SignatureReport(covered.records, problem, counted=True)


async def check_all_streams(events: EventLog, keys: PublicKeys) -> AsyncIterator[StreamReport]:
    """Verify every stream of the log with these keys."""
    for stream in await events.streams():
        yield await check_stream(events, stream, keys)


async def check_stream(
    events: EventLog, stream: str, keys: PublicKeys, expected: NotedHead | None = None
) -> StreamReport:
    """Verify one stream from its first record to its last, and its signatures."""
    finding, cut = await _check_once(events, stream, keys, expected)
    # Retention may have removed records while we read; that is not a fault.
    while not finding.holds and await verified_reads.cut(events, stream) != cut:
        finding, cut = await _check_once(events, stream, keys, expected)
    return finding


async def _check_once(
    events: EventLog, stream: str, keys: PublicKeys, expected: NotedHead | None
) -> tuple[StreamReport, RetentionCut | None]:
    cut = await verified_reads.cut(events, stream)
    return await _walk_stream(events, ChainWalker(stream, keys, expected), cut), cut


async def _walk_stream(
    events: EventLog, chain: "ChainWalker", cut: RetentionCut | None
) -> StreamReport:
    try:
        chain.start_after(cut)
        # Heads first: a server may be appending, and rows read later reach at least as far.
        chain.add_heads(await events.heads(chain.stream))
        async for row in read_rows(events.read, chain.stream):
            chain.check_row(row)
        chain.finish()
    except ChainFault as fault:
        return chain.report(fault)
    except StoreError as error:
        problem = UNREADABLE_PLACE if isinstance(error, DamagedError) else UNREADABLE_NOW
        return chain.report(ChainFault(chain.version + 1, problem))
    except DECODE_ERRORS:
        return chain.report(ChainFault(chain.version + 1, UNREADABLE))
    return chain.report()


class ChainWalker:
    """Verifies one stream record by record; raises ChainFault at the first problem."""

    def __init__(self, stream: str, keys: PublicKeys, expected: NotedHead | None = None) -> None:
        self.stream = stream
        self.version = 0
        self.hash = genesis_hash(stream)
        self.keys = keys
        self.expected = expected
        self.newest: SignedHead | None = None
        self.cut: RetentionCut | None = None
        self._leftover: Row | None = None
        self._heads: dict[int, list[SignedHead]] = {}

    def start_after(self, cut: RetentionCut | None) -> None:
        """Start behind the retention cut, if its signature is valid."""
        if cut is None:
            return
        if cut.version < 1 or cut.stream != self.stream:
            raise ChainFault(1, f"has a retention cut of {cut.stream} {cut.version}")
        _check_signature(self.keys, cut.version, cut.key, cut.signature, cut.signed_bytes())
        if self.expected and self.expected.version < cut.version:
            raise ChainFault(
                self.expected.version, "was removed by retention and cannot be compared"
            )
        self.cut, self.version, self.hash = cut, cut.version, cut.hash
        if self.expected and self.expected.version == cut.version:
            self._check_noted(self.expected)

    def add_heads(self, heads: Iterable[SignedHead]) -> None:
        """Signed heads, to be compared with the records they cover."""
        for head in heads:
            if head.version < 1 or head.stream != self.stream:
                raise ChainFault(1, f"has a signature of {head.stream} {head.version}")
            if self.cut and head.version < self.cut.version:
                _check_signature(
                    self.keys, head.version, head.key, head.signature, head.signed_bytes()
                )
            elif self.cut and head.version == self.cut.version:
                self._check_head(head)
            else:
                self._heads.setdefault(head.version, []).append(head)

    def check_row(self, row: Row) -> None:
        """Verify the next record: position, hash, content and signatures."""
        if self.cut and row.version <= self.cut.version:
            self._check_leftover(row, self.cut)
            return
        if row.version != self.version + 1:
            raise ChainFault(self.version + 1, "is missing")
        after = link_hash(self.hash, row.body)
        if after != row.hash:
            raise ChainFault(row.version, "does not follow from the one before it")
        self._check_decodable(row)
        self.version, self.hash = row.version, after
        for head in self._heads.pop(row.version, ()):
            self._check_head(head)
        if self.expected and self.expected.version == row.version:
            self._check_noted(self.expected)

    def finish(self) -> None:
        """Check that no signature and no noted head is beyond the last record."""
        beyond = list(self._heads)
        if self.expected and self.expected.version > self.version:
            beyond.append(self.expected.version)
        if beyond:
            raise ChainFault(self.version + 1, f"is missing: the log once reached {max(beyond)}")

    def report(self, fault: ChainFault | None = None) -> StreamReport:
        newest = self.newest
        signed = [each for each in (newest, self.cut) if each is not None]
        return StreamReport(
            self.stream,
            self.version,
            self.hash.hex(),
            newest.version if newest else 0,
            newest.at if newest else None,
            bool(signed) and all(each.key in self.keys.from_files for each in signed),
            fault.version if fault else None,
            fault.problem if fault else None,
            *((cut.version, cut.at, cut.by, cut.reason) if (cut := self.cut) else ()),
        )

    def _check_leftover(self, row: Row, cut: RetentionCut) -> None:
        """Verify a row before the cut that is not removed yet; earlier ones are gone."""
        before, self._leftover = self._leftover, row
        next_to_it = before is not None and before.version + 1 == row.version
        if before and next_to_it and link_hash(before.hash, row.body) != row.hash:
            raise ChainFault(row.version, "does not follow from the one before it")
        self._check_decodable(row)
        if row.version == cut.version and row.hash != cut.hash:
            raise ChainFault(row.version, "differs from what the retention cut states")

    def _check_decodable(self, row: Row) -> None:
        try:
            record = decode_row(row).record
        except DECODE_ERRORS:
            raise ChainFault(row.version, UNREADABLE) from None
        if record.id != row.id:
            problem = f"is stored under the id {row.id}, but has the id {record.id}"
            raise ChainFault(row.version, problem)

    def _check_head(self, head: SignedHead) -> None:
        if head.hash != self.hash:
            raise ChainFault(head.version, "differs from what was signed")
        _check_signature(self.keys, head.version, head.key, head.signature, head.signed_bytes())
        self.newest = head

    def _check_noted(self, mark: NotedHead) -> None:
        if self.hash.hex() != mark.hash.lower():
            raise ChainFault(mark.version, "differs from the head you noted")


def _check_signature(
    keys: PublicKeys, version: int, kid: str, signature: bytes, claim: bytes
) -> None:
    key = keys.find(kid)
    if key is None:
        raise ChainFault(version, f"is signed with the unknown key {kid}")
    try:
        key.verify(signature, claim)
    except InvalidSignature:
        raise ChainFault(version, "has an invalid signature") from None


async def load_keys(events: EventLog, folder: Path) -> PublicKeys:
    """The keys to verify signatures with."""
    return PublicKeys(dict(_keys_from_files(folder)), await keys_from_log(events))


async def keys_from_log(events: EventLog) -> dict[str, Ed25519PublicKey]:
    """The public keys recorded in the log itself."""
    found: dict[str, Ed25519PublicKey] = {}
    for stream in await events.streams(PEOPLE_PREFIX):
        async for kid, pem in _rotations(events, stream):
            if key := parse_public_key(pem.encode()):
                found[kid] = key
    return found


async def _rotations(events: EventLog, stream: str) -> AsyncIterator[tuple[str, str]]:
    try:
        async for row in read_rows(events.read, stream):
            event = decode_row(row).record.event
            if isinstance(event, KeyRotated):
                yield event.key.kid, event.key.public
    except (StoreError, *DECODE_ERRORS):
        return  # a damaged stream is reported when it is verified


def _keys_from_files(folder: Path) -> Iterable[tuple[str, Ed25519PublicKey]]:
    for file in sorted(folder.glob("*.pub")):
        if key := parse_public_key(file.read_bytes()):
            yield file.stem, key


def parse_public_key(pem: bytes) -> Ed25519PublicKey | None:
    """The key in these bytes; None if there is none."""
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None
