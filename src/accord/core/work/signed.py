"""Signed seats: that owner and reviewer were different keys, and not only different names."""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from accord.core.work.check import Finding, is_known
from accord.core.work.state import Work
from accord.core.work.words import Kind, Status

FIELD = "signature"
# The line before, so that no event can be taken out or put into another log.
AFTER = "after"
# What an accept has seen, so that nothing else can be put in its place.
SHOWN = "shown"
KEY_BYTES = 32
# A key, what it signed, and the signature.
Verify = Callable[[str, bytes, str], bool]
Objects = Sequence[tuple[int, dict[str, Any]]]


def signed_bytes(found: Mapping[str, Any]) -> bytes | None:
    """What a seat signs: the event's canonical JSON without the signature; None if it has none."""
    import rfc8785

    payload = found.get("payload")
    if not isinstance(payload, Mapping):
        return None
    bare = {name: value for name, value in payload.items() if name != FIELD}
    try:
        return rfc8785.dumps({**found, "payload": bare})
    except (rfc8785.CanonicalizationError, RecursionError):
        return None


def digest(data: bytes) -> str:
    """What names a line, or a text, and no other one."""
    return sha256(data).hexdigest()


def linked(found: dict[str, Any], before: bytes, work: Work) -> dict[str, Any]:
    """The event with what a signature should hold fast: what came before, and what was judged."""
    more = {AFTER: digest(before)} if before else {}
    task = work.tasks.get(found["task_id"])
    if found["event_type"] == Kind.ACCEPT and task:
        more[SHOWN] = digest(task.evidence.encode())
    return {**found, "payload": {**found["payload"], **more}}


def with_signature(found: dict[str, Any], signature: str) -> dict[str, Any]:
    """The event with its signature at the end of its payload."""
    return {**found, "payload": {**found["payload"], FIELD: signature}}


def is_key(text: str) -> bool:
    """Whether this can be a seat's public key: 32 bytes in base64, in their one spelling."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(raw) == KEY_BYTES and base64.b64encode(raw).decode() == text


def unproven(
    work: Work, objects: Objects, lines: Sequence[bytes], verify: Verify
) -> Iterator[Finding]:
    """Everything that the signatures do not prove; `lines` are the log's, as they stand."""
    keys = {seat.id: seat.key for seat in work.seats if is_key(seat.key)}
    known = frozenset(digest(raw) for raw in lines)
    first = True
    for line, found in objects:
        if not is_known(found.get("event_type")):
            continue
        opens, first = first and found["event_type"] == Kind.INIT, False
        said = _unsigned(found, keys, verify) or ("" if opens else _unlinked(found, known))
        said = said or _other(found, work)
        if said:
            yield Finding("signature", line, said)
    for task in work.tasks.values():
        owner, reviewer = keys.get(task.owner), keys.get(task.reviewer)
        if task.status is Status.ACCEPTED and owner and owner == reviewer:
            said = f"{task.id}: {task.owner} and {task.reviewer} have one key, so they may be one"
            yield Finding("signature", 0, said)


def seals(found: Mapping[str, Any], work: Work, verify: Verify) -> bool:
    """Whether the reviewer's key signed this verdict, and is not the owner's as well."""
    keys = {seat.id: seat.key for seat in work.seats if is_key(seat.key)}
    task = work.tasks[found["task_id"]]
    apart = keys.get(task.owner) != keys.get(task.reviewer)
    return apart and not _unsigned(found, keys, verify) and not _other(found, work)


def _unlinked(found: Mapping[str, Any], known: frozenset[str]) -> str:
    after = found["payload"].get(AFTER)
    if not isinstance(after, str):
        return "Its signature does not say what came before, so it may be from elsewhere"
    if after not in known:
        return "The line before it is gone or was changed, or it was signed for another log"
    return ""


def _other(found: Mapping[str, Any], work: Work) -> str:
    """An accept that saw something else than the log now shows."""
    task = work.tasks.get(str(found.get("task_id")))
    if found["event_type"] != Kind.ACCEPT or not task or task.status is not Status.ACCEPTED:
        return ""
    if found["payload"].get(SHOWN) == digest(task.evidence.encode()):
        return ""
    return f"{task.reviewer} accepted other evidence for {task.id} than the log has"


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
