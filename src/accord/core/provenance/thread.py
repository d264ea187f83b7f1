"""A ConversationThread: what was said on the way to a commit, in three forms (PVP 18.6).

As the `conversation` of a note; as text for the trailer `PVP-Thread`, off by default; or as an
address where it is kept.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

from accord.core.kernel.refusal import Refused, Why

MOST_BYTES = 256 << 10  # of a thread from a trailer, unpacked
LONGEST_TRAILER = 16 << 10


class Utterance(NamedTuple):
    """One message: who said what, when; `type` is a PVP primitive."""

    id: str
    type: str
    sender: str
    content: str
    timestamp: str


class ConversationThread(NamedTuple):
    """What was said, in its order."""

    id: str
    messages: tuple[Utterance, ...] = ()


def to_json(thread: ConversationThread) -> dict[str, Any]:
    """The `conversation` of a note (OPEN-59)."""
    return {"thread_id": thread.id, "messages": [each._asdict() for each in thread.messages]}


def from_json(value: Any) -> ConversationThread:
    """As much as can be read of a note's `conversation`; what has another shape is left out."""
    fields = value if isinstance(value, dict) else {}
    messages = fields.get("messages")
    found = tuple(_utterances(messages if isinstance(messages, list) else []))
    return ConversationThread(str(fields.get("thread_id", "")), found)


def _utterances(messages: list[Any]) -> Iterator[Utterance]:
    for each in messages:
        if isinstance(each, dict) and isinstance(each.get("id"), str):
            yield Utterance(*(str(each.get(name, "")) for name in Utterance._fields))


def to_trailer(thread: ConversationThread) -> str:
    """Base64 of compressed JSON, on one line; refused where it would swamp the message."""
    plain = json.dumps(to_json(thread), separators=(",", ":"), sort_keys=True).encode()
    text = b64encode(zlib.compress(plain, 9)).decode()
    if len(text) > LONGEST_TRAILER:
        raise Refused(Why.TOO_LARGE, "The conversation is too long for a trailer; use the note")
    return text


def from_trailer(text: str) -> ConversationThread:
    """The thread in a trailer; refused when it is none, or unpacks to too much."""
    try:
        unpacker = zlib.decompressobj()
        plain = unpacker.decompress(b64decode(text.encode(), validate=True), MOST_BYTES)
        whole = unpacker.eof
        value = json.loads(plain) if whole else None
    except (ValueError, zlib.error, RecursionError) as error:
        raise Refused(Why.MALFORMED, "PVP-Thread holds no conversation") from error
    if value is None:
        raise Refused(Why.TOO_LARGE, "PVP-Thread is cut off, or holds too much")
    return from_json(value)


def reference(uri: str) -> dict[str, Any]:
    """The `conversation` of a note whose text is kept elsewhere."""
    return {"uri": uri}


def external(value: Any) -> str | None:
    """Where a note's conversation is kept, if not in the note."""
    uri = value.get("uri") if isinstance(value, dict) else None
    return uri if isinstance(uri, str) and uri else None
