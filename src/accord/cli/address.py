"""Addresses of servers: whether one is one, and what to do where nobody answers."""

from urllib.parse import urlsplit

from accord.core.kernel.refusal import Refused, Why
from accord.settings import is_local

USUAL_PORT = 7420
SCHEMES = ("http", "https", "ws", "wss")


def checked(url: str) -> str:
    """The same address; refused where it is none."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        example = f"write for example http://127.0.0.1:{USUAL_PORT}"
        raise Refused(Why.MALFORMED, f"{url!r} is no address of a server; {example}")
    return url


def port_of(url: str) -> int:
    """The port, also where it goes without saying."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme in {"https", "wss"} else 80)


def advice(url: str) -> str:
    """What to do where nobody answers."""
    if not is_local(url):
        return "check the address, and that a server runs there"
    return f"`{serve(url)}` starts a server"


def serve(url: str) -> str:
    """The command that starts a server at an address of this machine."""
    port = port_of(url)
    return "accord serve" if port == USUAL_PORT else f"accord serve --port {port}"


def reachable(url: str) -> str:
    """An address one can open, where the server listens on all of them."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def silent(url: str) -> Refused:
    """Nobody answers there."""
    return Refused(Why.UNAVAILABLE, f"{url} does not answer; {advice(url)}")
