"""Sends single messages to sessions over HTTP, without a connection that stays open."""

import asyncio

import msgspec

from accord.api.responses import MessageReceipt
from accord.client.connection.backoff import Backoff, RetryPolicy
from accord.client.connection.outbox import AcceptedMessage
from accord.client.envelope import OutgoingMessage, decode_envelope, parse_head
from accord.client.errors import ClientError, ServerRefused, Unreachable
from accord.client.http_client import (
    FIRST_ERROR_STATUS,
    REQUEST_TIMEOUT_S,
    HttpClient,
    HttpResponse,
    is_transient,
    retry_after_s,
)
from accord.client.identity import Identity, ServerAddress
from accord.core.room.conversation.error_reports import ErrorReport

# The same id makes it the same message, so sending it again is safe.
MAX_ATTEMPTS = 4


class HttpSender:
    """Posts messages of one principal, who must be a member of the session."""

    def __init__(
        self,
        address: ServerAddress,
        identity: Identity,
        retry: RetryPolicy | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        token = identity.source or identity.token
        self._http = HttpClient(address, token, timeout_s)
        self._principal: dict[str, str] = {} if token else {"as": identity.id}
        self._retry = retry or RetryPolicy()

    async def post(self, message: OutgoingMessage) -> AcceptedMessage:
        """Send a message; raises ServerRefused or Unreachable."""
        backoff = Backoff(self._retry)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return await asyncio.to_thread(self.send, message)
            except ClientError as error:
                if attempt == MAX_ATTEMPTS or not is_transient(error):
                    raise
                await backoff.wait(retry_after_s(error))
        raise AssertionError("unreachable")  # the last attempt returns or raises

    def send(self, message: OutgoingMessage) -> AcceptedMessage:
        """Send a message once and wait for the answer; raises ServerRefused or Unreachable."""
        path = ("sessions", message.session, "messages")
        body = message.text.encode()
        response = self._http.send("POST", path, self._principal, body)
        if response.status >= FIRST_ERROR_STATUS:
            raise self._refusal(response)
        receipt = msgspec.json.decode(response.body, type=MessageReceipt)
        return AcceptedMessage(receipt.id, receipt.seq, None)

    def _refusal(self, response: HttpResponse) -> ServerRefused | Unreachable:
        """The server answers a message with an `error` envelope, and a request with JSON."""
        head = parse_head(response.body)
        envelope = decode_envelope(head) if head else None
        if envelope is None or not isinstance(problem := envelope.body, ErrorReport):
            return self._http.error_of(response)
        return ServerRefused(
            problem.code,
            problem.message,
            recoverable=problem.recoverable,
            details=problem.details,
            status=response.status,
        )
