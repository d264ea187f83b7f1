"""A caller over plain HTTP who says exactly what a test wants said."""

import json
import ssl
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx

from tests.helpers.server import ServerProcess
from tests.helpers.wire import CONFIG

# Longer than any poll of a test waits.
PATIENCE = 90.0


def trust(url: str) -> ssl.SSLContext | bool:
    """Whom to believe at an address: those that SSL_CERT_FILE names."""
    return ssl.create_default_context() if url.startswith("https:") else True


def envelope(type: str, session: str, sender: str, payload: Any, **more: Any) -> dict[str, Any]:
    """A message of somebody's."""
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


def participant(seat: str, kind: str = "human", roles: Any = ("driver",)) -> dict[str, Any]:
    """The payload of somebody's join."""
    who = {"id": seat, "name": seat, "type": kind, "roles": list(roles), "transport": "http"}
    return {"participant": who, "supported_versions": [1]}


class Event(NamedTuple):
    """One server-sent event."""

    type: str
    id: str
    said: dict[str, Any]


class Web:
    """Somebody who speaks HTTP."""

    def __init__(self, url: str, seat: str, token: str = "") -> None:
        self.seat = seat
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        query = {} if token else {"as": seat}
        self.http = httpx.AsyncClient(
            base_url=url,
            headers=headers,
            params=query,
            timeout=PATIENCE,
            trust_env=False,
            verify=trust(url),
        )

    @classmethod
    def of(cls, server: ServerProcess, seat: str, **wish: Any) -> "Web":
        """With a token of their own."""
        return cls(server.url, seat, server.issue(seat, **wish))

    async def post(self, session: str, message: dict[str, Any]) -> httpx.Response:
        """One envelope, to that session."""
        return await self.http.post(f"/sessions/{session}/messages", json=message)

    async def say(self, type: str, session: str, payload: Any, **more: Any) -> dict[str, Any]:
        """Something that is accepted; what came back."""
        answer = await self.post(session, envelope(type, session, self.seat, payload, **more))
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def create(self, **config: Any) -> str:
        """A session of their own; returns its id."""
        told = await self.say("session.create", "new", {"config": CONFIG | config})
        session: str = told["session"]
        return session

    async def join(self, session: str, **who: Any) -> dict[str, Any]:
        """Come in."""
        return await self.say("session.join", session, participant(self.seat, **who))

    async def poll(self, session: str, after: str | None = None, **query: Any) -> dict[str, Any]:
        """What was said behind that message."""
        where = query if after is None else {"after": after, **query}
        answer = await self.http.get(f"/sessions/{session}/messages", params=where)
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json()
        return page

    @asynccontextmanager
    async def listen(self, session: str, after: str | None = None) -> AsyncIterator["Listening"]:
        """The session as events."""
        headers = {} if after is None else {"Last-Event-ID": after}
        path = f"/sessions/{session}/events"
        async with self.http.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200, await answer.aread()
            yield Listening(answer)

    async def close(self) -> None:
        """Hang up."""
        await self.http.aclose()


class Listening:
    """The events of one stream, in order."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.lines = answer.aiter_lines()
        self.comments: list[str] = []

    async def next(self) -> Event | None:
        """The next one; None at the end."""
        fields: dict[str, str] = {}
        async for line in self.lines:
            name, _, value = line.partition(": ")
            if not line and "data" in fields:
                said = json.loads(fields["data"])
                return Event(fields["event"], fields.get("id", ""), said)
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                fields[name] = value
        return None

    async def until(self, type: str) -> Event:
        """The next one of that type."""
        while (event := await self.next()) is not None:
            if event.type == type:
                return event
        raise AssertionError(f"the stream ended before any {type}")
