"""Server-sent events from a model provider, with bounds on time and size.

The key travels in a header, over TLS or to this machine alone; no redirect is followed, and the key
is removed from every error.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from accord.agents.providers.model import ModelError
from accord.settings.client import is_local

if TYPE_CHECKING:
    import httpx2

CONNECT_TIMEOUT_S = 20.0
SILENCE_TIMEOUT_S = 300.0
REPLY_TIMEOUT_S = 1800.0
MAX_REPLY_BYTES = 64 << 20
MAX_EVENT_BYTES = 16 << 20
MAX_ERROR_BYTES = 16 << 10
MAX_ERROR_TEXT = 400
FIRST_ERROR_STATUS = 300
# Too slow, conflict, rate limited, or failing on the provider's side; 529 is "overloaded".
TRANSIENT_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
DONE = b"[DONE]"
HIDDEN = "(key)"


class ProviderAddress(NamedTuple):
    """Where a provider is, and the headers that hold `key`."""

    url: str
    headers: Mapping[str, str]
    key: str = ""

    def __repr__(self) -> str:
        """Without the key."""
        return f"ProviderAddress({self.url!r})"

    def hide(self, text: str) -> str:
        """The text without the key."""
        return text.replace(self.key, HIDDEN) if self.key else text


def check_address(url: str) -> str:
    """The address without a slash at its end; raises ModelError if a key must not go there."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
        raise ModelError(
            f"{url!r} is not the address of a model provider; it begins with https:// "
            "and holds no name or password"
        )
    if parts.scheme == "http" and not is_local(url):
        raise ModelError(f"{url} is plain HTTP, which would show the key; use https://")
    return url.rstrip("/")


async def post_for_events(
    endpoint: ProviderAddress, path: str, body: Mapping[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    """The JSON objects of the events, as they arrive; raises ModelError."""
    import httpx2  # takes 150 ms

    timeout = httpx2.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
    address = f"{endpoint.url}{path}"
    try:
        async with (
            asyncio.timeout(REPLY_TIMEOUT_S),
            httpx2.AsyncClient(timeout=timeout, trust_env=not is_local(endpoint.url)) as client,
            client.stream(
                "POST",
                address,
                content=msgspec.json.encode(body),
                headers={"content-type": "application/json", **endpoint.headers},
            ) as response,
        ):
            if response.status_code >= FIRST_ERROR_STATUS:
                raise await _refusal(endpoint, response)
            async for data in _event_data(response.aiter_bytes()):
                yield _decode(data)
    except httpx2.TimeoutException:
        raise ModelError(f"{endpoint.url} did not answer in time", transient=True) from None
    except TimeoutError:
        raise ModelError(f"{endpoint.url} did not end its answer") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        detail = endpoint.hide(str(error) or type(error).__name__)
        raise ModelError(f"{endpoint.url} failed: {detail}", transient=True) from None


async def _event_data(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each event; `[DONE]` and everything else is left out."""
    left, total, data = b"", 0, list[bytes]()
    async for piece in pieces:
        total += len(piece)
        lines = (left + piece).split(b"\n")
        left = lines.pop()
        if total > MAX_REPLY_BYTES or len(left) > MAX_EVENT_BYTES:
            raise ModelError("The provider's answer is too large")
        for line in lines:
            text = line.rstrip(b"\r")
            if text.startswith(b"data:"):
                data.append(text[5:].lstrip(b" "))
            elif not text and data:
                whole, data = b"\n".join(data), []
                if whole.strip() != DONE:
                    yield whole
    if data and b"\n".join(data).strip() != DONE:
        yield b"\n".join(data)


def _decode(data: bytes) -> dict[str, Any]:
    try:
        event = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise ModelError("The provider sent an event that is not JSON") from None
    if not isinstance(event, dict):
        raise ModelError("The provider sent an event that is not an object")
    return event


async def _refusal(endpoint: ProviderAddress, response: "httpx2.Response") -> ModelError:
    """The error of a response, with the provider's own words."""
    content = b""
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MAX_ERROR_BYTES:
            break
    detail = endpoint.hide(error_text(content[:MAX_ERROR_BYTES]))
    return ModelError(
        f"{endpoint.url} answered {response.status_code}: {detail}",
        transient=response.status_code in TRANSIENT_STATUSES,
        retry_after_s=_seconds(response.headers.get("retry-after", "")),
    )


def error_text(content: bytes) -> str:
    """The sentence in a provider's error, in one line."""
    try:
        found: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        found = content.decode("utf-8", "replace")
    for key in ("error", "message"):
        found = found.get(key, found) if isinstance(found, dict) else found
    words = " ".join(str(found).split())
    return "".join(each for each in words if each.isprintable())[:MAX_ERROR_TEXT] or "no reason"


def _seconds(text: str) -> float | None:
    return float(text) if text.isdigit() else None
