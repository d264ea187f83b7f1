"""An HTTP client for tests that need control over every request."""

import json
import ssl
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx

from tests.helpers.clients.websocket_client import SESSION_CONFIG
from tests.helpers.servers.server_process import ServerProcess

# Longer than any long poll in the tests.
HTTP_TIMEOUT_S = 90.0


def tls_verification(url: str) -> ssl.SSLContext | bool:
    """The TLS verification for a URL; it trusts the authorities in SSL_CERT_FILE."""
    return ssl.create_default_context() if url.startswith("https:") else True


def envelope(type: str, session: str, sender: str, payload: Any, **more: Any) -> dict[str, Any]:
    """A JSON envelope with a fresh id."""
    return {
        "v": 1,
        "id": uuid.uuid4().hex,
        "ts": "2026-01-30T20:00:00.000Z",
        "session": session,
        "sender": sender,
        "type": type,
        "payload": payload,
        **more,
    }


def join_payload(seat: str, kind: str = "human", roles: Any = ("driver",)) -> dict[str, Any]:
    """The payload of a `session.join`."""
    who = {"id": seat, "name": seat, "type": kind, "roles": list(roles), "transport": "http"}
    return {"participant": who, "supported_versions": [1]}


class ServerSentEvent(NamedTuple):
    """One event of a server-sent event stream."""

    type: str
    id: str
    envelope: dict[str, Any]


class HttpClient:
    """A member that uses only HTTP."""

    def __init__(self, url: str, seat: str, token: str = "") -> None:
        self.seat = seat
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        query = {} if token else {"as": seat}
        self.http = httpx.AsyncClient(
            base_url=url,
            headers=headers,
            params=query,
            timeout=HTTP_TIMEOUT_S,
            trust_env=False,
            verify=tls_verification(url),
        )

    @classmethod
    def with_token(cls, server: ServerProcess, seat: str, **claims: Any) -> "HttpClient":
        """A client with a newly issued token."""
        return cls(server.url, seat, server.issue_token(seat, **claims))

    async def post(self, session: str, message: dict[str, Any]) -> httpx.Response:
        """Post one envelope to a session."""
        return await self.http.post(f"/sessions/{session}/messages", json=message)

    async def send(self, type: str, session: str, payload: Any, **more: Any) -> dict[str, Any]:
        """Send a message that must be accepted; returns the receipt."""
        response = await self.post(session, envelope(type, session, self.seat, payload, **more))
        assert response.status_code == 200, response.text
        receipt: dict[str, Any] = response.json()
        return receipt

    async def create(self, **config: Any) -> str:
        """Create a session; returns its id."""
        receipt = await self.send("session.create", "new", {"config": SESSION_CONFIG | config})
        session: str = receipt["session"]
        return session

    async def join(self, session: str, **who: Any) -> dict[str, Any]:
        """Join a session."""
        return await self.send("session.join", session, join_payload(self.seat, **who))

    async def poll(self, session: str, after: str | None = None, **query: Any) -> dict[str, Any]:
        """One page of messages after the message `after`."""
        params = query if after is None else {"after": after, **query}
        response = await self.http.get(f"/sessions/{session}/messages", params=params)
        assert response.status_code == 200, response.text
        page: dict[str, Any] = response.json()
        return page

    @asynccontextmanager
    async def open_events(
        self, session: str, after: str | None = None
    ) -> AsyncIterator["EventStream"]:
        """Open the session's event stream."""
        headers = {} if after is None else {"Last-Event-ID": after}
        path = f"/sessions/{session}/events"
        async with self.http.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield EventStream(response)

    async def close(self) -> None:
        await self.http.aclose()


class EventStream:
    """Reads the events of one stream in order."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.lines = response.aiter_lines()
        self.comments: list[str] = []

    async def next_event(self) -> ServerSentEvent | None:
        """The next event; None at the end of the stream."""
        fields: dict[str, str] = {}
        async for line in self.lines:
            name, _, value = line.partition(": ")
            if not line and "data" in fields:
                data = json.loads(fields["data"])
                return ServerSentEvent(fields["event"], fields.get("id", ""), data)
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                fields[name] = value
        return None

    async def wait_for(self, type: str) -> ServerSentEvent:
        """The next event of that type."""
        while (event := await self.next_event()) is not None:
            if event.type == type:
                return event
        raise AssertionError(f"the stream ended before any {type}")
