"""How a refusal reads in each dialect: here a `Refused` becomes an answer.

MCP's dialect is in `transports/mcp/errors.py`, because it is the result of a tool.

    dialect   function                      answers
    --------  ----------------------------  -----------------------------------------------------
    PVP       pvp_error                     a message over WebSocket, stdio or HTTP
    HTTP      http_refusal                  a request, an upgrade, bytes that are not a request
    MSG       http_refusal(…, "msg")        a request under `/admin`
    bridge    http_refusal                  a hook; over a Unix socket its body alone
    shell     exit_refusal                  a command

A further dialect is a column of `ERROR_CODES` and a function here.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.refusal import Reason, Refused

CodeSet = Literal["pvp", "msg"]

# Not cached, and not subject to content sniffing.
JSON_HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
# The rest of a request body may still arrive after these; it is not worth reading.
UNREAD_BODY_REASONS = frozenset({Reason.TOO_LARGE, Reason.TIMED_OUT})
RETRY_DETAIL = "retry_after_ms"


class Problem(Struct, frozen=True, omit_defaults=True):
    """The payload of an `error`."""

    code: str
    message: str
    recoverable: bool
    details: Mapping[str, Any] | None = None
    related_to: str | None = None


class HttpRefusal(NamedTuple):
    """A refusal as an HTTP response; `body` is JSON."""

    status: int
    headers: dict[str, str]
    body: dict[str, dict[str, Any]]


class ExitRefusal(NamedTuple):
    """A refusal as the end of a command."""

    code: int
    sentence: str


def pvp_error(refusal: Refused, related_to: str | None = None) -> Problem:
    """The payload of the `error` that answers a message."""
    codes = ERROR_CODES[refusal.reason]
    return Problem(codes.pvp, refusal.detail, codes.recoverable, refusal.details, related_to)


def http_refusal(refusal: Refused, code_set: CodeSet = "pvp") -> HttpRefusal:
    """The response to a request; `/admin` uses the codes of MSG (UNI-26)."""
    codes = ERROR_CODES[refusal.reason]
    error = {
        "code": codes.msg if code_set == "msg" else codes.pvp,
        "message": refusal.detail,
        "details": refusal.details or {},
    }
    return HttpRefusal(codes.http, http_headers(refusal), {"error": error})


def http_headers(refusal: Refused) -> dict[str, str]:
    """The headers of a refusal: how to authenticate, when to retry, whether to connect again."""
    headers = dict(JSON_HEADERS)
    if refusal.reason is Reason.UNAUTHENTICATED:
        headers["www-authenticate"] = "Bearer"
    if refusal.details and RETRY_DETAIL in refusal.details:
        headers["retry-after"] = str(-(-refusal.details[RETRY_DETAIL] // 1000))
    if refusal.reason in UNREAD_BODY_REASONS:
        headers["connection"] = "close"
    return headers


def exit_refusal(refusal: Refused) -> ExitRefusal:
    """The exit code of a command, and its sentence on standard error."""
    return ExitRefusal(ERROR_CODES[refusal.reason].exit, refusal.detail)
