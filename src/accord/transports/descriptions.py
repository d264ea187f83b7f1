"""What this server speaks, for programs: descriptions made from the tables it runs by."""

from collections.abc import Callable
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import accord
from accord.core.dialects import asyncapi, schema
from accord.transports import openapi

HEADERS = {"cache-control": "public, max-age=300", "x-content-type-options": "nosniff"}
SCHEMA_JSON = "application/schema+json"
JSON = "application/json"
# Path, media type, and what makes the bytes the first time somebody asks.
TABLE: tuple[tuple[str, str, Callable[[], bytes]], ...] = (
    (schema.PATH, SCHEMA_JSON, schema.document),
    (openapi.PATH, JSON, lambda: openapi.document(accord.__version__)),
    (asyncapi.PATH, JSON, lambda: asyncapi.document(accord.__version__)),
)


def routes() -> list[Route]:
    """A path for each; they tell nothing of anybody and need no token."""
    return [Route(path, served(kind, make)) for path, kind, make in TABLE]


def served(kind: str, make: Callable[[], bytes]) -> Callable[[Request], Response]:
    """The document, or that the caller has it already."""

    def serve(request: Request) -> Response:
        data = make()
        tag = f'"{sha256(data).hexdigest()[:32]}"'
        headers = {**HEADERS, "etag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=kind)

    return serve
