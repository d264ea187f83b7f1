"""The token of a connection's agent, renewed by proof and kept in memory alone."""

import json
import threading
import time

from accord.client.errors import ServerRefused, SignedOut, Unreachable
from accord.client.sign_in.profile_token import as_signed_out, refresh_token
from accord.hosts.connections import Connection
from accord.settings.profile_store import RENEW_BEFORE_S, new_proof
from accord.settings.profiles import ProfileError, may_carry_token, plain_http_sentence


class ConnectionToken:
    """Gives the token that is valid now; many threads may ask."""

    def __init__(self, connection: Connection) -> None:
        self._profile = connection.profile
        self._token = ""
        self._expires_at = 0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        """The token; raises SignedOut or Unreachable."""
        with self._lock:
            if self._expires_at - time.time() > RENEW_BEFORE_S:
                return self._token
            try:
                self._token, self._expires_at = self._renewed()
            except (Unreachable, ServerRefused) as error:
                if self._expires_at <= time.time():
                    raise as_signed_out(error) from error
            return self._token

    def _renewed(self) -> tuple[str, int]:
        if not may_carry_token(self._profile.url):
            raise SignedOut(plain_http_sentence(self._profile.url))
        try:
            proof = new_proof(self._profile, time.time_ns() // 1_000_000)
        except ProfileError as error:
            raise SignedOut(str(error)) from error
        return refresh_token(self._profile.url, json.dumps(proof).encode())
