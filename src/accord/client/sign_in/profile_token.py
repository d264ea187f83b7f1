"""The token of a profile, renewed before it expires."""

import os
import threading
import time
from collections.abc import Mapping

import msgspec

from accord.api.people import RefreshedToken
from accord.client.errors import ServerRefused, SignedOut, Unreachable
from accord.client.http_client import FIRST_ERROR_STATUS, PROBE_TIMEOUT_S, HttpClient
from accord.client.identity import decode_claims, parse_address
from accord.settings.profile_store import REFRESH_PATH, current_profile
from accord.settings.profiles import Profile, ProfileError


class ExpiryClaim(msgspec.Struct, frozen=True):
    """When a token expires, in seconds since 1970."""

    exp: int


class ProfileToken:
    """Gives the token of a profile that is valid now; many threads and processes may ask."""

    def __init__(self, profile: Profile, env: Mapping[str, str] | None = None) -> None:
        self._profile = profile
        self._env = os.environ if env is None else env
        self._lock = threading.Lock()

    @property
    def profile(self) -> Profile:
        """The profile as it was last seen."""
        return self._profile

    def __call__(self) -> str:
        """The token; raises SignedOut or Unreachable."""
        with self._lock:
            try:
                self._profile = current_profile(self._profile, self._env, refresh_token)
            except (Unreachable, ServerRefused) as error:
                if self._profile.seconds_left(time.time()) <= 0:
                    raise as_signed_out(error) from error
            except ProfileError as error:
                raise SignedOut(str(error)) from error
            return self._profile.token


def as_signed_out(error: Unreachable | ServerRefused) -> Exception:
    """A refused proof means that the device is signed out."""
    if isinstance(error, ServerRefused) and error.status == 401:
        return SignedOut(error.message)
    return error


def refresh_token(url: str, proof: bytes) -> tuple[str, int]:
    """Send a proof; returns the new token and when it expires."""
    http = HttpClient(parse_address(url), timeout_s=PROBE_TIMEOUT_S)
    response = http.send("POST", REFRESH_PATH, body=proof)
    if response.status >= FIRST_ERROR_STATUS:
        raise http.error_of(response)
    token = http.decode(response.body, RefreshedToken).token
    return token, expiry_of(token)


def expiry_of(token: str) -> int:
    """When the token expires, in seconds since 1970; 0 if it cannot be read."""
    claims = decode_claims(token, ExpiryClaim)
    return claims.exp if claims else 0
