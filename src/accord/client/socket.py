"""One WebSocket: how it is opened, and what its end means."""

import ssl

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException
from websockets.typing import Subprotocol

from accord.settings import is_local

from .errors import ClientError, GaveUp, Replaced, SignedOut, Unreachable
from .identity import Address, Identity
from .trouble import explained
from .web import Wrong

SUBPROTOCOL = "pvp.v1"
LARGEST_HEARD = 16 << 20
OPEN_SECONDS = 10
CLOSE_SECONDS = 1

# How a connection fails to open, or ends.
LOSSES = (OSError, EOFError, WebSocketException)
TRY_LATER = frozenset({408, 425, 429})
POLICY = 1008
# What we sent is at fault; sending it again would end the same way.
OUR_FAULT = frozenset({1002, 1003, 1007, 1009, 1010})
# Who says goodbye so needs so many seconds at least before it can be of use again.
BACK_IN_S = {1012: 0.5, 1013: 1.0}
REPLACED = "replaced by a newer connection"


async def open_socket(where: Address, who: Identity, runtime: str) -> ClientConnection:
    """A connection that PVP can be spoken on."""
    headers = {"Authorization": f"Bearer {who.token}"} if who.token else None
    return await connect(
        where.websocket(runtime),
        additional_headers=headers,
        subprotocols=[Subprotocol(SUBPROTOCOL)],
        compression=None,
        max_size=LARGEST_HEARD,
        open_timeout=OPEN_SECONDS,
        close_timeout=CLOSE_SECONDS,
        proxy=None if is_local(where.base) else True,
    )


def verdict(error: Exception, base: str) -> ClientError | None:
    """Why trying again would not help; None where it may. `base` is the address asked."""
    match error:
        case ConnectionClosed():
            return ended(error.rcvd.code if error.rcvd else 1006, closing_words(error))
        case InvalidStatus():
            said = (error.response.body or b"").decode("utf-8", "replace").strip()
            return turned_away(error.response.status_code, said)
        case InvalidURI():
            return Unreachable(str(error))
        case ssl.SSLCertVerificationError():
            return Unreachable(explained(error, base) or str(error))
        case _:
            return None


def asked_to_wait(error: Exception) -> float:
    """For how many seconds the server wants to be left alone; none where it said nothing."""
    match error:
        case ConnectionClosed():
            return BACK_IN_S.get(error.rcvd.code, 0.0) if error.rcvd else 0.0
        case InvalidStatus():
            said = error.response.headers.get_all("Retry-After")
            return float(said[0]) if said and is_seconds(said[0]) else 0.0
        case _:
            return 0.0


def is_seconds(text: str) -> bool:
    """Whether it is a number of them; HTTP knows dates too, which no clock of ours can judge."""
    return text.isascii() and text.isdigit()


def unreachable(error: Exception, base: str) -> Unreachable:
    """Nobody answers there as they should, and why that may be."""
    return Unreachable(explained(error, base) or f"{base} cannot be reached: {error}")


def closing_words(error: Exception) -> str:
    """Why the other side closed, in its own words."""
    if isinstance(error, ConnectionClosed) and error.rcvd is not None:
        return error.rcvd.reason
    return ""


def ended(code: int, why: str) -> ClientError | None:
    """What the end of a connection means."""
    if code == POLICY:
        return Replaced(why) if why == REPLACED else SignedOut(why or "The server closed the door")
    if code in OUR_FAULT:
        return GaveUp(f"The server could not take what was sent ({code}): {why}")
    return None


def turned_away(status: int, why: str) -> ClientError | None:
    """What the answer to an upgrade means that is not granted."""
    if status in {401, 403}:
        return SignedOut(problem(why) or why or f"The server does not let us in ({status})")
    if status in TRY_LATER or status >= 500:
        return None
    return Unreachable(problem(why) or f"What answers there does not speak PVP ({status}): {why}")


def problem(said: str) -> str | None:
    """The sentence of an Accord server that refuses a request before it is one."""
    try:
        return msgspec.json.decode(said, type=Wrong).error.message
    except msgspec.MsgspecError:
        return None
