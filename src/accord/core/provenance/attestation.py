"""Attestations: in-toto statements about a commit in DSSE envelopes, verifiable by anyone.

This module builds and parses them; signing and verifying are elsewhere. A statement contains no
more than a note does, and is redacted the same way.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import rfc8785

from accord.core.kernel.redaction import Redactor, redact, redact_json
from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance import decision_commit as decisions
from accord.core.provenance.coverage.coverage_extent import WHOLE
from accord.core.provenance.decision_commit import DecisionCommit

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:accord:decision:v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_STATEMENT_BYTES = 1 << 20
MAX_SIGNATURES = 16
MAX_ENVELOPES = 100
MAX_SHOWN_PATHS = 5
NO_APPROVAL = "without an approval that covers it"


class Signature(NamedTuple):
    """One signature of a statement."""

    keyid: str
    sig: bytes


class DsseEnvelope(NamedTuple):
    """A signed statement; parsing one does not verify it."""

    payload: bytes
    signatures: tuple[Signature, ...]

    @property
    def signed_bytes(self) -> bytes:
        """The bytes that each signature covers."""
        return pre_authentication_encoding(self.payload)


class Statement(NamedTuple):
    """The commit of a statement, and the decisions behind it."""

    commit: str
    decisions: tuple[DecisionCommit, ...]


def statement_payload(
    commit: str, made: Sequence[DecisionCommit], clean: Redactor = redact
) -> bytes:
    """The statement that these decisions led to this commit, as canonical JSON."""
    statement: Any = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": "commit", "digest": {"gitCommit": commit}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "decisions": redact_json([decisions.to_json(decision) for decision in made], clean)
        },
    }
    return rfc8785.dumps(statement)


def pre_authentication_encoding(body: bytes, kind: str = PAYLOAD_TYPE) -> bytes:
    """DSSE's encoding of what is signed; it states the length of each part, so none can shift."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(body), body)


def format_envelope(body: bytes, signatures: Sequence[Signature]) -> str:
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": b64encode(body).decode(),
        "signatures": [
            {"keyid": signature.keyid, "sig": b64encode(signature.sig).decode()}
            for signature in signatures
        ],
    }
    return json.dumps(envelope, indent=1, sort_keys=True) + "\n"


def parse_envelopes(text: str) -> list[DsseEnvelope]:
    """The envelope in this text, or all of them if each line is one."""
    lines = [line for line in text.split("\n") if line.strip()]
    several = len(lines) > 1 and all(line.startswith('{"') for line in lines)
    if several and len(lines) > MAX_ENVELOPES:
        raise Refused(Reason.TOO_LARGE, f"A file may have at most {MAX_ENVELOPES} statements")
    return [parse_envelope(line) for line in lines] if several else [parse_envelope(text)]


def parse_envelope(text: str) -> DsseEnvelope:
    """The envelope in this text; refused if it is not one, or has another payload type."""
    if len(text) > MAX_STATEMENT_BYTES:
        raise Refused(Reason.TOO_LARGE, f"A statement may have at most {MAX_STATEMENT_BYTES} bytes")
    envelope = _json_object(text)
    if envelope.get("payloadType") != PAYLOAD_TYPE:
        raise Refused(
            Reason.MALFORMED,
            f"This is not a signed statement: its payloadType is not {PAYLOAD_TYPE}",
        )
    signatures = envelope.get("signatures")
    if not isinstance(signatures, list) or not 0 < len(signatures) <= MAX_SIGNATURES:
        raise Refused(Reason.MALFORMED, f"A statement must have 1 to {MAX_SIGNATURES} signatures")
    return DsseEnvelope(_base64_bytes(envelope.get("payload")), tuple(map(_signature, signatures)))


def parse_statement(body: bytes) -> Statement:
    """The parsed statement; refused if it is not about the decisions behind a commit."""
    fields = _json_object(body)
    kinds = (fields.get("_type"), fields.get("predicateType"))
    if kinds != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise Refused(
            Reason.MALFORMED,
            f"This is not a statement about decisions; its predicateType is {kinds[1]!r}",
        )
    try:
        (subject,) = fields["subject"]
        commit = subject["digest"]["gitCommit"]
        made_decisions = tuple(map(decisions.from_json, fields["predicate"]["decisions"]))
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(Reason.MALFORMED, "The statement has no commit or no decisions") from error
    if not isinstance(commit, str):
        raise Refused(Reason.MALFORMED, "The commit of the statement is not a string")
    return Statement(commit, made_decisions)


def explain_statement(statement: Statement, key: str) -> str:
    """What a valid signature proves and what it does not, in one line."""
    made_decisions = statement.decisions
    approval = "; ".join(dict.fromkeys(map(_explain_approval, made_decisions))) or NO_APPROVAL
    names = ", ".join(decision.id for decision in made_decisions) or "no decision"
    firsts = sorted({decision.first_sha for decision in made_decisions} - {"", statement.commit})
    rewrite = f" (a rewrite of {', '.join(firsts)})" if firsts else ""
    cut = sum(bool(tool.call_digest) for made in made_decisions for tool in made.tool_executions)
    cuts = f" (calls of which it has only beginnings and a digest: {cut})" if cut else ""
    return (
        f"The server with the key {key} recorded {names} for commit {statement.commit}{rewrite}, "
        f"{approval}{cuts}; "
        "this does not prove that the code is correct, or that the server was honest"
    )


def _explain_approval(decision: DecisionCommit) -> str:
    """What approvals cover of a decision's commit: all, a part with its paths, or nothing."""
    if decision.approved_by:
        return f"approved by {', '.join(decision.approved_by)}"
    parts = [
        f"{entry.approver} for {', '.join(entry.paths[:MAX_SHOWN_PATHS])}"
        for entry in decision.coverage[:MAX_SHOWN_PATHS]
    ]
    if not parts:
        return NO_APPROVAL
    # Several people may cover all of it together, and none of them alone.
    how_much = "together" if decision.covers == WHOLE else "in part"
    return f"covered {how_much} by approvals of {'; '.join(parts)}"


def _json_object(text: str | bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_reject_duplicate_keys)
    except (ValueError, RecursionError) as error:
        raise Refused(Reason.MALFORMED, "This is not valid JSON") from error
    if not isinstance(value, dict):
        raise Refused(Reason.MALFORMED, "This is not a JSON object")
    return value


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Parsers disagree on duplicate keys, so a signed document must not have any."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("duplicate key")
    return value


def _signature(value: Any) -> Signature:
    if not isinstance(value, dict) or not isinstance(keyid := value.get("keyid", ""), str):
        raise Refused(Reason.MALFORMED, "A signature must have a keyid and a sig")
    return Signature(keyid, _base64_bytes(value.get("sig")))


def _base64_bytes(value: Any) -> bytes:
    """Decodes base64 of either alphabet, as DSSE allows; only the canonical form is accepted."""
    try:
        plain = value.replace("-", "+").replace("_", "/").encode("ascii")
        decoded = b64decode(plain, validate=True)
    except (AttributeError, ValueError) as error:
        raise Refused(Reason.MALFORMED, "payload and sig must be base64") from error
    if b64encode(decoded) != plain:
        raise Refused(
            Reason.MALFORMED,
            "payload and sig must be canonical base64, without stray bits at the end",
        )
    return decoded
