"""Proof for a stranger."""

import json
from typing import Any

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from accord.core.kernel.redaction import REDACTED, redactor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance import attestation as statements
from accord.core.provenance import decision_commit as decisions
from accord.core.provenance.attestation import Signature, Statement, pre_authentication_encoding
from accord.core.provenance.decision_commit import PathCoverage
from tests.core.provenance.decision_samples import DECISION

SHA = "9fceb02d0ae598e95dc970b74767f19372d61af8"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
BODY = statements.statement_payload(SHA, [DECISION])


def test_the_encoding_is_dsses_own_example() -> None:
    """The vector of the DSSE specification, version 1.0.0."""
    found = pre_authentication_encoding(b"hello world", "http://example.com/HelloWorld")

    assert found == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_a_statement_is_about_the_commit_and_holds_decision_approvals_and_position() -> None:
    told = json.loads(BODY)

    assert told["_type"] == "https://in-toto.io/Statement/v1"
    assert told["subject"] == [{"name": "commit", "digest": {"gitCommit": SHA}}]
    assert told["predicateType"] == "urn:accord:decision:v1"
    (made,) = told["predicate"]["decisions"]
    assert made["approvals"][0] == {
        "gate": "g1",
        "by": "human:bob",
        "action": "tool-01",
        "comment": "Fine",
    }
    assert made["position"] == {"stream": "room/r", "version": 12, "hash": "ab" * 32}


def test_what_is_sealed_is_opened_and_a_stranger_can_check_it() -> None:
    text = statements.format_envelope(
        BODY, [Signature("K1", KEY.sign(pre_authentication_encoding(BODY)))]
    )

    found = statements.parse_envelope(text)

    KEY.public_key().verify(found.signatures[0].sig, found.signed_bytes)
    assert found.signatures[0].keyid == "K1"
    assert statements.parse_statement(found.payload) == Statement(SHA, (DECISION,))


def test_another_statement_does_not_fit_the_signature() -> None:
    signature = KEY.sign(pre_authentication_encoding(BODY))
    forged = statements.statement_payload(SHA.replace("9", "8"), [DECISION])

    with pytest.raises(InvalidSignature):
        KEY.public_key().verify(signature, pre_authentication_encoding(forged))


def test_the_same_decision_gives_the_same_bytes() -> None:
    again = msgspec.json.decode(msgspec.json.encode(DECISION), type=type(DECISION))

    assert statements.statement_payload(SHA, [again]) == BODY


def test_no_secret_reaches_a_statement() -> None:
    made = msgspec.structs.replace(DECISION, session_name="open sesame")

    body = statements.statement_payload(SHA, [made], redactor(["open sesame"]))

    assert b"sesame" not in body
    assert REDACTED.encode() in body


def test_it_says_in_one_line_what_it_proves_and_what_not() -> None:
    line = statements.explain_statement(Statement(SHA, (DECISION,)), "K1")

    assert line == (
        f"The server with the key K1 recorded {DECISION.id} for commit {SHA}, approved by "
        "human:alice, human:bob; this does not prove that the code is correct, or that the server "
        "was honest"
    )
    assert (
        "no decision for commit c, without an approval that covers it"
        in statements.explain_statement(Statement("c", ()), "K1")
    )


def test_it_says_what_is_covered_in_part() -> None:
    part = msgspec.structs.replace(
        DECISION,
        covers="part",
        approvals=(),
        coverage=(PathCoverage(approver="human:bob", proposal="tool-01", paths=("a.py", "b.py")),),
    )

    line = statements.explain_statement(Statement(SHA, (part,)), "K1")

    assert f"for commit {SHA}, covered in part by approvals of human:bob for a.py, b.py;" in line


def test_it_says_that_several_people_cover_it_together() -> None:
    entries = [("human:bob", ("a.py",)), ("human:eve", ("b.py",))]
    coverage = tuple(
        PathCoverage(approver=who, proposal="t", paths=paths) for who, paths in entries
    )
    whole = msgspec.structs.replace(DECISION, covers="whole", approvals=(), coverage=coverage)

    line = statements.explain_statement(Statement(SHA, (whole,)), "K1")

    assert "covered together by approvals of human:bob for a.py; human:eve for b.py;" in line


def test_it_says_of_how_many_calls_it_has_only_beginnings() -> None:
    cut = msgspec.structs.replace(DECISION.tool_executions[0], call_digest="sha256:" + "0" * 64)
    made = msgspec.structs.replace(DECISION, tool_executions=(cut, *DECISION.tool_executions[1:]))

    line = statements.explain_statement(Statement(SHA, (made,)), "K1")

    assert "human:bob (calls of which it has only beginnings and a digest: 1); this" in line


def test_it_says_that_no_approval_covers_a_decision() -> None:
    nothing = msgspec.structs.replace(DECISION, covers="none", approvals=(), coverage=())

    line = statements.explain_statement(Statement(SHA, (nothing,)), "K1")

    assert f"for commit {SHA}, {statements.NO_APPROVAL};" in line


def test_approvals_from_before_coverage_was_checked_prove_nothing() -> None:
    old = decisions.to_json(msgspec.structs.replace(DECISION, covers=""))

    read = decisions.from_json(old)

    assert read.approved_by == ()
    assert read.votes == DECISION.approvals
    assert decisions.with_checked_approvals(read) == read


def test_a_commit_that_names_a_decision_again_is_told_from_the_first() -> None:
    again = msgspec.structs.replace(DECISION, first_sha="f" * 40)

    line = statements.explain_statement(Statement(SHA, (again,)), "K1")

    assert f"for commit {SHA} (a rewrite of {'f' * 40}), approved by" in line


def test_either_alphabet_of_base64_is_read() -> None:
    told = json.loads(statements.format_envelope(b"{}", [Signature("", b"\xfb\xff")]))
    told["signatures"][0]["sig"] = "-_8="

    assert statements.parse_envelope(json.dumps(told)).signatures[0].sig == b"\xfb\xff"


ENVELOPE = json.loads(statements.format_envelope(BODY, [Signature("K1", b"x")]))


@pytest.mark.parametrize(
    "changed",
    [
        {"payloadType": "text/plain"},
        {"payload": "no base64!"},
        {"payload": None},
        {"payload": "e31="},
        {"payload": "\u00e9"},
        {"signatures": []},
        {"signatures": None},
        {"signatures": ENVELOPE["signatures"] * 17},
        {"signatures": [1]},
        {"signatures": [{"keyid": 1, "sig": ""}]},
        {"signatures": [{"keyid": "K1", "sig": "!"}]},
    ],
    ids=repr,
)
def test_an_envelope_of_another_shape_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(Refused) as no:
        statements.parse_envelope(json.dumps({**ENVELOPE, **changed}))

    assert no.value.reason is Reason.MALFORMED


@pytest.mark.parametrize("text", ["[]", "null", '"payload"', "1"])
def test_json_that_is_no_object_is_no_envelope(text: str) -> None:
    with pytest.raises(Refused) as no:
        statements.parse_envelope(text)

    assert no.value.reason is Reason.MALFORMED
    assert no.value.detail == "This is not a JSON object"


def test_a_name_that_stands_there_twice_is_refused() -> None:
    text = json.dumps(ENVELOPE).replace('{"payload"', '{"payload": "e30=", "payload"', 1)

    with pytest.raises(Refused) as no:
        statements.parse_envelope(text)

    assert no.value.reason is Reason.MALFORMED


def test_an_envelope_that_is_too_large_is_not_looked_at() -> None:
    with pytest.raises(Refused) as no:
        statements.parse_envelope(" " * (statements.MAX_STATEMENT_BYTES + 1))

    assert no.value.reason is Reason.TOO_LARGE


def on_a_line(number: int) -> str:
    body = statements.statement_payload(f"{number:040x}", [DECISION])
    return json.dumps(json.loads(statements.format_envelope(body, [Signature("K1", b"x")])))


def test_a_file_holds_one_envelope_or_one_on_each_line() -> None:
    first, second = on_a_line(1), on_a_line(2)
    indented = statements.format_envelope(BODY, [Signature("K1", b"x")])

    several = statements.parse_envelopes(f"{first}\n\n{second}\n")

    assert several == [statements.parse_envelope(first), statements.parse_envelope(second)]
    assert statements.parse_envelopes(first) == [statements.parse_envelope(first)]
    assert statements.parse_envelopes(indented) == [statements.parse_envelope(indented)]


def test_one_line_that_is_none_spoils_the_file() -> None:
    with pytest.raises(Refused):
        statements.parse_envelopes(f"{on_a_line(1)}\n{{}}\n")
    with pytest.raises(Refused):
        statements.parse_envelopes(f'{on_a_line(1)}\n{{"payload": 1}}\n')


def test_a_file_has_only_so_many() -> None:
    with pytest.raises(Refused) as no:
        statements.parse_envelopes(f"{on_a_line(1)}\n" * (statements.MAX_ENVELOPES + 1))

    assert no.value.reason is Reason.TOO_LARGE


STATED = json.loads(BODY)


@pytest.mark.parametrize(
    "changed",
    [
        {"_type": "other"},
        {"predicateType": "other"},
        {"subject": []},
        {"subject": STATED["subject"] * 2},
        {"subject": [{"digest": {}}]},
        {"subject": [{"digest": {"gitCommit": 3}}]},
        {"subject": 3},
        {"predicate": {}},
        {"predicate": {"decisions": [{"id": 1}]}},
        {"predicate": {"decisions": 3}},
    ],
    ids=repr,
)
def test_a_statement_about_something_else_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        statements.parse_statement(json.dumps({**STATED, **changed}).encode())


@given(st.binary() | st.just(b"[" * 100_000) | st.just(b"[]") | st.just(b'"\xff"'))
def test_any_bytes_are_refused_with_a_reason(body: bytes) -> None:
    with pytest.raises(Refused):
        statements.parse_statement(body)
