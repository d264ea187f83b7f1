"""Ask the server of the user's profile, over HTTP or HTTPS, what the local bridge would answer.

This runs in hooks, so it imports only the standard library, and as little of it as possible: the
HTTP client of the standard library alone would take a third of a hook's time. Only where a token
must be renewed, it loads what signs the proof.

The address comes from `ACCORD_URL`, from `.accord.toml`, or from the last login. It selects a
profile, and a token goes only to the server that issued it: an address without a profile of its own
gets none, unless address and token both come from the environment. A token is never sent over plain
HTTP to another machine.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from accord.git.http.response import WholeResponse

URL_VARIABLE, TOKEN_VARIABLE = "ACCORD_URL", "ACCORD_TOKEN"
# A token that ends sooner is renewed first.
RENEW_BEFORE_S = 5.0
OK_STATUS = 200


class RemoteServer:
    """A server's address, and the token it issued to this user."""

    __slots__ = ("token", "url")

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token


def may_exist(env: Mapping[str, str]) -> bool:
    """Whether an address or a profile is there, judged without reading it."""
    if env.get(URL_VARIABLE):
        return True
    from accord.settings.profiles import profiles_path

    return os.path.exists(profiles_path(env))  # noqa: PTH110 - `pathlib` is too slow for hooks


def is_elsewhere(env: Mapping[str, str]) -> bool:
    """Whether the address is not a loopback address without TLS, which means this machine."""
    chosen = address(env)
    return bool(chosen) and not (chosen.startswith("http://") and _is_private(chosen))


def address(env: Mapping[str, str]) -> str:
    """The address of the server that is asked; empty if there is none."""
    from accord.settings import profiles

    url = env.get(URL_VARIABLE)
    try:
        if url and env.get(TOKEN_VARIABLE):
            return profiles.server_address(url)
        profile = profiles.select_profile(env, url or None)
    except (profiles.ProfileError, ValueError):
        return ""
    return profile.url if profile else ""


def find_server(env: Mapping[str, str], deadline: float) -> RemoteServer | None:
    """The server to ask; None if there is no profile for the address. Raises ProfileError."""
    from accord.settings import profiles

    url = env.get(URL_VARIABLE)
    if url and env.get(TOKEN_VARIABLE):
        address = profiles.server_address(url)
        return RemoteServer(address, env[TOKEN_VARIABLE]) if _is_private(address) else None
    profile = profiles.select_profile(env, url or None)
    if profile is not None and profile.seconds_left(time.time()) < RENEW_BEFORE_S:
        from accord.git.token_renewal import renew

        profile = renew(profile, env, deadline)
    if profile is None or not _is_private(profile.url):
        return None
    return RemoteServer(profile.url, profile.token)


def _is_private(url: str) -> bool:
    from accord.settings.profiles import may_carry_token

    return may_carry_token(url)


def request(
    action: str, env: Mapping[str, str], facts: Mapping[str, Any], deadline: float
) -> dict[str, Any] | None:
    """The server's response, with `error` if it refuses; None if there is no server or answer."""
    from accord.settings.profiles import ProfileError

    try:
        server = find_server(env, deadline)
        if server is None:
            return None
        from accord.git.http.connection import exchange

        response = exchange(server.url, _render(server, action, facts), deadline, env)
        return _parse(response)
    except ProfileError as error:
        return {"error": {"code": "PROFILE", "message": str(error)}}
    except (OSError, ValueError):
        return None


def _render(server: RemoteServer, action: str, facts: Mapping[str, Any]) -> bytes:
    """The request; names from git may contain invalid bytes, which are replaced."""
    import json

    from accord.git.http.request import render_request

    body = json.dumps(dict(facts), ensure_ascii=False).encode("utf-8", "replace")
    return render_request(server.url, f"/git/{action}", body, server.token)


def _parse(response: WholeResponse) -> dict[str, Any] | None:
    """The JSON object of a response; an error of the server is one too."""
    import json

    try:
        parsed = json.loads(response.body)
    except (ValueError, RecursionError):
        return None
    is_answer = isinstance(parsed, dict) and (response.status == OK_STATUS or "error" in parsed)
    return parsed if is_answer else None
