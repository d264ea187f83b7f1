"""Signed seats: that owner and reviewer were different keys, and not only different names."""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import rfc8785

from accord.core.work.check import Finding, is_known
from accord.core.work.state import Work
from accord.core.work.words import Kind, Status

FIELD = "signature"
KEY_BYTES = 32
# A key, what it signed, and the signature.
Verify = Callable[[str, bytes, str], bool]
Objects = Sequence[tuple[int, dict[str, Any]]]


def signed_bytes(found: Mapping[str, Any]) -> bytes | None:
    """What a seat signs: the event's canonical JSON without the signature; None if it has none."""
    payload = found.get("payload")
    if not isinstance(payload, Mapping):
        return None
    bare = {name: value for name, value in payload.items() if name != FIELD}
    try:
        return rfc8785.dumps({**found, "payload": bare})
    except (rfc8785.CanonicalizationError, RecursionError):
        return None


def with_signature(found: dict[str, Any], signature: str) -> dict[str, Any]:
    """The event with its signature at the end of its payload."""
    return {**found, "payload": {**found["payload"], FIELD: signature}}


def is_key(text: str) -> bool:
    """Whether this can be a seat's public key: 32 bytes in base64."""
    try:
        return len(base64.b64decode(text, validate=True)) == KEY_BYTES
    except (binascii.Error, ValueError):
        return False


def unproven(work: Work, objects: Objects, verify: Verify) -> Iterator[Finding]:
    """Everything that the signatures do not prove."""
    keys = {seat.id: seat.key for seat in work.seats if seat.key}
    for line, found in objects:
        if is_known(found.get("event_type")):
            said = _unsigned(found, keys, verify)
            if said:
                yield Finding("signature", line, said)
    for task in work.tasks.values():
        owner, reviewer = keys.get(task.owner), keys.get(task.reviewer)
        if task.status is Status.ACCEPTED and owner and owner == reviewer:
            said = f"{task.id}: {task.owner} and {task.reviewer} have one key, so they may be one"
            yield Finding("signature", 0, said)


def _unsigned(found: Mapping[str, Any], keys: Mapping[str, str], verify: Verify) -> str:
    agent = found.get("agent_id")
    key = keys.get(agent) if isinstance(agent, str) else None
    if not key:
        return f"{agent} has no key in the roster; nothing proves who this was"
    payload, data = found.get("payload"), signed_bytes(found)
    signature = payload.get(FIELD) if isinstance(payload, Mapping) else None
    if data is None or not isinstance(signature, str):
        return f"{agent} did not sign this {Kind(found['event_type']).value}"
    return "" if verify(key, data, signature) else f"This is not signed by the key of {agent}"
