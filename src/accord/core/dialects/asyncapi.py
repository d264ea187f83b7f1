"""The streaming transports as AsyncAPI: channels and the messages on them."""

from functools import cache
from typing import Any

import msgspec

from accord.core.dialects import pvp, pvp_schema

PATH = "/asyncapi.json"
ASYNCAPI_VERSION = "3.0.0"
SENT = "sent"
RECEIVED = "heard"


@cache
def document(version: str) -> bytes:
    """The AsyncAPI document as JSON, for a server of this version."""
    return msgspec.json.format(msgspec.json.encode(build_document(version)), indent=1)


def build_document(version: str) -> dict[str, Any]:
    return {
        "asyncapi": ASYNCAPI_VERSION,
        "info": {
            "title": "Accord",
            "version": version,
            "description": (
                "Sessions of people and agents, in PVP v1. The response to a message arrives on the"
                " same channel: the message itself with its `seq`, or an `error`."
            ),
        },
        "defaultContentType": "application/json",
        "channels": {name: channel(name) for name in CHANNELS},
        "operations": dict(
            operation(name, direction)
            for name, (_, directions) in CHANNELS.items()
            for direction in directions
        ),
        "components": {
            "messages": {
                **{message_key(name): message(name) for name in sorted(pvp.BODIES)},
                RECEIVED: received_message(),
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
            },
        },
    }


# Per channel: its AsyncAPI description, and the directions of its messages.
CHANNELS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "websocket": (
        {
            "address": "/ws",
            "description": (
                "One envelope per text frame. Send the token in the `Authorization` header, as"
                " subprotocol `bearer.<token>` together with `pvp.v1`, or in `session.join`."
            ),
            "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0"}},
        },
        (SENT, RECEIVED),
    ),
    "events": (
        {
            "address": "/sessions/{id}/events",
            "description": (
                "Server-sent events: `id` is the message's id, `event` its type, `data` the"
                " envelope. `Last-Event-ID` resumes after that message."
            ),
            "parameters": {"id": {"description": "The session."}},
            "bindings": {"http": {"bindingVersion": "0.3.0"}},
        },
        (RECEIVED,),
    ),
    "stdio": (
        {
            "address": None,
            "description": (
                "`accord stdio`: one envelope per line on standard input and output; closing the"
                " input leaves the session."
            ),
        },
        (SENT, RECEIVED),
    ),
}


def channel(name: str) -> dict[str, Any]:
    """One channel with references to its messages."""
    description, directions = CHANNELS[name]
    keys = [message_key(body) for body in sorted(pvp.BODIES)] if SENT in directions else []
    pointers = {key: {"$ref": f"#/components/messages/{key}"} for key in (*keys, RECEIVED)}
    return {**description, "messages": pointers}


def operation(name: str, direction: str) -> tuple[str, dict[str, Any]]:
    """Sending or receiving on a channel, from the server's point of view as AsyncAPI requires."""
    keys = (
        [RECEIVED] if direction == RECEIVED else [message_key(body) for body in sorted(pvp.BODIES)]
    )
    at = f"#/channels/{name}"
    return f"{name}.{direction}", {
        "action": "send" if direction == RECEIVED else "receive",
        "channel": {"$ref": at},
        "security": [{"$ref": "#/components/securitySchemes/token"}],
        "messages": [{"$ref": f"{at}/messages/{key}"} for key in keys],
    }


def message(name: str) -> dict[str, Any]:
    """One message type that a client may send."""
    return {"name": name, "payload": {"$ref": f"{pvp_schema.PATH}#/$defs/send.{name}"}}


def received_message() -> dict[str, Any]:
    """Any message that the server sends."""
    return {
        "name": "envelope",
        "payload": {"$ref": f"{pvp_schema.PATH}#/$defs/{pvp_schema.RECEIVED_DEF}"},
    }


def message_key(name: str) -> str:
    """The component key of a message type; AsyncAPI allows no dots in keys."""
    return name.replace(".", "_")
