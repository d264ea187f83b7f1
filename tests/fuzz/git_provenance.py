"""What comes with a clone: messages, notes and statements that anybody could have written."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accord.core.kernel.redaction import redact
from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance import attestation as statements
from accord.core.provenance import decision_commit as decisions
from accord.core.provenance.commit_message import trailers
from accord.core.provenance.commit_message.lint import lint, strip_comments
from accord.core.provenance.commit_message.parser import commit_metadata, parse_message
from accord.core.provenance.decision_commit import decision_note, decisions_of, thread_of
from accord.core.provenance.notes import note as notes
from accord.core.provenance.notes.note import note_size, shrink_to_fit
from tests.core.provenance.decision_samples import DECISION, THREAD
from tests.core.provenance.message_samples import EXAMPLES
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.targets import FuzzInput

MAX_TEXT_CHARS = 2000
FOLDED_MESSAGE = (
    "fix: x\n\nKey: one\n two\nDecision-By: human:a%20b,ai:c\nSigned-off-by: A <a@b>\nwords\n"
)


def seeds() -> Iterator[bytes]:
    """One of each kind; the first byte tells which."""
    yield from (b"m" + text.encode() for text in (*EXAMPLES.values(), FOLDED_MESSAGE))
    yield b"n" + notes.format_note(decision_note(DECISION, THREAD)).encode()
    body = statements.statement_payload("0" * 40, [DECISION])
    yield b"s" + statements.format_envelope(body, [statements.Signature("K1", b"x")]).encode()
    yield b"t" + decisions.thread_to_trailer(THREAD).encode()
    yield b"r" + b"password=hunter2 https://a:b@c/ AKIAAAAAAAAAAAAAAAAA eyJaaaaaaaaa.bbbbbbbbb.c"


def make_runner(place: Path) -> FuzzInput:
    """By the first byte, as what it is tried."""
    return lambda data: RUNNER_OF_PREFIX.get(data[:1], check_message)(
        data[1:].decode("utf-8", "surrogateescape")
    )


def check_message(text: str) -> None:
    """Read and checked, whatever it is; no value has a line break."""
    found = parse_message(strip_comments(text))
    mark_reached(*sorted(commit_metadata(found)))
    for each in (*found.trailers, *trailers.trailers_in(text)):
        assert "\n" not in each.key + each.value
    for one in (*found.decided_by, *found.approved_by):
        assert not re.search("[\0-\x1f]", one.identifier)
    assert all(each.mend and each.line > 0 for each in lint(text))


def check_note(text: str) -> None:
    """A note or kept whole; merged with ours it can be stored, and shortened it fits."""
    try:
        found = notes.parse_note(text)
    except Refused as no:
        assert no.reason is Reason.UNSUPPORTED_VERSION  # noqa: PT017 - not a test
        return
    mark_reached("foreign" if "foreign" in found else "note")
    decisions_of(found)
    thread_of(found)
    both = notes.merge_notes(found, decision_note(DECISION))
    assert notes.parse_note(notes.format_note(both)) == both
    assert note_size(shrink_to_fit(both, MAX_TEXT_CHARS)) <= MAX_TEXT_CHARS


def check_statement(text: str) -> None:
    """Opened and read, or refused."""
    try:
        found = statements.parse_envelope(text)
        assert found.signed_bytes.startswith(b"DSSEv1 ")
        statements.explain_statement(statements.parse_statement(found.payload), "K1")
    except Refused as no:
        mark_reached(no.detail)


def check_thread(text: str) -> None:
    """A conversation, or refused."""
    try:
        decisions.thread_from_trailer(text)
    except Refused as no:
        mark_reached(no.detail)


def check_secrets(text: str) -> None:
    """Cleaned once is cleaned."""
    once = redact(text)
    assert redact(once) == once


RUNNER_OF_PREFIX: dict[bytes, Callable[[str], None]] = {
    b"m": check_message,
    b"n": check_note,
    b"s": check_statement,
    b"t": check_thread,
    b"r": check_secrets,
}


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """A folded value keeps its line breaks."""
    patch.setattr(trailers, "_unfold", lambda first, more: "".join([first, *more]).strip())
