"""A server with low limits, and a session of somebody who meets one of them."""

import asyncio
import socket
from typing import Any, NamedTuple

import httpx

from tests.helpers.clients.http_client import HttpClient, envelope, join_payload
from tests.helpers.servers.server_process import ServerProcess

KIB = 1 << 10
LOW = {
    "participants": 2,
    "seats": 3,
    "metadata": 100,
    "tools": 1,
    "gates": 1,
    "streams": 1,
    "secrets": 1,
    "forks": 1,
    "context_item": 1000,
    "context": 1500,
    "context_kept": 2000,
    "message": 8 * KIB,
    "frame": 64 * KIB,
    "stream_bytes": 4 * KIB,
    "stream_burst": 256 * KIB,
    "connections_per_principal": 2,
    "polls_per_principal": 1,
    "sessions_per_principal": 2,
    "head": 2 * KIB,
    "body": 1 * KIB,
    "body_seconds": 1,
    "queue": 1,
}
# Those about the whole server, or about its store, get one of their own.
OWN = {"unstored": 64 * KIB, "unstored_session": 64 * KIB}


class Scene(NamedTuple):
    """A session of one principal, who meets one limit."""

    server: ServerProcess
    name: str
    web: HttpClient
    session: str
    others: list[HttpClient]
    plugs: list[socket.socket]
    taken: list[str]

    @property
    def token(self) -> str:
        word: str = self.web.http.headers["authorization"]
        return word.removeprefix("Bearer ")

    async def post(self, type: str, payload: Any, **more: Any) -> httpx.Response:
        return await self.web.post(
            self.session, envelope(type, self.session, self.web.seat, payload, **more)
        )

    async def say(self, type: str, payload: Any, **more: Any) -> str:
        told = await self.web.send(type, self.session, payload, **more)
        id: str = told["id"]
        return id

    async def other(self, seat: str, **wish: Any) -> HttpClient:
        self.others.append(HttpClient.with_token(self.server, f"{seat}-{self.name}", **wish))
        return self.others[-1]

    async def everything(self) -> dict[str, Any]:
        """What the server would tell of it: all that was said, how it stands, and the list."""
        where = f"/sessions/{self.session}"
        said = (await self.told(f"{where}/transcript?limit=1000"))["messages"]
        return {
            "said": [each for each in said if each["id"] not in self.taken],
            "detail": await self.told(where),
            "sessions": await self.told("/sessions"),
        }

    async def told(self, path: str) -> Any:
        """An answer; who has sent too much waits for it."""
        answer = await self.web.http.get(path)
        if answer.status_code == 429:
            await asyncio.sleep(int(answer.headers["retry-after"]))
            return await self.told(path)
        return answer.json()


def note(key: str, size: int = 1, **more: Any) -> dict[str, Any]:
    return {"key": key, "content_type": "text", "content": "x" * size, **more}


def tool(agent: str, category: str = "file_read") -> dict[str, Any]:
    return {
        "tool_name": "look",
        "arguments": {},
        "agent": agent,
        "risk_level": "low",
        "description": "Look",
        "requires_approval": False,
        "category": category,
    }


def prompt(agent: str) -> dict[str, Any]:
    return {"content": "Go", "target_agent": agent, "contributors": [], "context_keys": []}


async def join(web: HttpClient, session: str, **who: Any) -> httpx.Response:
    return await web.post(
        session, envelope("session.join", session, web.seat, join_payload(web.seat, **who))
    )


async def agent_of(scene: Scene) -> HttpClient:
    agent = await scene.other("agent", kind="agent")
    assert (await join(agent, scene.session, kind="agent")).status_code == 200
    return agent
