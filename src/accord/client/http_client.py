"""The one HTTP client of the library and the command line.

What holds for every request is decided here:

- Time: a response must be complete within `timeout_s`, however slowly it is sent.
- Size: a larger response than `MAX_RESPONSE_BYTES` is not read to its end.
- TLS: certificates are verified against the system's authorities, or those of `SSL_CERT_FILE`.
- Proxies: those of the environment, except for servers on this machine.
- Redirects: none is followed, because it could carry the token to another server.
- Retries: none happens here. `is_transient` says whether one may help, `retry_after_s` when.
- Errors: `ServerRefused` if the server explained its refusal, otherwise `Unreachable`.

Git hooks use `accord.git.bridge_client` instead, which has no time to import this.
"""

import asyncio
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from accord.api.responses import ErrorResponse
from accord.client.connection.backoff import MAX_RETRY_AFTER_S
from accord.client.errors import ClientError, ServerRefused, Unreachable
from accord.client.identity import ServerAddress, Token, current_token, parse_address
from accord.settings.client import is_local, port_of

if TYPE_CHECKING:
    from urllib.request import OpenerDirector

REQUEST_TIMEOUT_S = 30.0
# For a question whose answer is not worth a long wait: does a server answer there?
PROBE_TIMEOUT_S = 5.0
MAX_RESPONSE_BYTES = 64 << 20
CHUNK_BYTES = 1 << 16
FIRST_ERROR_STATUS = 300
# Slow request, too early, rate limited, no server behind the proxy, or a server that shuts down.
TRANSIENT_STATUSES = frozenset({408, 425, 429, 502, 503, 504})
PERMANENT_CODES = frozenset({"SESSION_NOT_FOUND", "TRANSPORT_ERROR"})

# The segments of a path and the parameters of a query, not quoted yet.
Path = tuple[str, ...]
Query = Mapping[str, str | int]
NO_QUERY: Query = {}

ResponseType = TypeVar("ResponseType")


class HttpResponse(NamedTuple):
    """A response of any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Sends requests to one server, with the token of one principal."""

    def __init__(
        self,
        address: ServerAddress,
        token: Token | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        self.address = address
        self._token = token
        self._timeout_s = timeout_s

    async def read(
        self,
        kind: type[ResponseType],
        path: Path,
        query: Query = NO_QUERY,
        *,
        method: str = "GET",
        body: bytes | None = None,
    ) -> ResponseType:
        """The decoded response; raises ServerRefused or Unreachable."""
        return self.decode(await self.request(path, query, method=method, body=body), kind)

    def decode(self, content: bytes, kind: type[ResponseType]) -> ResponseType:
        """The content as JSON of this type; raises Unreachable."""
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.MsgspecError as error:
            raise self._not_accord(str(error)) from error

    async def request(
        self,
        path: Path,
        query: Query = NO_QUERY,
        *,
        method: str = "GET",
        body: bytes | None = None,
    ) -> bytes:
        """The body of a successful response; raises ServerRefused or Unreachable."""
        response = await asyncio.to_thread(self.send, method, path, query, body)
        if response.status >= FIRST_ERROR_STATUS:
            raise self.error_of(response)
        return response.body

    def send(
        self, method: str, path: Path, query: Query = NO_QUERY, body: bytes | None = None
    ) -> HttpResponse:
        """The response, whatever its status; raises Unreachable."""
        deadline = time.monotonic() + self._timeout_s
        with self._open(method, path, query, body, self._timeout_s) as response:
            content = self._read_within(response, deadline)
            return HttpResponse(response.status, response.headers, content)

    @contextmanager
    def open_stream(self, path: Path, query: Query, silence_s: float) -> Iterator[Any]:
        """A response that goes on; raises if it is refused, or silent for that long."""
        with self._open("GET", path, query, None, silence_s) as response:
            if response.status >= FIRST_ERROR_STATUS:
                body = self._read_within(response, time.monotonic() + self._timeout_s)
                raise self.error_of(HttpResponse(response.status, response.headers, body))
            yield response

    @contextmanager
    def _open(
        self, method: str, path: Path, query: Query, body: bytes | None, timeout_s: float
    ) -> Iterator[Any]:
        from http.client import HTTPException
        from urllib.request import Request

        url = self.address.http_url(*path, **query)
        token = current_token(self._token)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = Request(url, body, headers, method=method)  # noqa: S310 - the scheme was checked
        try:
            with _opener_for(url).open(request, timeout=timeout_s) as response:
                yield response
        except OSError as error:
            raise unreachable(error, self.address.base_url) from error
        except HTTPException as error:
            raise self._not_accord(repr(error)) from error

    def error_of(self, response: HttpResponse) -> ServerRefused | Unreachable:
        """The exception for an error response."""
        try:
            problem = msgspec.json.decode(response.body, type=ErrorResponse).error
        except msgspec.MsgspecError:
            return self._not_accord(
                f"HTTP status {response.status}", transient=response.status in TRANSIENT_STATUSES
            )
        return ServerRefused(
            problem.code,
            problem.message,
            recoverable=problem.code not in PERMANENT_CODES,
            details=problem.details,
            status=response.status,
        )

    def _read_within(self, response: Any, deadline: float) -> bytes:
        """The body, within its limits of time and size."""
        body = bytearray()
        while chunk := response.read1(CHUNK_BYTES):
            body += chunk
            if len(body) > MAX_RESPONSE_BYTES:
                raise Unreachable(
                    f"The response from {self.address.base_url} is larger than "
                    f"{MAX_RESPONSE_BYTES >> 20} MiB and was not read; check the address"
                )
            if time.monotonic() > deadline:
                raise TimeoutError(f"the response took longer than {self._timeout_s:g} s")
        if response.length:
            raise ConnectionError("the response was incomplete")
        return bytes(body)

    def _not_accord(self, why: str, *, transient: bool = False) -> Unreachable:
        return Unreachable(
            f"The response is not from an Accord server ({why}); check that "
            f"{self.address.base_url} is the right address, and any proxy in front of it",
            transient=transient,
        )


def unreachable(error: Exception, base: str) -> Unreachable:
    """The error for a connection that failed; `base` is the server's URL."""
    from accord.client.connection.tls_errors import (  # only needed after a failure
        explain_tls_error,
        is_certificate_error,
    )

    explanation = explain_tls_error(error, base)
    return Unreachable(
        explanation or f"{base} cannot be reached: {error}",
        transient=not is_certificate_error(error),
    )


def is_transient(error: ClientError) -> bool:
    """Whether the same request may succeed a little later."""
    match error:
        case ServerRefused():
            return error.status in TRANSIENT_STATUSES
        case Unreachable():
            return error.transient
        case _:
            return False


def retry_after_s(error: ClientError) -> float:
    """Seconds the server asked the client to wait; 0 if it did not say."""
    delay_ms = error.details.get("retry_after_ms") if isinstance(error, ServerRefused) else None
    return min(delay_ms, MAX_RETRY_AFTER_S * 1000) / 1000 if isinstance(delay_ms, int) else 0.0


def is_listening(url: str) -> bool:
    """Whether a request to the address would be received: by its server, or by its proxy."""
    try:
        connect(url).close()
    except (OSError, ValueError):
        return False
    return True


def connect(url: str) -> socket.socket:
    """A TCP connection to where a request to the address would go; raises OSError."""
    base = parse_address(url).base_url
    return socket.create_connection(_host_and_port(proxy_of(base) or base), PROBE_TIMEOUT_S)


def proxy_of(url: str) -> str | None:
    """The proxy that requests to the address use; None if they go there directly."""
    if is_local(url):
        return None
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxy = None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)
    return proxy if proxy is None or "//" in proxy else f"http://{proxy}"


def _host_and_port(url: str) -> tuple[str, int]:
    return urlsplit(url).hostname or "", port_of(url)


def _opener_for(url: str) -> "OpenerDirector":
    from urllib.request import HTTPErrorProcessor, ProxyHandler, build_opener

    class AnyStatus(HTTPErrorProcessor):
        """Returns every response, so that redirects are not followed and errors can be read."""

        def http_response(self, request: Any, response: Any) -> Any:  # noqa: ARG002 - urllib's name
            return response

        https_response = http_response

    proxies = [ProxyHandler({})] if is_local(url) else []
    return build_opener(AnyStatus(), *proxies)
