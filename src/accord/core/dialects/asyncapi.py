"""The two-way transports as AsyncAPI: which channels there are, and what is said on them."""

from functools import cache
from typing import Any

import msgspec

from accord.core.dialects import pvp, schema

PATH = "/asyncapi.json"
VERSION = "3.0.0"
SENT = "sent"
HEARD = "heard"


@cache
def document(version: str) -> bytes:
    """The description, for a server of this version."""
    return msgspec.json.format(msgspec.json.encode(whole(version)), indent=1)


def whole(version: str) -> dict[str, Any]:
    """Channels, what is sent and what is heard."""
    return {
        "asyncapi": VERSION,
        "info": {
            "title": "Accord",
            "version": version,
            "description": (
                "Rooms of people and agents, in PVP v1. Answers to what a client sends come on the"
                " same channel: its own message with its `seq`, or an `error`."
            ),
        },
        "defaultContentType": "application/json",
        "channels": {name: channel(name) for name in CHANNELS},
        "operations": dict(
            operation(name, way) for name, (_, ways) in CHANNELS.items() for way in ways
        ),
        "components": {
            "messages": {
                **{sent(name): message(name) for name in sorted(pvp.BODIES)},
                HEARD: heard(),
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
            },
        },
    }


# Name, address, and which way messages go.
CHANNELS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "websocket": (
        {
            "address": "/ws",
            "description": (
                "One envelope per text frame. The token comes in the `Authorization` header, as"
                " subprotocol `bearer.<token>` beside `pvp.v1`, or in `session.join`."
            ),
            "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0"}},
        },
        (SENT, HEARD),
    ),
    "events": (
        {
            "address": "/sessions/{id}/events",
            "description": (
                "Server-sent events: `id` is the message's id, `event` its type, `data` the"
                " envelope. `Last-Event-ID` resumes behind that message."
            ),
            "parameters": {"id": {"description": "The session."}},
            "bindings": {"http": {"bindingVersion": "0.3.0"}},
        },
        (HEARD,),
    ),
    "stdio": (
        {
            "address": None,
            "description": (
                "`accord stdio`: one envelope per line on standard input and output; the end of"
                " the input leaves the session."
            ),
        },
        (SENT, HEARD),
    ),
}


def channel(name: str) -> dict[str, Any]:
    """One channel with the messages on it."""
    place, ways = CHANNELS[name]
    spoken = [sent(each) for each in sorted(pvp.BODIES)] if SENT in ways else []
    pointers = {each: {"$ref": f"#/components/messages/{each}"} for each in (*spoken, HEARD)}
    return {**place, "messages": pointers}


def operation(name: str, way: str) -> tuple[str, dict[str, Any]]:
    """Saying or hearing on a channel, seen from the server as AsyncAPI has it."""
    spoken = [HEARD] if way == HEARD else [sent(each) for each in sorted(pvp.BODIES)]
    at = f"#/channels/{name}"
    return f"{name}.{way}", {
        "action": "send" if way == HEARD else "receive",
        "channel": {"$ref": at},
        "security": [{"$ref": "#/components/securitySchemes/token"}],
        "messages": [{"$ref": f"{at}/messages/{each}"} for each in spoken],
    }


def message(name: str) -> dict[str, Any]:
    """One type a client may send."""
    return {"name": name, "payload": {"$ref": f"{schema.PATH}#/$defs/send.{name}"}}


def heard() -> dict[str, Any]:
    """Whatever the server sends."""
    return {"name": "envelope", "payload": {"$ref": f"{schema.PATH}#/$defs/{schema.HEARD}"}}


def sent(name: str) -> str:
    """The key of a type; a dot is not allowed in one."""
    return name.replace(".", "_")
