"""The tags by which a context item of a session carries a message's kind and metadata (UNI-8)."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from accord.core.room.threads.state import MessageKind

CHAT_TAG = MessageKind.CHAT.value
EVENT_TAG = "event:"
METADATA_TAG = "metadata:"

_event_type = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII).fullmatch


def is_event_type(name: object) -> bool:
    """Whether this can be the type of an event."""
    return isinstance(name, str) and _event_type(name) is not None


def tags_of(kind: MessageKind, metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The tags of a context item that carries a message with this metadata."""
    if kind is MessageKind.EVENT:
        others = {name: value for name, value in metadata.items() if name != "event_type"}
        return (f"{EVENT_TAG}{metadata['event_type']}", *metadata_tags(others))
    return (CHAT_TAG, *metadata_tags(metadata))


def metadata_tags(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    encoded = msgspec.json.encode(metadata, order="deterministic").decode()
    return (METADATA_TAG + encoded,) if metadata else ()


def metadata_in(tags: tuple[str, ...]) -> dict[str, Any]:
    """The metadata that these tags carry; tags that are not ours carry none."""
    found: dict[str, Any] = {}
    for tag in tags:
        if tag.startswith(METADATA_TAG):
            try:
                found |= msgspec.json.decode(tag.removeprefix(METADATA_TAG), type=dict[str, Any])
            except (msgspec.MsgspecError, RecursionError):
                continue
        elif is_event_type(name := tag.removeprefix(EVENT_TAG)) and name != tag:
            found["event_type"] = name
    return found
