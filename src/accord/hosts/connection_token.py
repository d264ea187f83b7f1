"""The token of a connection's agent, renewed by proof and kept in memory alone."""

import threading
import time
from collections.abc import Callable

from accord.client.errors import ServerRefused, SignedOut, Unreachable
from accord.client.sign_in.profile_token import as_signed_out, refresh_token
from accord.hosts.connections import Connection
from accord.hosts.prove import proof_of
from accord.settings.profile_store import RENEW_BEFORE_S
from accord.settings.profiles import ProfileError, may_carry_token, plain_http_sentence


class ConnectionToken:
    """Gives the token that is valid now; many threads may ask.

    `prove` makes a proof of the connection's key.
    """

    def __init__(
        self, connection: Connection, prove: Callable[[Connection], bytes] = proof_of
    ) -> None:
        self._connection = connection
        self._prove = prove
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
        if not may_carry_token(self._connection.url):
            raise SignedOut(plain_http_sentence(self._connection.url))
        try:
            proof = self._prove(self._connection)
        except ProfileError as error:
            raise SignedOut(str(error)) from error
        return refresh_token(self._connection.url, proof)
