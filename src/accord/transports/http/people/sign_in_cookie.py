"""The sign-in cookie: a browser's credential, accepted from our own pages alone."""

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from starlette.requests import Request

from accord.core.kernel.refusal import Reason, Refused
from accord.identity.token_signing import bearer_token

COOKIE_PREFIX = "accord-"
# Methods that change nothing; everything else needs an Origin header of our own.
SAFE_METHODS = frozenset({"GET", "HEAD"})
# Browsers say from where a request comes, also where they send no Origin.
OWN_SITES = frozenset({"same-origin", "none"})
OWN_ORIGIN_DETAIL = (
    "A request with the sign-in cookie must come from this server's own page (Origin header)"
)


def cookie_name(server_id: str) -> str:
    """Cookies do not distinguish ports, so each server has a name of its own."""
    return f"{COOKIE_PREFIX}{server_id.lower()}"


def set_cookie(server_id: str, token: str, life_s: int, *, secure: bool) -> str:
    """The `Set-Cookie` header of a sign-in; not readable by scripts, not sent from other sites."""
    flags = "; Secure" if secure else ""
    value = f"{cookie_name(server_id)}={token}; Path=/; Max-Age={life_s}"
    return f"{value}; HttpOnly; SameSite=Strict{flags}"


def clear_cookie(server_id: str) -> str:
    """The `Set-Cookie` header that removes it."""
    return f"{cookie_name(server_id)}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"


def cookie_token(headers: Iterable[str], server_id: str) -> str | None:
    """The token in the `Cookie` headers of a request, if there is one."""
    name = cookie_name(server_id)
    pairs = (pair.strip().partition("=") for header in headers for pair in header.split(";"))
    values = {value for key, _, value in pairs if key == name and value}
    if len(values) > 1:
        raise Refused(Reason.UNAUTHENTICATED, "Send only one sign-in cookie")
    return next(iter(values), None)


def ensure_own_origin(origins: Sequence[str], *, tls: bool) -> None:
    """Refuse without an Origin, or with one that is not encrypted although we are.

    That its host is ours is checked for every request, before it gets here.
    """
    schemes = {urlsplit(origin).scheme for origin in origins}
    if not schemes or not schemes <= ({"https"} if tls else {"http", "https"}):
        raise Refused(Reason.FORBIDDEN, OWN_ORIGIN_DETAIL)


def token_of_request(request: Request, server_id: str) -> str | None:
    """The token in `Authorization`, else in the cookie; raises Refused for a forged request."""
    headers = request.headers
    token = bearer_token(headers.getlist("authorization"))
    if token is not None:
        return token
    token = cookie_token(headers.getlist("cookie"), server_id)
    if token is None:
        return None
    sites = headers.getlist("sec-fetch-site")
    if not OWN_SITES.issuperset(sites):
        raise Refused(Reason.FORBIDDEN, OWN_ORIGIN_DETAIL)
    if request.method not in SAFE_METHODS:
        ensure_own_origin(headers.getlist("origin"), tls=request.url.scheme == "https")
    return token
