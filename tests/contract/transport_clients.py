"""Somebody in a room, over each transport; a transport is right when the suite passes for it.

A row of `TRANSPORTS` is a class that opens, sends and hears. What it sends and hears is raw: no row
mends, sorts or forgets anything.
"""

import asyncio
import json
import sys
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import httpx
from websockets.asyncio.client import ClientConnection, connect

from accord.client.connection.websocket import CONNECTION_ERRORS
from tests.helpers.clients.cli import clean_environment
from tests.helpers.clients.http_client import EventStream, envelope, join_payload, tls_verification
from tests.helpers.servers.server_process import ServerProcess

PATIENCE = 60.0
Said = dict[str, Any]


class Answer(NamedTuple):
    """Where in the room a message is."""

    id: str
    seq: int
    session: str


class Refusal(Exception):  # noqa: N818 - an answer, not a fault
    """A message that was not taken."""

    def __init__(self, said: Said) -> None:
        super().__init__(said["message"])
        self.code = said["code"]
        self.said = said


class Speaker(ABC):
    """One person on one transport."""

    # Whether the values of secrets reach them.
    whispers: ClassVar[bool] = True
    # How a failed transport shows: an error in PVP's words, or what the speaker's own end raises.
    failure: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, server: ServerProcess, seat: str, token: str, home: Path) -> None:
        self.server = server
        self.seat = seat
        self.token = token
        self.home = home
        self.inbox: deque[Said] = deque()
        self.heard: list[Said] = []
        self.session = ""

    # What a row says

    @abstractmethod
    async def open(self) -> None:
        """Connect, where there is something to connect to."""

    @abstractmethod
    async def send(self, message: Said) -> Answer:
        """Say it, and wait for the answer; raises Refusal."""

    @abstractmethod
    async def listen(self) -> Said:
        """The next thing that comes, whatever it is."""

    async def resume(self) -> None:  # noqa: B027 - most rows come back by themselves
        """After a loss: hear on behind the last message."""

    @abstractmethod
    async def close(self) -> None:
        """Hang up."""

    # What everybody does

    async def say(self, type: str, payload: Any, **more: Any) -> Answer:
        """Something in the session."""
        return await self.send(envelope(type, self.session, self.seat, payload) | more)

    async def note(self, key: str, **more: Any) -> Answer:
        """Something that is always allowed."""
        payload = {"key": key, "content_type": "text", "content": f"{self.seat}: {key}"}
        return await self.say("context.add", payload, **more)

    async def join(self, session: str, kind: str = "human", roles: Any = ("driver",)) -> Answer:
        """Come in."""
        self.session = session
        payload = join_payload(self.seat, kind, roles)
        return await self.say("session.join", payload)

    async def hear(self) -> Said:
        """The next message that has a place in the order."""
        while True:
            said = self.inbox.popleft() if self.inbox else await self._soon()
            if said.get("seq"):
                self.heard.append(said)
                return said

    async def hear_until(self, id: str) -> list[Said]:
        """Everything up to that message."""
        found: list[Said] = []
        while not found or found[-1]["id"] != id:
            found.append(await self.hear())
        return found

    async def _soon(self) -> Said:
        return await asyncio.wait_for(self.listen(), PATIENCE)

    async def answer_to(self, message: Said) -> Answer:
        """Read on until the message or its error comes."""
        while True:
            said = await self._soon()
            if said["type"] == "error" and said["payload"].get("related_to") == message["id"]:
                raise Refusal(said["payload"])
            self.inbox.append(said)
            if said["id"] == message["id"]:
                return Answer(said["id"], said["seq"], said["session"])


class WebSocket(Speaker):
    """One envelope per text frame."""

    failure = CONNECTION_ERRORS
    socket: ClientConnection

    async def open(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"{self.server.ws_url}?runtime={self.seat}"
        self.socket = await connect(url, additional_headers=headers, max_size=None)

    async def send(self, message: Said) -> Answer:
        await self.socket.send(json.dumps(message))
        return await self.answer_to(message)

    async def listen(self) -> Said:
        said: Said = json.loads(await self.socket.recv())
        return said

    async def resume(self) -> None:
        with suppress(*CONNECTION_ERRORS):
            await self.socket.close()
        await self.open()
        last = self.heard[-1]["id"]
        await self.say("session.join", join_payload(self.seat), ref=last)

    async def close(self) -> None:
        with suppress(*CONNECTION_ERRORS):
            await self.socket.close()


class Http(Speaker):
    """Post, and poll."""

    whispers = False
    failure = (httpx.TransportError,)
    http: httpx.AsyncClient

    async def open(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx.AsyncClient(
            base_url=self.server.url,
            headers=headers,
            timeout=PATIENCE,
            trust_env=False,
            verify=tls_verification(self.server.url),
        )
        self.after: str | None = None
        self.page: deque[Said] = deque()

    async def send(self, message: Said) -> Answer:
        path = f"/sessions/{message['session'] or 'new'}/messages"
        answer = await self.http.post(path, json=message)
        told = answer.json()
        if answer.status_code != 200:
            raise Refusal(told["payload"])
        return Answer(told["id"], told["seq"], told["session"])

    async def listen(self) -> Said:
        while not self.page:
            query = {"wait": "20", **({"after": self.after} if self.after else {})}
            answer = await self.http.get(f"/sessions/{self.session}/messages", params=query)
            assert answer.status_code == 200, answer.text
            told = answer.json()
            self.page += told["messages"]
            self.after = told["next"]
        return self.page.popleft()

    async def close(self) -> None:
        await self.http.aclose()


class Events(Http):
    """Post, and listen to events."""

    whispers = True
    answer: httpx.Response | None = None

    async def listen(self) -> Said:
        if self.answer is None:
            headers = {"Last-Event-ID": self.after} if self.after else {}
            path = f"/sessions/{self.session}/events"
            asked = self.http.build_request("GET", path, headers=headers)
            self.answer = await self.http.send(asked, stream=True)
            assert self.answer.status_code == 200, await self.answer.aread()
            self.events = EventStream(self.answer)
        event = await self.events.next_event()
        if event is None:
            raise httpx.ReadError("the stream has ended")
        self.after = event.id or self.after
        return event.envelope

    async def resume(self) -> None:
        if self.answer is not None:
            await self.answer.aclose()
        self.answer = None

    async def close(self) -> None:
        await self.resume()
        await super().close()


class Stdio(Speaker):
    """One envelope per line, through `accord stdio`."""

    failure = (Refusal,)
    process: asyncio.subprocess.Process

    async def open(self) -> None:
        env = clean_environment(
            ACCORD_URL=self.server.url, ACCORD_TOKEN=self.token, ACCORD_HOME=str(self.home)
        )
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "accord", "stdio"),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=env,
            limit=2 << 20,
        )

    async def send(self, message: Said) -> Answer:
        await self.write(json.dumps(message).encode() + b"\n")
        return await self.answer_to(message)

    async def write(self, data: bytes) -> None:
        """Anything at all."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def listen(self) -> Said:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "it has ended"
        said: Said = json.loads(line)
        return said

    async def end(self) -> tuple[int, bytes, bytes]:
        """End its input; its exit code and what it still said."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        out, err = await asyncio.wait_for(self.process.communicate(), PATIENCE)
        assert self.process.returncode is not None
        return self.process.returncode, out, err

    async def close(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()


TRANSPORTS: dict[str, type[Speaker]] = {
    "websocket": WebSocket,
    "http": Http,
    "sse": Events,
    "stdio": Stdio,
}
