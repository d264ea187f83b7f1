"""PVP v1 as JSON Schema, generated from the types that decode and encode it."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from accord.core.dialects import pvp
from accord.core.dialects.nesting import MAX_NESTING_DEPTH
from accord.core.dialects.refusals import Problem
from accord.core.kernel.ids import INVISIBLE_CHARACTERS
from accord.core.kernel.timestamps import TIMESTAMP_PATTERN
from accord.core.room.membership.joining import SessionJoin

Schema = dict[str, Any]

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
PATH = "/schema/v1/pvp.schema.json"
RECEIVED_DEF = "received"
# Definitions of the published schema whose name differs from that of their class.
PUBLIC_NAMES = {
    "DecisionStanding": "Standing",
    "AbsencePolicy": "OnTimeout",
    "MergeStrategy": "Strategy",
    **{body.__name__: body.type for body in pvp.BODIES.values()},
}
# Requirement ids mean nothing outside this project, so they are removed from descriptions.
SPEC_REFERENCE = re.compile(
    r" ?\((?:OPEN|UNI|PVP)[^)]*\)|^(?:OPEN-\d+|PVP [\d.]+): | of PVP [\d.]+"
)
VISIBLE: Schema = {"not": {"pattern": INVISIBLE_CHARACTERS}}


@cache
def document() -> bytes:
    """The schema as JSON: what a client may send, and in `$defs` what it will receive."""
    return msgspec.json.format(msgspec.json.encode(build_schema()), indent=1)


def build_schema() -> Schema:
    """The schema; it covers the form of messages, not whether the session accepts them."""
    defs = payload_definitions()
    sent = {f"send.{name}": client_envelope(name) for name in sorted(pvp.BODIES)}
    received = {RECEIVED_DEF: server_envelope()}
    return {
        "$schema": SCHEMA_DIALECT,
        "$id": PATH,
        "title": "PVP v1: what a client may send",
        "description": (
            f"One message: UTF-8, at most {pvp.MAX_MESSAGE_BYTES} bytes, a payload nested at most"
            f" {MAX_NESTING_DEPTH} levels deep, whole numbers written without a fraction. Fields"
            " that are not named here are ignored. What the server sends has the form of"
            f" `$defs/{RECEIVED_DEF}`."
        ),
        "oneOf": [ref(name) for name in sent],
        "$defs": dict(sorted({**defs, **sent, **received}.items())),
    }


def payload_definitions() -> dict[str, Schema]:
    """Every payload and the types it uses, by public name."""
    template = "#/$defs/{name}"
    _, shapes = msgspec.json.schema_components(
        [*pvp.BODIES.values(), Problem], ref_template=template
    )
    definitions = {public_name(name): tidy_schema(shape) for name, shape in shapes.items()}
    definitions[SessionJoin.type]["properties"]["token"] = {
        "description": "A signed token, if the connection has not sent one yet; never passed on."
    }
    return definitions


def client_envelope(name: str) -> Schema:
    """The envelope of one type, as a client sends it."""
    definitions = msgspec.json.schema(pvp.IncomingEnvelope)["$defs"]
    envelope: Schema = tidy_schema(definitions["IncomingEnvelope"])
    fields = envelope["properties"]
    fields["v"] = {"const": pvp.VERSION}
    fields["ts"] |= {"pattern": TIMESTAMP_PATTERN}
    fields["id"] |= VISIBLE
    fields["sender"] |= VISIBLE
    fields["type"] = {"const": name}
    fields["payload"] = ref(name)
    return envelope | {"title": name, "description": f"{name} in its envelope."}


def server_envelope() -> Schema:
    """The envelope of any type, as the server sends it."""
    definitions = msgspec.json.schema(pvp.OutgoingEnvelope)["$defs"]
    envelope: Schema = tidy_schema(definitions["OutgoingEnvelope"])
    problem = {"then": {"properties": {"payload": ref("Problem")}}}
    cases = [
        {"if": has_type(name), "then": {"properties": {"payload": ref(name)}}}
        for name in sorted(pvp.BODIES)
        if name != "error"
    ]
    envelope["properties"]["type"] = {"enum": sorted(pvp.PRIMITIVES)}
    envelope["properties"]["v"] = {"const": pvp.VERSION}
    return envelope | {
        "title": "What the server sends",
        "allOf": [*cases, {"if": has_type("error")} | problem],
    }


def has_type(name: str) -> Schema:
    """A condition that matches messages of this type."""
    return {"properties": {"type": {"const": name}}}


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def public_name(name: str) -> str:
    """The name of a class in the published schema."""
    return PUBLIC_NAMES.get(name, name)


def tidy_schema(shape: Any) -> Any:
    """The schema with public names and without requirement ids in descriptions."""
    if isinstance(shape, list):
        return [tidy_schema(item) for item in shape]
    return dict(tidy_entries(shape)) if isinstance(shape, dict) else shape


def tidy_entries(shape: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tidied entries; discriminators are dropped, because they are redundant OpenAPI."""
    for key, value in shape.items():
        match key, value:
            case "$ref", str():
                head, _, name = value.rpartition("/")
                yield key, f"{head}/{public_name(name)}"
            case "description", str():
                yield key, SPEC_REFERENCE.sub("", value).replace("\n", " ")
            case "title", str():
                yield key, public_name(value)
            case "discriminator", _:
                pass
            case _:
                yield key, tidy_schema(value)
