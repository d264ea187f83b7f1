"""What comes with a clone: messages, notes and statements that anybody could have written."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accord.core.kernel.refusal import Refused, Why
from accord.core.provenance import note as notes
from accord.core.provenance import statement as statements
from accord.core.provenance import thread as threads
from accord.core.provenance import trailers
from accord.core.provenance.check import check, cleaned
from accord.core.provenance.message import metadata, parse
from accord.core.provenance.record import decisions_of, note_of, thread_of
from accord.core.provenance.redaction import redact
from accord.core.provenance.sizing import fitted, size
from tests.core.provenance.messages import EXAMPLES
from tests.core.provenance.samples import DECISION, THREAD
from tests.fuzz.reached import reached
from tests.fuzz.targets import Trial

SMALL = 2000
FOLDED = "fix: x\n\nKey: one\n two\nDecision-By: human:a%20b,ai:c\nSigned-off-by: A <a@b>\nwords\n"


def seeds() -> Iterator[bytes]:
    """One of each kind; the first byte tells which."""
    yield from (b"m" + text.encode() for text in (*EXAMPLES.values(), FOLDED))
    yield b"n" + notes.write(note_of(DECISION, THREAD)).encode()
    body = statements.payload("0" * 40, [DECISION])
    yield b"s" + statements.seal(body, [statements.Signature("K1", b"x")]).encode()
    yield b"t" + threads.to_trailer(THREAD).encode()
    yield b"r" + b"password=hunter2 https://a:b@c/ AKIAAAAAAAAAAAAAAAAA eyJaaaaaaaaa.bbbbbbbbb.c"


def trial(place: Path) -> Trial:
    """By the first byte, as what it is tried."""
    return lambda data: TRIED.get(data[:1], message)(data[1:].decode("utf-8", "surrogateescape"))


def message(text: str) -> None:
    """Read and checked, whatever it is; no value has a line break."""
    found = parse(cleaned(text))
    reached(*sorted(metadata(found)))
    for each in (*found.trailers, *trailers.trailers_in(text)):
        assert "\n" not in each.key + each.value
    for one in (*found.decided_by, *found.approved_by):
        assert not re.search("[\0-\x1f]", one.identifier)
    assert all(each.mend and each.line > 0 for each in check(text))


def note(text: str) -> None:
    """A note or kept whole; merged with ours it can be stored, and shortened it fits."""
    try:
        found = notes.read(text)
    except Refused as no:
        assert no.why is Why.VERSION  # noqa: PT017 - not a test
        return
    reached("foreign" if "foreign" in found else "note")
    decisions_of(found)
    thread_of(found)
    both = notes.merged(found, note_of(DECISION))
    assert notes.read(notes.write(both)) == both
    assert size(fitted(both, SMALL)) <= SMALL


def statement(text: str) -> None:
    """Opened and read, or refused."""
    try:
        found = statements.unseal(text)
        assert found.claim.startswith(b"DSSEv1 ")
        statements.meaning(statements.read(found.payload), "K1")
    except Refused as no:
        reached(no.detail)


def thread(text: str) -> None:
    """A conversation, or refused."""
    try:
        threads.from_trailer(text)
    except Refused as no:
        reached(no.detail)


def secrets(text: str) -> None:
    """Cleaned once is cleaned."""
    once = redact(text)
    assert redact(once) == once


TRIED: dict[bytes, Callable[[str], None]] = {
    b"m": message,
    b"n": note,
    b"s": statement,
    b"t": thread,
    b"r": secrets,
}


def plant(patch: pytest.MonkeyPatch) -> None:
    """A folded value keeps its line breaks."""
    patch.setattr(trailers, "_unfolded", lambda first, more: "".join([first, *more]).strip())
