"""Proof for a stranger: an in-toto statement about a commit, in the form that DSSE signs.

Pure: what is signed is made here, who signs is elsewhere. Nothing in it is more than a note
tells, and it has passed the same filter.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import rfc8785

from accord.core.kernel.refusal import Refused, Why

from . import decision as decisions
from .decision import DecisionCommit
from .redaction import Redact, redact, scrub

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:accord:decision:v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
MOST_BYTES = 1 << 20
MOST_SIGNATURES = 16
MOST_ENVELOPES = 100


class Signature(NamedTuple):
    """Somebody's signature of a statement."""

    keyid: str
    sig: bytes


class Envelope(NamedTuple):
    """A signed statement, as it travels; reading one proves nothing yet."""

    payload: bytes
    signatures: tuple[Signature, ...]

    @property
    def claim(self) -> bytes:
        """The bytes that every signature is over."""
        return pre_authentication(self.payload)


class Statement(NamedTuple):
    """What a statement says."""

    commit: str
    decisions: tuple[DecisionCommit, ...]


def payload(commit: str, made: Sequence[DecisionCommit], clean: Redact = redact) -> bytes:
    """The statement that these decisions led to this commit; the same bytes every time."""
    told: Any = {
        "_type": STATEMENT,
        "subject": [{"name": "commit", "digest": {"gitCommit": commit}}],
        "predicateType": PREDICATE,
        "predicate": {"decisions": scrub([decisions.to_json(each) for each in made], clean)},
    }
    return rfc8785.dumps(told)


def pre_authentication(body: bytes, kind: str = PAYLOAD_TYPE) -> bytes:
    """DSSE's encoding: what is signed says how long each part is, so nothing can shift."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(body), body)


def seal(body: bytes, signatures: Sequence[Signature]) -> str:
    """The envelope as JSON."""
    told = {
        "payloadType": PAYLOAD_TYPE,
        "payload": b64encode(body).decode(),
        "signatures": [
            {"keyid": each.keyid, "sig": b64encode(each.sig).decode()} for each in signatures
        ],
    }
    return json.dumps(told, indent=1, sort_keys=True) + "\n"


def unsealed(text: str) -> list[Envelope]:
    """The envelope in this text or, where each line is one, all of them."""
    lines = [each for each in text.split("\n") if each.strip()]
    several = len(lines) > 1 and all(each.startswith('{"') for each in lines)
    if several and len(lines) > MOST_ENVELOPES:
        raise Refused(Why.TOO_LARGE, f"A file has at most {MOST_ENVELOPES} statements")
    return [unseal(each) for each in lines] if several else [unseal(text)]


def unseal(text: str) -> Envelope:
    """The envelope in this text; refused when it is none, or of another kind."""
    if len(text) > MOST_BYTES:
        raise Refused(Why.TOO_LARGE, f"A statement has at most {MOST_BYTES} bytes")
    told = _object(text)
    if told.get("payloadType") != PAYLOAD_TYPE:
        raise Refused(Why.MALFORMED, f"That is no signed statement: its type is not {PAYLOAD_TYPE}")
    signatures = told.get("signatures")
    if not isinstance(signatures, list) or not 0 < len(signatures) <= MOST_SIGNATURES:
        raise Refused(Why.MALFORMED, f"A statement has from 1 to {MOST_SIGNATURES} signatures")
    return Envelope(_bytes(told.get("payload")), tuple(map(_signature, signatures)))


def read(body: bytes) -> Statement:
    """What a statement says; refused when it is about something else than a commit's decisions."""
    told = _object(body)
    kinds = (told.get("_type"), told.get("predicateType"))
    if kinds != (STATEMENT, PREDICATE):
        raise Refused(Why.MALFORMED, f"That is no statement about decisions: {kinds[1]!r}")
    try:
        (subject,) = told["subject"]
        commit = subject["digest"]["gitCommit"]
        made = tuple(map(decisions.from_json, told["predicate"]["decisions"]))
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(Why.MALFORMED, "The statement lacks its commit or its decisions") from error
    if not isinstance(commit, str):
        raise Refused(Why.MALFORMED, "The statement's commit is no text")
    return Statement(commit, made)


def meaning(statement: Statement, key: str) -> str:
    """In one line: what a good signature proves, and what it does not."""
    made = statement.decisions
    approvers = sorted({name for each in made for name in each.approved_by})
    said = f"approved by {', '.join(approvers)}" if approvers else "approved by nobody"
    names = ", ".join(each.id for each in made) or "no decision"
    firsts = sorted({each.first_sha for each in made} - {"", statement.commit})
    again = f", which names it again after {', '.join(firsts)}" if firsts else ""
    return (
        f"The server with the key {key} recorded {names} for commit {statement.commit}{again}, "
        f"{said}; "
        "this does not prove that the code is right, or that the server was honest"
    )


def _object(text: str | bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Refused(Why.MALFORMED, "That is no JSON") from error
    if not isinstance(value, dict):
        raise Refused(Why.MALFORMED, "That is no JSON object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name that stands there twice would be read differently by others."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _signature(value: Any) -> Signature:
    if not isinstance(value, dict) or not isinstance(keyid := value.get("keyid", ""), str):
        raise Refused(Why.MALFORMED, "A signature has a keyid and a sig")
    return Signature(keyid, _bytes(value.get("sig")))


def _bytes(value: Any) -> bytes:
    """Base64 of either alphabet, as DSSE allows; one text for the same bytes and no other."""
    try:
        plain = value.replace("-", "+").replace("_", "/").encode("ascii")
        found = b64decode(plain, validate=True)
    except (AttributeError, ValueError) as error:
        raise Refused(Why.MALFORMED, "payload and sig are base64") from error
    if b64encode(found) != plain:
        raise Refused(Why.MALFORMED, "payload or sig is base64 with bits that say nothing")
    return found
