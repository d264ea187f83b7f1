"""Everything that can be asked over HTTP as OpenAPI, from the tables the routes are made of."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from accord.core.dialects import asyncapi, schema
from accord.core.dialects.schema import Schema, public, tidy
from accord.transports import answers
from accord.transports.catalogue import ROUTES
from accord.transports.endpoint import Endpoint, Query
from accord.transports.identity import Issued, PublicKey
from accord.transports.operator import Wish

PATH = "/openapi.json"
VERSION = "3.1.0"
JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"
EVENTS = "text/event-stream"
PARAMETER = re.compile(r"{(\w+)}")
MESSAGES = "/sessions/{id}/messages"

# What comes back where it is JSON.
SHAPES: dict[tuple[str, str], type] = {
    ("POST", MESSAGES): answers.Posted,
    ("GET", MESSAGES): answers.Messages,
    ("GET", "/sessions"): answers.Sessions,
    ("GET", "/sessions/{id}"): answers.Detail,
    ("GET", "/sessions/{id}/context"): answers.Item,
    ("GET", "/sessions/{id}/transcript"): answers.Transcript,
    ("POST", "/admin/tokens"): Issued,
    ("GET", "/admin/tokens"): answers.Tokens,
    ("GET", "/admin/keys"): answers.Keys,
    ("GET", "/admin/repos/{repo}/commits/{sha}/statement"): answers.SignedStatement,
    ("POST", "/admin/keys"): PublicKey,
}
NAMED = {
    "id": "The session; in a POST, `new` for a session that is to be created.",
    "jti": "The token's own id, which is not the token.",
    "repo": "The repository's id, `accord.repo` in its configuration.",
    "sha": "The commit's full id.",
}


class Plain(NamedTuple):
    """A page that needs no token."""

    path: str
    kind: str
    summary: str
    also: tuple[int, ...] = ()


PLAIN = (
    Plain("/", HTML, "A page for people."),
    Plain("/healthz", TEXT, "Whether the server answers at all."),
    Plain("/readyz", JSON, "Whether the server can work.", (503,)),
    Plain("/metrics", TEXT, "Figures for Prometheus, for this machine or an operator.", (401, 403)),
    Plain(schema.PATH, "application/schema+json", "PVP v1 as JSON Schema.", (304,)),
    Plain(PATH, JSON, "This description.", (304,)),
    Plain(asyncapi.PATH, JSON, "The two-way transports as AsyncAPI.", (304,)),
)


@cache
def document(version: str) -> bytes:
    """The description, for a server of this version."""
    return msgspec.json.format(msgspec.json.encode(whole(version)), indent=1)


def whole(version: str) -> Schema:
    """Paths, and the shapes they speak of."""
    return {
        "openapi": VERSION,
        "info": {
            "title": "Accord",
            "version": version,
            "description": "Rooms where people and agents decide together.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths(),
        "components": {
            "schemas": shapes(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
            },
        },
    }


def paths() -> Schema:
    """Every path with its methods."""
    made: Schema = {each.path: {"get": plain(each)} for each in PLAIN}
    for row in ROUTES:
        made.setdefault(row.path, {})[row.method.lower()] = operation(row)
    return made


def plain(page: Plain) -> Schema:
    """A page without a token."""
    further = {str(code): {"description": "Not now."} for code in page.also}
    answer = {"description": page.summary, "content": {page.kind: {"schema": {}}}}
    return {
        "summary": page.summary,
        "security": [],
        "responses": {"200": answer, **further, "default": refused(answers.Refusal)},
    }


def operation(row: Endpoint) -> Schema:
    """One row of the tables."""
    made: Schema = {
        "operationId": row.handler.__name__,
        "summary": row.summary,
        "security": [{"token": []}],
        "parameters": [*in_path(row.path), *map(in_query, row.query)],
        "responses": {
            **{str(code): answer(row, kind) for code, kind in row.answers.items()},
            "default": refused(failure_of(row)),
        },
    }
    if row.body:
        body = ref("Message") if row.body == "envelope" else ref(Wish.__name__)
        made["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return made


def in_path(path: str) -> Iterator[Schema]:
    """What stands in the path."""
    for name in PARAMETER.findall(path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": NAMED[name],
            "schema": {"type": "string", "minLength": 1},
        }


def in_query(query: Query) -> Schema:
    """A parameter of the query."""
    kind: Schema = {"type": "string"}
    if query.most is not None:
        kind = {"type": "integer", "minimum": query.least, "maximum": query.most}
    if query.usual is not None:
        kind["default"] = query.usual
    return {"name": query.name, "in": "query", "description": query.meaning, "schema": kind}


def answer(row: Endpoint, kind: str) -> Schema:
    """What comes back."""
    said = {"description": row.summary}
    if kind == "nothing":
        return said
    if kind == "events":
        return said | {"content": {EVENTS: {"schema": {}}}}
    shape = SHAPES[row.method, row.path]
    return said | {"content": {JSON: {"schema": ref(shape.__name__)}}}


def failure_of(row: Endpoint) -> type | None:
    """An envelope is answered with one; everything else with a plain refusal."""
    return None if row.body == "envelope" else answers.Refusal


def refused(shape: type | None) -> Schema:
    """What comes back instead."""
    schema = ref(answers.Received.__name__ if shape is None else shape.__name__)
    return {"description": "Refused; nothing was changed.", "content": {JSON: {"schema": schema}}}


def ref(name: str) -> Schema:
    """A pointer to a shape."""
    return {"$ref": f"#/components/schemas/{name}"}


def shapes() -> dict[str, Schema]:
    """Everything the paths speak of; PVP's own shapes come from its schema."""
    told = [*SHAPES.values(), answers.Refusal, Wish]
    _, found = msgspec.json.schema_components(told, ref_template="#/components/schemas/{name}")
    made: dict[str, Schema] = {public(name): tidy(shape) for name, shape in found.items()}
    spoken = moved(schema.whole())
    made |= spoken["$defs"]
    made["Message"] = {"oneOf": spoken["oneOf"], "description": "What a client may send."}
    made[answers.Received.__name__] = ref(schema.HEARD)
    return dict(sorted(made.items()))


def moved(part: Any) -> Any:
    """The same with its pointers as they are inside this document."""
    if isinstance(part, list):
        return [moved(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {key: pointed(key, value) for key, value in part.items()}


def pointed(key: str, value: Any) -> Any:
    """One entry of it."""
    if key == "$ref" and isinstance(value, str):
        return value.replace("#/$defs/", "#/components/schemas/")
    return moved(value)
