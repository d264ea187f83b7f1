"""The HTTP API as OpenAPI, generated from the endpoint tables."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec

from accord.api import (
    decisions,
    git_hooks,
    home,
    pacts,
    people,
    policies,
    responses,
    threads,
    tokens,
)
from accord.core.dialects import asyncapi, msg, pvp_schema
from accord.core.dialects.pvp_schema import Schema, public_name, tidy_schema
from accord.transports.http.endpoint import Endpoint, QueryParameter
from accord.transports.http.routing_table import ALL_ENDPOINTS
from accord.transports.msg.method_table import METHODS

PATH = "/openapi.json"
VERSION = "3.1.0"
JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"
EVENTS = "text/event-stream"
PATH_PARAMETER = re.compile(r"{(\w+)}")
MESSAGES_PATH = "/sessions/{id}/messages"

# Types of JSON responses.
RESPONSE_TYPES: dict[tuple[str, str], type] = {
    ("POST", MESSAGES_PATH): responses.MessageReceipt,
    ("GET", MESSAGES_PATH): responses.MessageList,
    ("GET", "/home"): home.Home,
    ("GET", "/decisions"): decisions.DecisionList,
    ("GET", "/decisions/{decision}"): decisions.DecisionDetail,
    ("GET", "/pacts"): pacts.PactList,
    ("GET", "/pacts/{repo}"): pacts.PactBoard,
    ("GET", "/sessions"): responses.SessionList,
    ("GET", "/sessions/{id}"): responses.SessionDetail,
    ("GET", "/sessions/{id}/context"): responses.ContextItemDetail,
    ("GET", "/sessions/{id}/transcript"): responses.TranscriptPage,
    ("GET", "/sessions/{id}/turns"): responses.TurnsPage,
    ("POST", "/admin/tokens"): tokens.IssuedToken,
    ("GET", "/admin/tokens"): tokens.TokenList,
    ("GET", "/admin/keys"): tokens.KeyList,
    ("GET", "/admin/repos/{repo}/commits/{sha}/statement"): tokens.SignedStatement,
    ("POST", "/admin/keys"): tokens.PublicKey,
    ("GET", "/policies/{repository}"): policies.SignedPolicyText,
    ("POST", "/admin/policies"): policies.SignedPolicyText,
    ("POST", "/sessions/{id}/standing-grants"): policies.GivenStandingGrant,
    ("POST", "/sign-in"): people.SignedIn,
    ("GET", "/sign-in"): people.Account,
    ("POST", "/sign-in/refresh"): people.RefreshedToken,
    ("POST", "/sign-in/agents"): people.SignedIn,
    ("GET", "/sign-in/devices"): people.DeviceList,
    ("POST", "/admin/invitations"): people.IssuedInvitation,
    ("GET", "/admin/invitations"): people.InvitationList,
    ("GET", "/admin/devices"): people.DeviceList,
    ("GET", "/admin/people"): people.PersonList,
    ("DELETE", "/admin/people/{person}"): people.Removal,
    ("POST", "/git/{action}"): git_hooks.GitHookAnswer,
    **{("POST", f"{msg.ROOT}/{name}"): method.result for name, method in METHODS.items()},
}
# Types of JSON request bodies; that of an envelope is PVP's own.
REQUEST_TYPES: dict[str, type] = {
    "token": tokens.TokenRequest,
    "sign_in": people.SignInRequest,
    "proof": people.RefreshRequest,
    "agent": people.AgentEnrolment,
    "invitation": people.InvitationRequest,
    "policy": policies.PolicyRequest,
    "standing_grant": policies.StandingGrantRequest,
    "git_action": git_hooks.GitHookRequest,
}
REQUEST_NAMES = frozenset(
    shape.__name__
    for shape in (*REQUEST_TYPES.values(), *(method.request for method in METHODS.values()))
)
# Names of the types that the server sends with exactly the declared fields.
RESPONSE_OBJECTS = frozenset(
    name
    for module in (responses, home, tokens, people, policies, threads, decisions, pacts)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, responses.ResponseObject)
)
PATH_PARAMETER_TEXTS = {
    "id": "The session id; in a POST, `new` to create a session.",
    "jti": "The token's id (`jti`), not the token itself.",
    "repo": "The repository's id, `accord.repo` in its configuration.",
    "repository": "The repository's id, `accord.repo` in its configuration.",
    "grant": "The standing grant's id.",
    "sha": "The commit's full id.",
    "decision": "The decision's id, which begins with `dec_`.",
    "device": "The device's id.",
    "person": "The person's id.",
    "action": "The action, such as `commit-context` or `commit-created`.",
    "invitation": "The invitation's id, not its code.",
}


class PublicPage(NamedTuple):
    """A page that needs no token."""

    path: str
    media_type: str
    summary: str
    other_statuses: tuple[int, ...] = ()


PUBLIC_PAGES = (
    PublicPage("/", HTML, "A start page for browsers."),
    PublicPage("/healthz", TEXT, "Whether the server is running."),
    PublicPage("/readyz", JSON, "Whether the server is ready.", (503,)),
    PublicPage(
        "/metrics", TEXT, "Prometheus metrics, for this machine or an operator.", (401, 403)
    ),
    PublicPage(pvp_schema.PATH, "application/schema+json", "PVP v1 as JSON Schema.", (304,)),
    PublicPage(PATH, JSON, "This description.", (304,)),
    PublicPage(asyncapi.PATH, JSON, "The WebSocket and stdio transports as AsyncAPI.", (304,)),
)


@cache
def document(version: str) -> bytes:
    """The OpenAPI document as JSON."""
    return msgspec.json.format(msgspec.json.encode(build_document(version)), indent=1)


def build_document(version: str) -> Schema:
    return {
        "openapi": VERSION,
        "info": {
            "title": "Accord",
            "version": version,
            "description": "Rooms where people and agents decide together.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": build_paths(),
        "components": {
            "schemas": component_schemas(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "cookie": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "accord-SERVER",
                    "description": "Set by `POST /sign-in`; from the server's own pages only.",
                },
            },
        },
    }


def build_paths() -> Schema:
    """All paths with their methods."""
    result: Schema = {item.path: {"get": public_operation(item)} for item in PUBLIC_PAGES}
    for endpoint in ALL_ENDPOINTS:
        result.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation(endpoint)
    return result


def public_operation(page: PublicPage) -> Schema:
    """The operation of a public page."""
    others = {
        str(code): {"description": "Not available, or not modified."}
        for code in page.other_statuses
    }
    success = {"description": page.summary, "content": {page.media_type: {"schema": {}}}}
    return {
        "summary": page.summary,
        "security": [],
        "responses": {"200": success, **others, "default": error_response(responses.ErrorResponse)},
    }


def operation(endpoint: Endpoint) -> Schema:
    """The operation of an endpoint."""
    result: Schema = {
        "operationId": endpoint.handler.__name__,
        "summary": endpoint.summary,
        "security": [] if endpoint.is_public else [{"token": []}, {"cookie": []}],
        "parameters": [*path_parameters(endpoint.path), *map(query_parameter, endpoint.query)],
        "responses": {
            **{
                str(code): response_schema(endpoint, kind)
                for code, kind in endpoint.responses.items()
            },
            "default": error_response(error_type_of(endpoint)),
        },
    }
    if endpoint.body:
        body = schema_ref(request_schema_name(endpoint))
        result["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return result


def request_schema_name(endpoint: Endpoint) -> str:
    """The name of the schema of a request body."""
    if endpoint.body == "envelope":
        return "Message"
    if endpoint.body == "method":
        return METHODS[endpoint.path.rpartition("/")[2]].request.__name__
    return REQUEST_TYPES[endpoint.body].__name__


def path_parameters(path: str) -> Iterator[Schema]:
    for name in PATH_PARAMETER.findall(path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": PATH_PARAMETER_TEXTS[name],
            "schema": {"type": "string", "minLength": 1},
        }


def query_parameter(query: QueryParameter) -> Schema:
    kind: Schema = {"type": "string"}
    if query.maximum is not None:
        kind = {"type": "integer", "minimum": query.minimum, "maximum": query.maximum}
    if query.default is not None:
        kind["default"] = query.default
    return {"name": query.name, "in": "query", "description": query.description, "schema": kind}


def response_schema(endpoint: Endpoint, kind: str) -> Schema:
    response = {"description": endpoint.summary}
    if kind == "nothing":
        return response
    if kind == "events":
        return response | {"content": {EVENTS: {"schema": {}}}}
    shape = RESPONSE_TYPES[endpoint.method, endpoint.path]
    return response | {"content": {JSON: {"schema": schema_ref(shape.__name__)}}}


def error_type_of(endpoint: Endpoint) -> type | None:
    """None for the message endpoint, whose errors are PVP envelopes."""
    if endpoint.body == "method":
        return threads.MethodError
    return None if endpoint.body == "envelope" else responses.ErrorResponse


def error_response(shape: type | None) -> Schema:
    schema = schema_ref(responses.RECEIVED_ENVELOPE if shape is None else shape.__name__)
    return {"description": "Refused; nothing was changed.", "content": {JSON: {"schema": schema}}}


def schema_ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def component_schemas() -> dict[str, Schema]:
    """All referenced schemas; those of PVP come from its own schema."""
    types = [
        *RESPONSE_TYPES.values(),
        home.SessionHome,  # the data of events of `/home/events`
        home.ThreadHome,
        responses.ErrorResponse,
        threads.MethodError,
        *REQUEST_TYPES.values(),
        *(method.request for method in METHODS.values()),
    ]
    _, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    result: dict[str, Schema] = {
        public_name(name): tidy_schema(
            with_repeated_items(shape) if name in REQUEST_NAMES else shape | closed_object(name)
        )
        for name, shape in components.items()
    }
    pvp_parts = with_component_refs(pvp_schema.build_schema())
    result |= pvp_parts["$defs"]
    result["Message"] = {"oneOf": pvp_parts["oneOf"], "description": "What a client may send."}
    result[responses.RECEIVED_ENVELOPE] = schema_ref(pvp_schema.RECEIVED_DEF)
    return dict(sorted(result.items()))


def closed_object(name: str) -> Schema:
    """What forbids further fields in a response object; empty for every other schema."""
    return {"additionalProperties": False} if name in RESPONSE_OBJECTS else {}


def with_repeated_items(part: Any) -> Any:
    """The schema of a request: a set is accepted with an item that is there twice."""
    if isinstance(part, list):
        return [with_repeated_items(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {k: with_repeated_items(value) for k, value in part.items() if k != "uniqueItems"}


def with_component_refs(part: Any) -> Any:
    """Rewrite the references of a standalone schema for use inside this document."""
    if isinstance(part, list):
        return [with_component_refs(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {key: rewrite_ref(key, value) for key, value in part.items()}


def rewrite_ref(key: str, value: Any) -> Any:
    if key == "$ref" and isinstance(value, str):
        return value.replace("#/$defs/", "#/components/schemas/")
    return with_component_refs(value)
