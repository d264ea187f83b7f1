"""A bare WebSocket that says exactly what a test wants said."""

import asyncio
import json
import uuid
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

PATIENCE = 30.0
CONFIG: dict[str, Any] = {
    "require_approval_for": ["shell_execute", "file_write"],
    "default_gate_quorum": {"type": "any", "count": 1},
    "allow_forks": True,
    "max_participants": 5,
    "ordering_mode": "causal",
    "on_participant_timeout": "wait",
    "heartbeat_interval_seconds": 30,
    "idle_timeout_seconds": 120,
    "away_timeout_seconds": 300,
}


class Wire:
    """One connection, as raw as it gets."""

    def __init__(self, socket: ClientConnection, seat: str) -> None:
        self.socket = socket
        self.seat = seat

    @classmethod
    async def open(cls, url: str, seat: str = "", token: str = "", **more: Any) -> "Wire":
        """Connected."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= more.pop("headers", {})
        more = {"open_timeout": PATIENCE, "max_size": None, **more}
        socket = await connect(url, additional_headers=headers, **more)
        return cls(socket, seat)

    async def say(self, type: str, session: str, payload: Any, **more: Any) -> str:
        """One envelope; returns its id."""
        envelope = {
            "v": 1,
            "id": uuid.uuid4().hex,
            "ts": "2026-01-30T20:00:00.000Z",
            "session": session,
            "sender": self.seat,
            "type": type,
            "payload": payload,
            **more,
        }
        await self.socket.send(json.dumps(envelope))
        id: str = envelope["id"]
        return id

    async def hear(self) -> dict[str, Any]:
        """The next envelope."""
        text = await asyncio.wait_for(self.socket.recv(), PATIENCE)
        heard: dict[str, Any] = json.loads(text)
        return heard

    async def hear_until(self, type: str, **payload: Any) -> dict[str, Any]:
        """The next envelope of that type with these things in its payload."""
        while True:
            heard = await self.hear()
            if heard["type"] == type and payload.items() <= heard["payload"].items():
                return heard

    async def create(self, session: str = "new", **config: Any) -> str:
        """A session of this connection's own; returns its id."""
        id = await self.say("session.create", session, {"config": CONFIG | config})
        heard = await self.hear_until("session.create")
        assert heard["ref"] == id
        made: str = heard["session"]
        return made

    async def join(
        self, session: str, kind: str = "human", roles: Any = ("driver",), **more: Any
    ) -> str:
        """Ask to come in; returns the id of the join."""
        who = {
            "id": self.seat,
            "name": self.seat,
            "type": kind,
            "roles": list(roles),
            "transport": "websocket",
        }
        token = more.pop("token", None)
        payload = {"participant": who, "supported_versions": [1]}
        return await self.say(
            "session.join", session, payload | ({"token": token} if token else {}), **more
        )

    async def closed(self) -> tuple[int, str]:
        """Wait for the other side to hang up; its code and reason."""
        await asyncio.wait_for(self.socket.wait_closed(), PATIENCE)
        return self.socket.close_code or 0, self.socket.close_reason or ""
