"""Where the server is and who is speaking."""

import base64
import binascii
import secrets
from typing import Literal, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import msgspec

from accord.core.kernel.authority import Kind, Role

HTTP = {"http": "http", "ws": "http", "https": "https", "wss": "https"}
WEBSOCKET = {"http": "ws", "https": "wss"}
DEFAULT_ROLES = (Role.DRIVER,)
Form = TypeVar("Form")


class Claims(msgspec.Struct, frozen=True):
    """What a token says of its holder; only the server can tell whether it is true."""

    agent_id: str
    kind: Kind = Kind.HUMAN
    roles: frozenset[Role] = frozenset()
    name: str = ""


class Identity(NamedTuple):
    """Who speaks. Without a token the server takes it on trust (`--auth open`)."""

    id: str
    kind: Literal["human", "agent"]
    name: str
    roles: tuple[Role, ...]
    token: str | None = None


class Address(NamedTuple):
    """A server, by its base address over HTTP without a slash at its end."""

    base: str

    def websocket(self, runtime: str) -> str:
        """Where PVP is spoken; `runtime` is whom a newer connection replaces."""
        parts = urlsplit(self.base)
        query = urlencode({"runtime": runtime})
        scheme = WEBSOCKET[parts.scheme]
        return urlunsplit((scheme, parts.netloc, f"{parts.path}/ws", query, ""))

    def http(self, *path: str, **query: str | int) -> str:
        """Where something is read."""
        where = "/".join([self.base, *(quote(part, safe="") for part in path)])
        return f"{where}?{urlencode(query)}" if query else where


def address(url: str) -> Address:
    """The server at `http(s)://` or `ws(s)://`, with or without `/ws` at its end."""
    parts = urlsplit(url)
    if parts.scheme not in HTTP or not parts.hostname:
        raise ValueError(f"An address begins with http://, https://, ws:// or wss://: {url!r}")
    path = parts.path.rstrip("/").removesuffix("/ws")
    return Address(urlunsplit((HTTP[parts.scheme], parts.netloc, path, "", "")))


def identity(
    token: str | None, id: str | None, kind: str | None, name: str | None = None
) -> Identity:
    """Whoever the token speaks for, else whoever `id` says."""
    claims = read(token) if token else None
    seat = id or (claims.agent_id if claims else "")
    if not seat:
        raise ValueError("Say who you are: a token, or an id where the server is open")
    known = kind or (claims.kind.value if claims else Kind.HUMAN.value)
    roles = tuple(sorted(claims.roles)) if claims else ()
    return Identity(
        id=seat,
        kind="agent" if known == Kind.AGENT else "human",
        name=name or (claims.name if claims else "") or seat,
        roles=roles or DEFAULT_ROLES,
        token=token,
    )


def read(token: str) -> Claims | None:
    """What a token says of its holder; None where it is not one of ours."""
    return claims_of(token, Claims)


def claims_of(token: str, form: type[Form]) -> Form | None:
    """The claims inside a token, unchecked; None where it has none of this form."""
    try:
        middle = token.split(".")[1]
        padded = middle + "=" * (-len(middle) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=form)
    except (IndexError, binascii.Error, ValueError):
        return None


def fresh_runtime() -> str:
    """A name for one client object, so that only it replaces its own connections."""
    return secrets.token_hex(8)
