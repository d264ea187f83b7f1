"""Machine-readable API descriptions, generated from the tables that the server runs on."""

from collections.abc import Callable
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import accord
from accord.core.dialects import asyncapi, pvp_schema
from accord.transports.http.api_docs import openapi

HEADERS = {"cache-control": "public, max-age=300", "x-content-type-options": "nosniff"}
SCHEMA_JSON = "application/schema+json"
JSON = "application/json"
# Path, media type, and the function that generates the document (cached).
DOCUMENTS: tuple[tuple[str, str, Callable[[], bytes]], ...] = (
    (pvp_schema.PATH, SCHEMA_JSON, pvp_schema.document),
    (openapi.PATH, JSON, lambda: openapi.document(accord.__version__)),
    (asyncapi.PATH, JSON, lambda: asyncapi.document(accord.__version__)),
)


def routes() -> list[Route]:
    """One public route per document; they contain nothing private."""
    return [Route(path, document_handler(kind, make)) for path, kind, make in DOCUMENTS]


def document_handler(kind: str, make: Callable[[], bytes]) -> Callable[[Request], Response]:
    """A handler that supports `If-None-Match`."""

    def serve(request: Request) -> Response:
        data = make()
        tag = f'"{sha256(data).hexdigest()[:32]}"'
        headers = {**HEADERS, "etag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers, media_type=kind)

    return serve
