"""The parts of a server's address, without the slow parser of the standard library."""

from __future__ import annotations


def split_url(url: str) -> tuple[str, str, str]:
    """Scheme, host with port, and path."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return scheme, host, f"{slash}{path}".rstrip("/")


def split_netloc(netloc: str, default: int) -> tuple[str, int]:
    """Host and port; an IPv6 address is in brackets. Raises ValueError."""
    if netloc.startswith("["):
        host, _, rest = netloc[1:].partition("]")
        return host, int(rest[1:] or default)
    host, _, port = netloc.partition(":")
    return host, int(port or default)
