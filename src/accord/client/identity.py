"""The server's address and the principal that connects to it."""

import base64
import binascii
import secrets
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import msgspec

from accord.core.kernel.role_permissions import Kind, Role

HTTP_SCHEMES = {"http": "http", "ws": "http", "https": "https", "wss": "https"}
WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss"}
DEFAULT_ROLES = (Role.DRIVER,)
ClaimsType = TypeVar("ClaimsType")


# A token, or a function that returns one that is valid now and takes a while to renew it.
Token = str | Callable[[], str]


class Claims(msgspec.Struct, frozen=True):
    """The readable part of a token; only the server can verify its signature."""

    agent_id: str
    kind: Kind = Kind.HUMAN
    roles: frozenset[Role] = frozenset()
    name: str = ""


class Identity(NamedTuple):
    """The principal a client speaks for; an open server (`--auth open`) needs no token.

    `source` gives the token for each new request or connection; `token` is that of the beginning.
    """

    id: str
    kind: Literal["human", "agent"]
    name: str
    roles: tuple[Role, ...]
    token: str | None = None
    source: Token | None = None

    @property
    def is_renewable(self) -> bool:
        """Whether a connection that ends with its token can be opened again with another."""
        return callable(self.source)


class ServerAddress(NamedTuple):
    """A server's base URL over HTTP, without a trailing slash."""

    base_url: str

    def websocket_url(self, runtime: str) -> str:
        """The WebSocket URL; a newer connection of the same `runtime` replaces this one."""
        parts = urlsplit(self.base_url)
        query = urlencode({"runtime": runtime})
        scheme = WEBSOCKET_SCHEMES[parts.scheme]
        return urlunsplit((scheme, parts.netloc, f"{parts.path}/ws", query, ""))

    def http_url(self, *path: str, **query: str | int) -> str:
        """The URL of a resource, with path segments and query quoted."""
        url = "/".join([self.base_url, *(quote(part, safe="") for part in path)])
        return f"{url}?{urlencode(query)}" if query else url


def parse_address(url: str) -> ServerAddress:
    """Accepts `http(s)://` and `ws(s)://` URLs, with or without a trailing `/ws`."""
    parts = urlsplit(url)
    if parts.scheme not in HTTP_SCHEMES or not parts.hostname:
        raise ValueError(
            f"{url!r} is not a server address: it must begin with http://, https://, ws:// or wss://"
        )
    path = parts.path.rstrip("/").removesuffix("/ws")
    return ServerAddress(urlunsplit((HTTP_SCHEMES[parts.scheme], parts.netloc, path, "", "")))


def current_token(token: Token | None) -> str | None:
    """The token to send now; renewing it may raise a ClientError."""
    return token() if callable(token) else token


def resolve_identity(
    source: Token | None, id: str | None, kind: str | None, name: str | None = None
) -> Identity:
    """The principal named by the token, or by `id` on an open server."""
    token = current_token(source)
    claims = read_claims(token) if token else None
    principal = id or (claims.agent_id if claims else "")
    if not principal:
        raise ValueError("Give a token, or an id if the server runs with --auth open")
    kind_name = kind or (claims.kind.value if claims else Kind.HUMAN.value)
    roles = tuple(sorted(claims.roles)) if claims else ()
    return Identity(
        id=principal,
        kind="agent" if kind_name == Kind.AGENT else "human",
        name=name or (claims.name if claims else "") or principal,
        roles=roles or DEFAULT_ROLES,
        token=token,
        source=source,
    )


def read_claims(token: str) -> Claims | None:
    """The claims of an Accord token, not verified; None if it cannot be decoded."""
    return decode_claims(token, Claims)


def decode_claims(token: str, claims_type: type[ClaimsType]) -> ClaimsType | None:
    """Decode a token's claims as `claims_type` without verifying them; None if that fails."""
    try:
        payload = token.split(".")[1]
        padded = payload + "=" * (-len(payload) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=claims_type)
    except (IndexError, binascii.Error, ValueError):
        return None


def new_runtime_id() -> str:
    """A random id for one client object, so that it replaces only its own connections."""
    return secrets.token_hex(8)
