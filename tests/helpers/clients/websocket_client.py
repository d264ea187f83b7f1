"""A bare WebSocket client for tests that need control over every frame."""

import asyncio
import json
import uuid
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

RECEIVE_TIMEOUT_S = 30.0
SESSION_CONFIG: dict[str, Any] = {
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


class WebSocketClient:
    """One WebSocket connection without any of the client's logic."""

    def __init__(self, socket: ClientConnection, seat: str) -> None:
        self.socket = socket
        self.seat = seat

    @classmethod
    async def open(
        cls, url: str, seat: str = "", token: str = "", **more: Any
    ) -> "WebSocketClient":
        """Open a connection."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        headers |= more.pop("headers", {})
        # Without a bound it always reads: a close must not wait behind frames that no test reads.
        # A test of a slow reader pauses the transport itself.
        more = {"open_timeout": RECEIVE_TIMEOUT_S, "max_size": None, "max_queue": None, **more}
        socket = await connect(url, additional_headers=headers, **more)
        return cls(socket, seat)

    async def send(self, type: str, session: str, payload: Any, **more: Any) -> str:
        """Send one envelope; returns its id."""
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

    async def receive(self) -> dict[str, Any]:
        """The next envelope received."""
        text = await asyncio.wait_for(self.socket.recv(), RECEIVE_TIMEOUT_S)
        envelope: dict[str, Any] = json.loads(text)
        return envelope

    async def receive_until(self, type: str, **payload: Any) -> dict[str, Any]:
        """The next envelope of that type whose payload contains these values."""
        while True:
            envelope = await self.receive()
            if envelope["type"] == type and payload.items() <= envelope["payload"].items():
                return envelope

    async def create(self, session: str = "new", **config: Any) -> str:
        """Create a session; returns its id."""
        id = await self.send("session.create", session, {"config": SESSION_CONFIG | config})
        echo = await self.receive_until("session.create")
        assert echo["ref"] == id
        created: str = echo["session"]
        return created

    async def join(
        self, session: str, kind: str = "human", roles: Any = ("driver",), **more: Any
    ) -> str:
        """Send a join; returns its message id."""
        participant = {
            "id": self.seat,
            "name": self.seat,
            "type": kind,
            "roles": list(roles),
            "transport": "websocket",
        }
        token = more.pop("token", None)
        payload = {"participant": participant, "supported_versions": [1]}
        return await self.send(
            "session.join", session, payload | ({"token": token} if token else {}), **more
        )

    async def close(self) -> None:
        """Close the connection; without a handshake if the test stopped reading from it."""
        if not self.socket.transport.is_reading():
            self.socket.transport.abort()
        await self.socket.close()

    async def wait_closed(self) -> tuple[int, str]:
        """Wait until the server closes the connection; returns its code and reason."""
        await asyncio.wait_for(self.socket.wait_closed(), RECEIVE_TIMEOUT_S)
        return self.socket.close_code or 0, self.socket.close_reason or ""
