"""Proof for a stranger."""

import json
from typing import Any

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from accord.core.kernel.refusal import Refused, Why
from accord.core.provenance import statement as statements
from accord.core.provenance.redaction import REDACTED, redactor
from accord.core.provenance.statement import Signature, Statement, pre_authentication
from tests.core.provenance.samples import DECISION

SHA = "9fceb02d0ae598e95dc970b74767f19372d61af8"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
BODY = statements.payload(SHA, [DECISION])


def test_the_encoding_is_dsses_own_example() -> None:
    """The vector of the DSSE specification, version 1.0.0."""
    found = pre_authentication(b"hello world", "http://example.com/HelloWorld")

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
    text = statements.seal(BODY, [Signature("K1", KEY.sign(pre_authentication(BODY)))])

    found = statements.unseal(text)

    KEY.public_key().verify(found.signatures[0].sig, found.claim)
    assert found.signatures[0].keyid == "K1"
    assert statements.read(found.payload) == Statement(SHA, (DECISION,))


def test_another_statement_does_not_fit_the_signature() -> None:
    signature = KEY.sign(pre_authentication(BODY))
    forged = statements.payload(SHA.replace("9", "8"), [DECISION])

    with pytest.raises(InvalidSignature):
        KEY.public_key().verify(signature, pre_authentication(forged))


def test_the_same_decision_gives_the_same_bytes() -> None:
    again = msgspec.json.decode(msgspec.json.encode(DECISION), type=type(DECISION))

    assert statements.payload(SHA, [again]) == BODY


def test_no_secret_reaches_a_statement() -> None:
    made = msgspec.structs.replace(DECISION, session_name="open sesame")

    body = statements.payload(SHA, [made], redactor(["open sesame"]))

    assert b"sesame" not in body
    assert REDACTED.encode() in body


def test_it_says_in_one_line_what_it_proves_and_what_not() -> None:
    line = statements.meaning(Statement(SHA, (DECISION,)), "K1")

    assert line == (
        f"The server with the key K1 recorded {DECISION.id} for commit {SHA}, approved by "
        "human:alice, human:bob; this does not prove that the code is right, or that the server "
        "was honest"
    )
    assert "no decision for commit c, approved by nobody" in statements.meaning(
        Statement("c", ()), "K1"
    )


def test_a_commit_that_names_a_decision_again_is_told_from_the_first() -> None:
    again = msgspec.structs.replace(DECISION, first_sha="f" * 40)

    line = statements.meaning(Statement(SHA, (again,)), "K1")

    assert f"for commit {SHA}, which names it again after {'f' * 40}, approved by" in line


def test_either_alphabet_of_base64_is_read() -> None:
    told = json.loads(statements.seal(b"{}", [Signature("", b"\xfb\xff")]))
    told["signatures"][0]["sig"] = "-_8="

    assert statements.unseal(json.dumps(told)).signatures[0].sig == b"\xfb\xff"


ENVELOPE = json.loads(statements.seal(BODY, [Signature("K1", b"x")]))


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
        statements.unseal(json.dumps({**ENVELOPE, **changed}))

    assert no.value.why is Why.MALFORMED


@pytest.mark.parametrize("text", ["[]", "null", '"payload"', "1"])
def test_json_that_is_no_object_is_no_envelope(text: str) -> None:
    with pytest.raises(Refused) as no:
        statements.unseal(text)

    assert no.value.why is Why.MALFORMED
    assert no.value.detail == "That is no JSON object"


def test_a_name_that_stands_there_twice_is_refused() -> None:
    text = json.dumps(ENVELOPE).replace('{"payload"', '{"payload": "e30=", "payload"', 1)

    with pytest.raises(Refused) as no:
        statements.unseal(text)

    assert no.value.why is Why.MALFORMED


def test_an_envelope_that_is_too_large_is_not_looked_at() -> None:
    with pytest.raises(Refused) as no:
        statements.unseal(" " * (statements.MOST_BYTES + 1))

    assert no.value.why is Why.TOO_LARGE


def on_a_line(number: int) -> str:
    body = statements.payload(f"{number:040x}", [DECISION])
    return json.dumps(json.loads(statements.seal(body, [Signature("K1", b"x")])))


def test_a_file_holds_one_envelope_or_one_on_each_line() -> None:
    first, second = on_a_line(1), on_a_line(2)
    indented = statements.seal(BODY, [Signature("K1", b"x")])

    several = statements.unsealed(f"{first}\n\n{second}\n")

    assert several == [statements.unseal(first), statements.unseal(second)]
    assert statements.unsealed(first) == [statements.unseal(first)]
    assert statements.unsealed(indented) == [statements.unseal(indented)]


def test_one_line_that_is_none_spoils_the_file() -> None:
    with pytest.raises(Refused):
        statements.unsealed(f"{on_a_line(1)}\n{{}}\n")
    with pytest.raises(Refused):
        statements.unsealed(f'{on_a_line(1)}\n{{"payload": 1}}\n')


def test_a_file_has_only_so_many() -> None:
    with pytest.raises(Refused) as no:
        statements.unsealed(f"{on_a_line(1)}\n" * (statements.MOST_ENVELOPES + 1))

    assert no.value.why is Why.TOO_LARGE


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
        statements.read(json.dumps({**STATED, **changed}).encode())


@given(st.binary() | st.just(b"[" * 100_000) | st.just(b"[]") | st.just(b'"\xff"'))
def test_any_bytes_are_refused_with_a_reason(body: bytes) -> None:
    with pytest.raises(Refused):
        statements.read(body)
