"""Renew a profile's token in a hook, with the device's key.

A token lasts an hour, so whoever commits now and then mostly has one that has expired. Starting
`accord` for it would take three times as long as the rest of the hook. The proof needs a signature,
hence the `cryptography` package, and hooks run without the packages that are installed beside
Accord: only here they are added to the path, as Python itself does it at a usual start.
"""

from __future__ import annotations

import json
import sys

from accord.git.bridge_client import seconds_left
from accord.git.http.connection import exchange
from accord.git.http.request import render_request
from accord.settings.profiles import Profile, ProfileError

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from collections.abc import Mapping

OK_STATUS = 200
LOCK_SHARE = 0.5  # of the time that is left; then the token is renewed all the same


def renew(profile: Profile, env: Mapping[str, str], deadline: float) -> Profile:
    """The profile with a fresh token, or as it is if the server cannot be asked.

    Raises ProfileError if the server refuses, as after the device was revoked.
    """
    if sys.flags.no_site:
        import site

        site.main()
    try:
        from accord.settings.profile_store import current_profile
    except ImportError:  # an installation that this Python does not find by itself
        return profile

    def refresh(url: str, proof: bytes) -> tuple[str, int]:
        return _request_token(url, proof, deadline, env)

    try:
        return current_profile(profile, env, refresh, seconds_left(deadline) * LOCK_SHARE)
    except (OSError, ImportError):
        return profile  # the old token is tried, and refused if it has ended


def _request_token(
    url: str, proof: bytes, deadline: float, env: Mapping[str, str]
) -> tuple[str, int]:
    """Send a proof; the new token and when it expires, in seconds since 1970."""
    from accord.settings.profile_store import REFRESH_PATH

    path = "".join(f"/{each}" for each in REFRESH_PATH)
    response = exchange(url, render_request(url, path, proof), deadline, env)
    try:
        content = json.loads(response.body)
        if response.status == OK_STATUS:
            return content["token"], _expiry_of(content["token"])
        reason = str(content["error"]["message"])
    except (ValueError, LookupError, TypeError):
        raise ConnectionError("the answer is not from an Accord server") from None
    raise ProfileError(reason)


def _expiry_of(token: str) -> int:
    """When the token expires, by its own claim."""
    from base64 import urlsafe_b64decode

    payload = token.split(".")[1]
    return int(json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
