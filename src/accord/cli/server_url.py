"""Server addresses: validation, and advice when a server does not answer."""

import re
from urllib.parse import urlsplit

from accord.core.kernel.refusal import Reason, Refused
from accord.settings.client import is_local, port_of

DEFAULT_PORT = 7420
URL_SCHEMES = ("http", "https", "ws", "wss")
# What people type: `localhost:7420`, `accord.example.org`. Plain HTTP is for this machine alone.
HOST_PATTERN = re.compile(r"(?:localhost|[\w-]+(?:\.[\w-]+)+|\[[0-9a-fA-F:]+\])(?::\d+)?(?:/|$)")


def check_url(url: str) -> str:
    """The address, completed if it has no scheme; refuses one that cannot be a server's."""
    if "://" not in url and HOST_PATTERN.match(url):
        url = f"{'http' if is_local(f'http://{url}') else 'https'}://{url}"
    try:
        parts = urlsplit(url)
        valid = parts.scheme in URL_SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        example = f"use for example http://127.0.0.1:{DEFAULT_PORT}"
        raise Refused(Reason.MALFORMED, f"{url!r} is not a server address; {example}")
    return url


def unreachable_advice(url: str) -> str:
    """What to do when no server answers at the address."""
    if not is_local(url):
        return "check the address and that a server is running there"
    return f"`{serve_command(url)}` starts a server"


def serve_command(url: str) -> str:
    """The command that starts a server at a local address."""
    port = port_of(url)
    return "accord serve" if port == DEFAULT_PORT else f"accord serve --port {port}"


def connectable_url(url: str) -> str:
    """An address to connect to, if the server listens on all interfaces."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def not_answering(url: str) -> Refused:
    return Refused(Reason.UNAVAILABLE, f"{url} does not answer; {unreachable_advice(url)}")
