"""A TCP connection to a host by name, within a deadline.

Three things would wait for longer than asked. `getaddrinfo` knows no timeout, and a name server
that does not answer costs it ten seconds or more; no signal ends it early, because the C library
goes on waiting after one. So names are looked up in a thread, which is left behind: hooks end
without waiting for it. `create_connection` gives its whole timeout to each address of a name; here
they share what is left, so that an address without a route does not cost the others their turn. And
`sendall` over TLS gives it to each part.
"""

from __future__ import annotations

import _thread
import socket

from accord.git.bridge_client import seconds_left

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from typing import Any

SEND_BYTES = 1 << 14  # what fits into one TLS record


def connect(host: str, port: int, deadline: float) -> socket.socket:
    """A connection to one of the host's addresses; raises OSError."""
    addresses = _addresses(host, port, deadline)
    last: OSError = ConnectionError(f"{host} has no address")
    for at, (family, kind, protocol, _, address) in enumerate(addresses):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(seconds_left(deadline) / (len(addresses) - at))
            connection.connect(address)
        except OSError as error:
            connection.close()
            last = error
        else:
            return connection
    raise last


def send(connection: socket.socket, data: bytes, deadline: float) -> None:
    """Send all of it before the deadline; raises OSError."""
    for at in range(0, len(data), SEND_BYTES):
        connection.settimeout(seconds_left(deadline))
        connection.sendall(data[at : at + SEND_BYTES])


def _addresses(host: str, port: int, deadline: float) -> list[Any]:
    # As bytes, because a text would be encoded by IDNA, which takes long to import.
    name = host.encode() if host.isascii() else host
    try:
        return socket.getaddrinfo(
            name, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except socket.gaierror:
        return _looked_up(name, port, deadline)


def _looked_up(name: str | bytes, port: int, deadline: float) -> list[Any]:
    found: list[Any] = []
    done = _thread.allocate_lock()
    done.acquire()

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(name, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error)
        done.release()

    try:
        _thread.start_new_thread(look_up, ())
    except RuntimeError as error:  # such as a limit on processes
        raise OSError(str(error)) from error
    if not done.acquire(timeout=seconds_left(deadline)):
        raise TimeoutError("the name was not resolved in time")
    result = found[0]
    if isinstance(result, Exception):
        raise OSError(str(result)) from result
    return list(result)
