"""A connection to a server, kept for the next request of the same hook.

A TLS context and a handshake take longer than anything else that a hook does over the network. So a
hook has one context and one connection, however often it asks.
"""

from __future__ import annotations

from accord.git.http.connecting import connect, send
from accord.git.http.response import WholeResponse, read_response
from accord.git.http.url_parts import split_netloc, split_url

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

DEFAULT_PORTS = {"http": 80, "https": 443}

_kept: dict[str, socket.socket] = {}


def exchange(url: str, data: bytes, deadline: float, env: Mapping[str, str]) -> WholeResponse:
    """Send a request and return its response; raises OSError or ValueError.

    A connection that was kept may have been closed since by the server. Then the request is sent
    once more over a new one: requests of hooks may be repeated.
    """
    kept = _kept.pop(url, None)
    if kept is not None:
        try:
            return _exchange(url, kept, data, deadline)
        except TimeoutError:
            raise
        except OSError:
            pass
    return _exchange(url, _open(url, deadline, env), data, deadline)


def close_kept() -> None:
    """Close what is kept, in a process that goes on and asks nothing more."""
    while _kept:
        _kept.popitem()[1].close()


def _exchange(url: str, connection: socket.socket, data: bytes, deadline: float) -> WholeResponse:
    try:
        send(connection, data, deadline)
        response = read_response(connection, deadline)
    except BaseException:
        connection.close()
        raise
    if response.is_kept:
        _kept[url] = connection
    else:
        connection.close()
    return response


def _open(url: str, deadline: float, env: Mapping[str, str]) -> socket.socket:
    scheme, netloc, _ = split_url(url)
    host, port = split_netloc(netloc, DEFAULT_PORTS[scheme])
    if scheme == "http":  # to this machine alone
        return connect(host, port, deadline)
    from accord.git.http.proxies import open_tunnel, proxy_for
    from accord.git.http.tls_client import open_tls

    proxy = proxy_for(host, port, env)

    def reach() -> socket.socket:
        return open_tunnel(proxy, host, port, deadline) if proxy else connect(host, port, deadline)

    return open_tls(reach, host, deadline)
