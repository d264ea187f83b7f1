"""The name of this machine, as heartbeats and the server write it."""

import socket


def machine_name() -> str:
    """The host's name; a runtime is resumed only on the machine that it named."""
    return socket.gethostname()
