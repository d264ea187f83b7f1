"""Signatures of seats, which prove that owner and reviewer hold different keys."""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from accord.core.work.ledger_validation import ValidationFinding, is_known_kind
from accord.core.work.state import Work
from accord.core.work.vocabulary import EventKind, TaskStatus

SIGNATURE_FIELD = "signature"
# Digest of the previous line, so that no event can be removed or moved to another log.
PREVIOUS_LINE_FIELD = "after"
# Digest of the accepted evidence, so that it cannot be replaced afterwards.
EVIDENCE_FIELD = "shown"
KEY_BYTES = 32
# Arguments: public key, signed data, signature.
Verifier = Callable[[str, bytes, str], bool]
LogObjects = Sequence[tuple[int, dict[str, Any]]]


def bytes_to_sign(event: Mapping[str, Any]) -> bytes | None:
    """The event's canonical JSON without its signature; None if it cannot be canonicalised."""
    import rfc8785

    payload = event.get("payload")
    if not isinstance(payload, Mapping):
        return None
    bare = {name: value for name, value in payload.items() if name != SIGNATURE_FIELD}
    try:
        return rfc8785.dumps({**event, "payload": bare})
    except (rfc8785.CanonicalizationError, RecursionError):
        return None


def sha256_hex(data: bytes) -> str:
    """The SHA-256 digest in hexadecimal."""
    return sha256(data).hexdigest()


def with_signed_context(event: dict[str, Any], before: bytes, work: Work) -> dict[str, Any]:
    """The event plus what its signature must cover: the previous line, and accepted evidence."""
    more = {PREVIOUS_LINE_FIELD: sha256_hex(before)} if before else {}
    task = work.tasks.get(event["task_id"])
    if event["event_type"] == EventKind.ACCEPT and task:
        more[EVIDENCE_FIELD] = sha256_hex(task.evidence.encode())
    return {**event, "payload": {**event["payload"], **more}}


def with_signature(event: dict[str, Any], signature: str) -> dict[str, Any]:
    """The event with its signature at the end of its payload."""
    return {**event, "payload": {**event["payload"], SIGNATURE_FIELD: signature}}


def is_key(text: str) -> bool:
    """Whether this is a seat's public key: 32 bytes in canonical base64."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(raw) == KEY_BYTES and base64.b64encode(raw).decode() == text


def find_unproven(
    work: Work, objects: LogObjects, lines: Sequence[bytes], verify: Verifier
) -> Iterator[ValidationFinding]:
    """Findings for whatever the signatures do not prove; `lines` are the log's raw lines."""
    keys = {seat.id: seat.key for seat in work.seats if is_key(seat.key)}
    known = frozenset(sha256_hex(raw) for raw in lines)
    first = True
    for line, event in objects:
        if not is_known_kind(event.get("event_type")):
            continue
        is_first_init, first = first and event["event_type"] == EventKind.INIT, False
        problem = _signature_error(event, keys, verify) or (
            "" if is_first_init else _link_error(event, known)
        )
        problem = problem or _evidence_error(event, work)
        if problem:
            yield ValidationFinding("signature", line, problem)
    for task in work.tasks.values():
        owner, reviewer = keys.get(task.owner), keys.get(task.reviewer)
        if task.status is TaskStatus.ACCEPTED and owner and owner == reviewer:
            problem = (
                f"{task.id}: {task.owner} and {task.reviewer} have the same key, "
                "so they may be the same person"
            )
            yield ValidationFinding("signature", 0, problem)


def is_signed_by_reviewer(event: Mapping[str, Any], work: Work, verify: Verifier) -> bool:
    """Whether the reviewer's key signed this verdict and differs from the owner's key."""
    keys = {seat.id: seat.key for seat in work.seats if is_key(seat.key)}
    task = work.tasks[event["task_id"]]
    has_distinct_keys = keys.get(task.owner) != keys.get(task.reviewer)
    return (
        has_distinct_keys
        and not _signature_error(event, keys, verify)
        and not _evidence_error(event, work)
    )


def _link_error(event: Mapping[str, Any], known: frozenset[str]) -> str:
    after = event["payload"].get(PREVIOUS_LINE_FIELD)
    if not isinstance(after, str):
        return "Its signature does not cover the previous line, so it may come from another log"
    if after not in known:
        return "The line before it was removed or changed, or it was signed for another log"
    return ""


def _evidence_error(event: Mapping[str, Any], work: Work) -> str:
    """The problem if an acceptance covers other evidence than the log now has."""
    task = work.tasks.get(str(event.get("task_id")))
    if (
        event["event_type"] != EventKind.ACCEPT
        or not task
        or task.status is not TaskStatus.ACCEPTED
    ):
        return ""
    if event["payload"].get(EVIDENCE_FIELD) == sha256_hex(task.evidence.encode()):
        return ""
    return f"{task.reviewer} accepted other evidence for {task.id} than the log has"


def _signature_error(event: Mapping[str, Any], keys: Mapping[str, str], verify: Verifier) -> str:
    agent = event.get("agent_id")
    key = keys.get(agent) if isinstance(agent, str) else None
    if not key:
        return f"{agent} has no key in the roster, so nothing proves who wrote this"
    payload, data = event.get("payload"), bytes_to_sign(event)
    signature = payload.get(SIGNATURE_FIELD) if isinstance(payload, Mapping) else None
    if data is None or not isinstance(signature, str):
        return f"{agent} did not sign this {EventKind(event['event_type']).value}"
    return (
        "" if verify(key, data, signature) else f"The signature does not match the key of {agent}"
    )
