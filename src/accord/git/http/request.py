"""A request as bytes."""

from __future__ import annotations

from accord.git.http.url_parts import split_url


def render_request(url: str, path: str, body: bytes, token: str = "") -> bytes:
    """A POST of JSON to a path below the address; raises ValueError."""
    _, host, base = split_url(url)
    lines = [
        f"POST {base}{path} HTTP/1.1",
        f"Host: {host}",
        *([f"Authorization: Bearer {token}"] if token else []),
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    if any(c in line for line in lines for c in "\r\n"):
        raise ValueError("line break in a header")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body
