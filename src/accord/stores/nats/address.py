"""What a store URL such as `nats://a,b,c/team?replicas=3` says."""

import re
import ssl
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from accord.engine.ports import UnknownStoreError

DEFAULT_PORT = 4222
DEFAULT_STREAM = "accord"
MAX_REPLICAS = 5
USUAL_REPLICAS = 3
OPTIONS = frozenset({"replicas", "copy", "tls", "ca"})
# What JetStream accepts as the name of a stream, and NATS as one token of a subject.
_STREAM_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class NatsAddress(NamedTuple):
    """The servers, the stream, and how to reach them; `copy` is a directory, empty for none."""

    servers: tuple[str, ...]
    stream: str
    replicas: int
    copy: str
    user: str
    password: str
    tls: ssl.SSLContext | None

    @classmethod
    def from_url(cls, url: str) -> "NatsAddress":
        """Raises UnknownStoreError for a URL that cannot be read."""
        try:
            parts = urlsplit(url)
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=False))
            login, _, hosts = parts.netloc.rpartition("@")
            servers = tuple(_with_port(host) for host in hosts.split(","))
            stream = parts.path.strip("/") or DEFAULT_STREAM
            replicas = int(options.get("replicas") or min(len(servers), USUAL_REPLICAS))
            tls = _tls_context(options)
        except (OSError, ValueError) as error:
            raise UnknownStoreError(f"The store URL cannot be read ({error})") from None
        if unknown := sorted(options.keys() - OPTIONS):
            known = ", ".join(sorted(OPTIONS))
            raise UnknownStoreError(f"{unknown[0]} is not an option of a nats: URL; known: {known}")
        if not _STREAM_NAME.fullmatch(stream):
            detail = f"{stream!r} cannot be the name of a stream; use letters, digits, - and _"
            raise UnknownStoreError(detail)
        if not 1 <= replicas <= MAX_REPLICAS:
            raise UnknownStoreError(f"replicas is a number from 1 to {MAX_REPLICAS}")
        user, _, password = login.partition(":")
        copy = options.get("copy", "")
        return cls(servers, stream, replicas, copy, unquote(user), unquote(password), tls)

    def __str__(self) -> str:
        """For messages: without user and password."""
        return f"nats://{','.join(self.servers)}/{self.stream}"


def _with_port(host: str) -> str:
    if not host:
        raise ValueError("it names no server, as in nats://localhost")
    has_port = re.search(r":\d+$", host)
    return host if has_port else f"{host}:{DEFAULT_PORT}"


def _tls_context(options: dict[str, str]) -> ssl.SSLContext | None:
    """Verified TLS with `tls=1` or `ca=FILE`."""
    authority = options.get("ca")
    if not authority and options.get("tls") in {None, "", "0"}:
        return None
    return ssl.create_default_context(cafile=authority or None)
