"""Opens a WebSocket, and interprets how it was refused or closed."""

import asyncio
import ssl

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException
from websockets.typing import Subprotocol

from accord.api.responses import ErrorResponse
from accord.client.connection.tls_errors import explain_tls_error
from accord.client.errors import ClientError, ConnectionFailed, Replaced, SignedOut, Unreachable
from accord.client.http_client import TRANSIENT_STATUSES
from accord.client.identity import Identity, ServerAddress, current_token
from accord.settings.client import is_local

SUBPROTOCOL = "pvp.v1"
MAX_RECEIVED_BYTES = 16 << 20
OPEN_TIMEOUT_S = 10
CLOSE_TIMEOUT_S = 1

# Raised when a connection cannot be opened, or is lost.
CONNECTION_ERRORS = (OSError, EOFError, WebSocketException)
POLICY_VIOLATION_CODE = 1008
# The server rejected the frames themselves; sending them again would fail again.
PROTOCOL_ERROR_CODES = frozenset({1002, 1003, 1007, 1009, 1010})
# Minimum delay before a retry: a restarting (1012) or overloaded (1013) server needs time.
MIN_RETRY_DELAY_S = {1012: 0.5, 1013: 1.0}
REPLACED_REASON = "replaced by a newer connection"
EXPIRED_REASON = "the token has expired"


async def open_websocket(
    address: ServerAddress, identity: Identity, runtime: str
) -> ClientConnection:
    """Open a WebSocket with PVP's subprotocol; renewing the token may raise a ClientError."""
    token = await asyncio.to_thread(current_token, identity.source)
    headers = {"Authorization": f"Bearer {token}"} if token else None
    return await connect(
        address.websocket_url(runtime),
        additional_headers=headers,
        subprotocols=[Subprotocol(SUBPROTOCOL)],
        compression=None,
        max_size=MAX_RECEIVED_BYTES,
        open_timeout=OPEN_TIMEOUT_S,
        close_timeout=CLOSE_TIMEOUT_S,
        proxy=None if is_local(address.base_url) else True,
    )


def permanent_error(error: Exception, base: str) -> ClientError | None:
    """The error to raise if a retry would not help, else None; `base` is the server's URL."""
    match error:
        case ConnectionClosed():
            return error_for_close_code(
                error.rcvd.code if error.rcvd else 1006, close_reason(error)
            )
        case InvalidStatus():
            body = (error.response.body or b"").decode("utf-8", "replace").strip()
            return error_for_status(error.response.status_code, body)
        case InvalidURI():
            return Unreachable(str(error))
        case ssl.SSLCertVerificationError():
            return Unreachable(explain_tls_error(error, base) or str(error))
        case _:
            return None


def retry_after_s(error: Exception) -> float:
    """Seconds the server asked the client to wait; 0 if it did not say."""
    match error:
        case ConnectionClosed():
            return MIN_RETRY_DELAY_S.get(error.rcvd.code, 0.0) if error.rcvd else 0.0
        case InvalidStatus():
            values = error.response.headers.get_all("Retry-After")
            return float(values[0]) if values and is_seconds(values[0]) else 0.0
        case _:
            return 0.0


def is_seconds(text: str) -> bool:
    """Whether a Retry-After is in seconds; a date would depend on the clocks of both machines."""
    return text.isascii() and text.isdigit()


def ended_with_token(error: Exception) -> bool:
    """Whether the connection ended because its token expired, so that another token helps."""
    return close_reason(error) == EXPIRED_REASON


def close_reason(error: Exception) -> str:
    """The reason given in the server's close frame, or an empty string."""
    if isinstance(error, ConnectionClosed) and error.rcvd is not None:
        return error.rcvd.reason
    return ""


def error_for_close_code(code: int, why: str) -> ClientError | None:
    """The permanent error behind a close code; None if the client should reconnect."""
    if code == POLICY_VIOLATION_CODE:
        return (
            Replaced(why)
            if why == REPLACED_REASON
            else SignedOut(
                why or "The server ended this connection: the token was revoked or has expired"
            )
        )
    if code in PROTOCOL_ERROR_CODES:
        return ConnectionFailed(f"The server rejected what was sent (close code {code}): {why}")
    return None


def error_for_status(status: int, why: str) -> ClientError | None:
    """The permanent error behind a refused upgrade; None if the client should retry."""
    if status in {401, 403}:
        return SignedOut(
            error_message_of(why) or why or f"The server refused the token (HTTP status {status})"
        )
    if status in TRANSIENT_STATUSES or status >= 500:
        return None
    return Unreachable(
        error_message_of(why) or f"The server does not speak PVP (HTTP status {status}): {why}"
    )


def error_message_of(body: str) -> str | None:
    """The message in an Accord error response; None if the body is not one."""
    try:
        return msgspec.json.decode(body, type=ErrorResponse).error.message
    except msgspec.MsgspecError:
        return None
