"""Ports of this machine where nobody answers: one that accepts, and one that does not even that."""

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

CONNECT_S = 0.5  # on loopback, what connects at all does so at once


@contextmanager
def accepting_port() -> Iterator[int]:
    """The system accepts connections, and no program ever reads from them."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        yield int(listener.getsockname()[1])


@contextmanager
def unreachable_port() -> Iterator[int]:
    """Connections are never made, as to an address without a route: the queue is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = int(listener.getsockname()[1])
        while True:
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
            if not select.select([], [waiting], [], CONNECT_S)[1]:
                break
        yield port


def refused_port() -> int:
    """Nobody listens, and the system says so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
