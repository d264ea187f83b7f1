"""The web page: its built files, the addresses at which it answers, and its security headers."""

import gzip
import re
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

import accord

# `make page` writes it; it is part of the package, so running a server does not need Node.
BUILT_PAGE = Path(accord.__file__).parent / "page"
INDEX = "/index.html"
ASSETS_ROOT = "/assets/"
# Addresses of screens. What is below them is the page's own business.
PAGE_ADDRESS = re.compile(
    r"/(?:(?:s|g|why|board|threads|docket)(?:/.*)?|people|settings|grants)?", re.ASCII
)
# Programs ask here who they are; only a browser that navigates gets the page.
SHARED_ADDRESS = "/sign-in"
SAFE_METHODS = frozenset({"GET", "HEAD"})
COMPRESSED_TYPES = ("text/", "application/", "image/svg+xml")
MIN_COMPRESSED_BYTES = 512
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
# Only our own files, no HTML made of strings, no frames, and no word to other sites.
DIRECTIVES = {
    "default-src": "'none'",
    **dict.fromkeys(("script-src", "style-src", "img-src", "font-src"), "'self'"),
    **dict.fromkeys(("connect-src", "manifest-src", "worker-src"), "'self'"),
    **dict.fromkeys(("base-uri", "form-action", "frame-ancestors"), "'none'"),
    "require-trusted-types-for": "'script'",
    # The address of the worker that shows notices on phones; nothing else needs a policy.
    "trusted-types": "accord-notices",
}
PAGE_HEADERS = {
    "content-security-policy": "; ".join(map(" ".join, DIRECTIVES.items())),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
# A built file's name contains its digest, so it never changes.
IMMUTABLE = "public, max-age=31536000, immutable"
ALWAYS_ASK = "no-cache"


class PageFile(NamedTuple):
    """A file of the page, ready to be sent."""

    data: bytes
    compressed: bytes | None
    headers: Mapping[str, str]
    etag: str

    def response(self, request: Request) -> Response:
        if request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers={**self.headers, "etag": self.etag})
        headers = {**self.headers, "etag": self.etag, "vary": "accept-encoding"}
        accepted = request.headers.get("accept-encoding", "")
        if self.compressed is not None and "gzip" in accepted:
            return Response(self.compressed, headers={**headers, "content-encoding": "gzip"})
        return Response(self.data, headers=headers)


@cache
def page_files(folder: Path = BUILT_PAGE) -> Mapping[str, PageFile]:
    """All files by path, with digests and compressed; there are few, and they stay in memory."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix in MEDIA_TYPES)
    return {f"/{path.relative_to(folder).as_posix()}": load(path, folder) for path in found}


def load(path: Path, folder: Path) -> PageFile:
    data, kind = path.read_bytes(), MEDIA_TYPES[path.suffix]
    is_asset = f"/{path.relative_to(folder).as_posix()}".startswith(ASSETS_ROOT)
    compressible = kind.startswith(COMPRESSED_TYPES) and len(data) >= MIN_COMPRESSED_BYTES
    headers = {
        **PAGE_HEADERS,
        "content-type": kind,
        "cache-control": IMMUTABLE if is_asset else ALWAYS_ASK,
    }
    compressed = gzip.compress(data, 9, mtime=0) if compressible else None
    return PageFile(data, compressed, headers, f'"{sha256(data).hexdigest()[:32]}"')


async def page(request: Request) -> Response:
    """The page; which screen it shows depends on the address."""
    return page_files()[INDEX].response(request)


def wants_page(path: str, accept: str) -> bool:
    """Whether a browser that comes here is to see the page."""
    if path == SHARED_ADDRESS:
        return "text/html" in accept
    return PAGE_ADDRESS.fullmatch(path) is not None


class PageMiddleware:
    """Answers with the page at its own addresses, and with its files; the rest goes on."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in SAFE_METHODS or scope["path"] == "/":
            await self.app(scope, receive, send)
            return
        request, path = Request(scope), scope["path"]
        file = page_files().get(path) if path != INDEX else None
        if file is not None:
            await file.response(request)(scope, receive, send)
        elif wants_page(path, request.headers.get("accept", "")):
            await (await page(request))(scope, receive, send)
        else:
            await self.app(scope, receive, send)
