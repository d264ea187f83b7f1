"""PVP v1 as JSON Schema, made from the very types that read and write it."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from accord.core.dialects import pvp
from accord.core.dialects.nesting import DEEPEST
from accord.core.kernel.ids import UNSEEN
from accord.core.kernel.times import STAMP
from accord.core.room import conflicts, state
from accord.core.room.members import SessionJoin

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PATH = "/schema/v1/pvp.schema.json"
HEARD = "received"
# Two classes share their name; these are what readers get to see.
NAMES = {
    f"{state.Resolution.__module__}.Resolution": "GateResolution",
    f"{conflicts.Resolution.__module__}.Resolution": "MergeResolution",
    **{body.__name__: body.type for body in pvp.BODIES.values()},
}
# References to paragraphs mean nothing outside this project.
PARAGRAPH = re.compile(r" ?\((?:OPEN|UNI|PVP)[^)]*\)|^(?:OPEN-\d+|PVP [\d.]+): | of PVP [\d.]+")
VISIBLE: Schema = {"not": {"pattern": UNSEEN}}


@cache
def document() -> bytes:
    """The whole schema: what a client may send, and in `$defs` what it will hear."""
    return msgspec.json.format(msgspec.json.encode(whole()), indent=1)


def whole() -> Schema:
    """A message is in one of these forms; what it means where it is sent is not for a schema."""
    defs = shapes()
    said = {f"send.{name}": envelope(name) for name in sorted(pvp.BODIES)}
    heard = {HEARD: heard_envelope()}
    return {
        "$schema": DIALECT,
        "$id": PATH,
        "title": "PVP v1: what a client may send",
        "description": (
            f"One message: UTF-8, at most {pvp.LARGEST_MESSAGE} bytes, a payload nested at most"
            f" {DEEPEST} levels deep, whole numbers written without a fraction. Fields that are not"
            f" named here are ignored. What the server sends has the form of `$defs/{HEARD}`."
        ),
        "oneOf": [ref(name) for name in said],
        "$defs": dict(sorted({**defs, **said, **heard}.items())),
    }


def shapes() -> dict[str, Schema]:
    """Every payload and what it consists of, by its public name."""
    template = "#/$defs/{name}"
    _, found = msgspec.json.schema_components(
        [*pvp.BODIES.values(), pvp.Problem], ref_template=template
    )
    made = {public(name): tidy(shape) for name, shape in found.items()}
    made[SessionJoin.type]["properties"]["token"] = {
        "description": "A signed token, where the connection has none yet; never passed on."
    }
    return made


def envelope(name: str) -> Schema:
    """The envelope of one type, as a client sends it."""
    said: Schema = tidy(msgspec.json.schema(pvp.Envelope)["$defs"]["Envelope"])
    fields = said["properties"]
    fields["v"] = {"const": pvp.VERSION}
    fields["ts"] |= {"pattern": STAMP}
    fields["id"] |= VISIBLE
    fields["sender"] |= VISIBLE
    fields["type"] = {"const": name}
    fields["payload"] = ref(name)
    return said | {"title": name, "description": f"{name} in its envelope."}


def heard_envelope() -> Schema:
    """The envelope of any type, as the server sends it."""
    sent: Schema = tidy(msgspec.json.schema(pvp.Sent)["$defs"]["Sent"])
    problem = {"then": {"properties": {"payload": ref("Problem")}}}
    cases = [
        {"if": typed(name), "then": {"properties": {"payload": ref(name)}}}
        for name in sorted(pvp.BODIES)
        if name != "error"
    ]
    sent["properties"]["type"] = {"enum": sorted(pvp.PRIMITIVES)}
    sent["properties"]["v"] = {"const": pvp.VERSION}
    return sent | {
        "title": "What the server sends",
        "allOf": [*cases, {"if": typed("error")} | problem],
    }


def typed(name: str) -> Schema:
    """A message of this type."""
    return {"properties": {"type": {"const": name}}}


def ref(name: str) -> Schema:
    """A pointer to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def public(name: str) -> str:
    """What readers know a class by."""
    return NAMES.get(name, name)


def tidy(shape: Any) -> Any:
    """The shape with public names, and sentences that need no other document."""
    if isinstance(shape, list):
        return [tidy(each) for each in shape]
    return dict(tidied(shape)) if isinstance(shape, dict) else shape


def tidied(shape: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each entry of a shape; a discriminator is for OpenAPI and repeats what is there."""
    for key, value in shape.items():
        match key, value:
            case "$ref", str():
                head, _, name = value.rpartition("/")
                yield key, f"{head}/{public(name)}"
            case "description", str():
                yield key, PARAGRAPH.sub("", value).replace("\n", " ")
            case "title", str():
                yield key, public(value)
            case "discriminator", _:
                pass
            case _:
                yield key, tidy(value)
