"""Over HTTP, too: who reads or speaks slowly slows nobody, costs little and is let go cleanly."""

import asyncio
import contextlib
import json
import selectors
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.attacks.bystanders import witnessed
from tests.helpers.attacks.raw_socket import memory, plug
from tests.helpers.clients.http_client import HttpClient, envelope
from tests.helpers.servers.server_process import ServerProcess, run_server

KIB, MIB = 1 << 10, 1 << 20
TEXT = "x" * 64_000
PATIENCE = 60.0
# Who would wait for a reader would wait for the 30 seconds that it has.
LONGEST = 20
POLLS = 600
WAITING = 16


def request(server: ServerProcess, method: str, path: str, token: str, **headers: Any) -> bytes:
    """The head of a request."""
    more = {"Host": server.url[7:], "Authorization": f"Bearer {token}", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in more.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def deaf(server: ServerProcess, *sent: bytes) -> socket.socket:
    """Somebody who asks, has no room for an answer and reads nothing."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect(("127.0.0.1", server.port))
    for each in sent:
        opened.sendall(each)
    return opened


def end_of(opened: socket.socket) -> bytes:
    """What was on its way, to the end, which must come."""
    opened.settimeout(PATIENCE)
    heard = b""
    with contextlib.suppress(ConnectionError):
        while more := opened.recv(1 << 16):
            heard += more
    return heard


def wait_for(what: Callable[[], bool]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


async def until(server: ServerProcess, word: str) -> None:
    """Wait until the server has noticed."""
    await asyncio.to_thread(wait_for, lambda: word in server.log)


def established(server: ServerProcess) -> int:
    """How many connections the server holds over HTTP, by the kernel's word."""
    mine = set()
    for each in Path(f"/proc/{server.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            mine.add(str(each.readlink()))
    rows = [each.split() for each in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    port = f":{server.port:04X}"
    return sum(row[1].endswith(port) and f"socket:[{row[9]}]" in mine for row in rows) - 1


@contextlib.asynccontextmanager
async def people(server: ServerProcess, *seats: str) -> AsyncIterator[list[HttpClient]]:
    """The first opens a session, the others come in."""
    webs = [HttpClient.with_token(server, seat, roles=["admin", "driver"]) for seat in seats]
    try:
        yield webs
    finally:
        for web in webs:
            await web.close()


def token_of(web: HttpClient) -> str:
    word: str = web.http.headers["authorization"]
    return word.removeprefix("Bearer ")


# Reading


async def test_events_that_nobody_reads_slow_nobody_and_end(tmp_path: Path) -> None:
    flags = ("--limit", f"backlog={256 * KIB}")
    with run_server(tmp_path, "token", *flags) as server, contextlib.ExitStack() as opened:
        async with people(server, "alice", "bob", "lazy") as (alice, bob, lazy):
            session = await alice.create()
            for web in (bob, lazy):
                await web.join(session)
            path = f"/sessions/{session}/events"
            stuck = opened.enter_context(deaf(server, request(server, "GET", path, token_of(lazy))))
            before, slowest = memory(server), 0.0
            async with bob.open_events(session) as events:
                for number in range(100):
                    began = time.monotonic()
                    said = {"key": "k", "content_type": "text", "content": f"{number}:{TEXT}"}
                    await alice.send("context.add", session, said)
                    heard = await events.wait_for("context.add")
                    slowest = max(slowest, time.monotonic() - began)
                    assert heard.envelope["payload"]["content"].startswith(f"{number}:"), (
                        "none missing"
                    )
            assert slowest < LONGEST, "nobody waited for the one who does not read"
            assert memory(server) - before < 64
            await until(server, "reader.cut_off")
            assert '"lazy"' in server.log
            last = end_of(stuck)
            assert len(last) < 4 * MIB, "it was let go, and told no more"
            again = await lazy.poll(session)
            assert again["messages"], "whoever was cut off comes back and reads on"


async def test_who_reads_nothing_of_an_answer_is_not_waited_for(tmp_path: Path) -> None:
    flags = ("--limit", "stall_seconds=1")
    with run_server(tmp_path, "token", *flags) as server, contextlib.ExitStack() as opened:
        async with people(server, "alice") as (alice,):
            session = await filled(alice)
            await alice.close()
            async with witnessed(server):
                before, quiet = memory(server), established(server)
                for rest in ("transcript", "messages", "events"):
                    ask = request(server, "GET", f"/sessions/{session}/{rest}", token_of(alice))
                    opened.enter_context(deaf(server, ask * 4))
                await asyncio.to_thread(wait_for, lambda: established(server) >= quiet + 3)
                await asyncio.to_thread(wait_for, lambda: established(server) <= quiet)
            assert memory(server) - before < 64


async def filled(web: HttpClient) -> str:
    """A session whose history is a page as long as a page may be."""
    session = await web.create()
    for number in range(6):
        item = {"key": f"k{number}", "content_type": "text", "content": "x" * 900_000}
        await web.send("context.add", session, item)
    return session


async def test_pages_that_nobody_reads_are_bounded_together(tmp_path: Path) -> None:
    flags = ("--limit", "unread=8MiB")
    with run_server(tmp_path, "token", *flags) as server, contextlib.ExitStack() as opened:
        async with people(server, "alice", "bob") as (alice, bob):
            session = await filled(alice)
            await bob.join(session)
            assert len((await alice.poll(session))["messages"]) > 3
            before = memory(server)
            ask = request(server, "GET", f"/sessions/{session}/transcript", token_of(alice))
            async with witnessed(server):
                for number in range(160):
                    opened.enter_context(deaf(server, ask))
                    if number % 8 == 0:
                        page = await bob.poll(session)
                        assert page["messages"], "who reads is answered"
            await until(server, "readers.cut_off")
            grown = memory(server) - before
            # With the bound it stays near 90 after any number of requests: pages being encoded and
            # what the allocator keeps. Without it, 160 requests take over 500.
            assert grown < 250, f"{grown} MiB for answers that are never read"


async def test_hundreds_of_polls_of_one_caller_are_their_own_affair(tmp_path: Path) -> None:
    flags = ("--limit", f"polls_per_principal={WAITING}")
    with run_server(tmp_path, "token", *flags) as server, contextlib.ExitStack() as opened:
        async with people(server, "alice", "mallory") as (alice, mallory):
            session = await alice.create()
            joined = await mallory.join(session)
            last = (await mallory.poll(session))["messages"][-1]["id"]
            path = f"/sessions/{session}/messages?after={last}&wait=30"
            ask = request(server, "GET", path, token_of(mallory))
            before = memory(server)
            async with witnessed(server):
                answers = await asyncio.to_thread(flood, server, ask, opened)
                assert all(b" 429 " in each for each in answers)
                assert all(b'"limit":"polls_per_principal"' in each for each in answers)
                said = await alice.send("prompt.draft", session, DRAFT)
                assert said["session"] == joined["session"], "others post and poll"
                assert (await alice.poll(session))["messages"]
            assert memory(server) - before < 40
            opened.close()
            await waits_again(mallory, session, last)


DRAFT = {"content": "x", "contributors": ["alice"]}


def flood(server: ServerProcess, ask: bytes, opened: contextlib.ExitStack) -> list[bytes]:
    """Hundreds ask, a hundred at a time; what all hear but the few who may wait."""
    hearing = opened.enter_context(selectors.DefaultSelector())
    heard: dict[socket.socket, bytes] = {}
    for asked in range(100, POLLS + 1, 100):
        plugs = [opened.enter_context(plug(server)) for _ in range(100)]
        for each in plugs:
            hearing.register(each, selectors.EVENT_READ)
            each.sendall(ask)
        deadline = time.monotonic() + PATIENCE
        while sum(b"}}" in answer for answer in heard.values()) < asked - WAITING:
            assert time.monotonic() < deadline, f"only {len(heard)} of {asked} were answered"
            for key, _ in hearing.select(0.1):
                heard_by: Any = key.fileobj
                heard[heard_by] = heard.get(heard_by, b"") + heard_by.recv(1 << 16)
    return list(heard.values())


async def waits_again(web: HttpClient, session: str, last: str) -> None:
    """Those who hung up have left their places to others."""
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await web.http.get(f"/sessions/{session}/messages?after={last}&wait=1")
            if answer.status_code == 200:
                return
            assert answer.status_code == 429


# Speaking


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that waits a second for a body."""
    where = tmp_path_factory.mktemp("hasty")
    with run_server(where, "token", "--limit", "body_seconds=1") as server:
        yield server


DRIP_S = 0.1


def drip(opened: socket.socket, body: bytes) -> bytes:
    """A byte now and then, until the other side has had enough; what it says."""
    opened.settimeout(DRIP_S)
    heard = b""
    with contextlib.suppress(ConnectionError):
        for byte in body:
            opened.sendall(bytes((byte,)))
            with contextlib.suppress(TimeoutError):
                while more := opened.recv(1 << 16):
                    heard += more
                return heard
    return heard


def answered(heard: bytes) -> tuple[int, dict[str, Any]]:
    """Status and error of an answer."""
    head, _, body = heard.partition(b"\r\n\r\n")
    said = json.loads(body)
    assert b"connection: close" in head.lower()
    return int(head.split()[1]), said.get("payload") or said["error"]


POSTS = ("/sessions/{id}/messages", "/admin/tokens")


@pytest.mark.parametrize("route", POSTS)
async def test_a_body_that_drips_is_refused_in_time(hasty: ServerProcess, route: str) -> None:
    async with people(hasty, "alice") as (alice,):
        session = await alice.create()
        before = (await alice.poll(session))["messages"]
        body = json.dumps(envelope("prompt.draft", session, "alice", DRAFT)).encode()
        token = token_of(alice) if "sessions" in route else hasty.admin_token
        more = {"Content-Type": "application/json", "Content-Length": len(body)}
        head = request(hasty, "POST", route.replace("{id}", session), token, **more)
        began = time.monotonic()
        async with witnessed(hasty):
            with plug(hasty) as opened:
                opened.sendall(head)
                status, problem = answered(await asyncio.to_thread(drip, opened, body))
        assert time.monotonic() - began < DRIP_S * len(body), "before all of it could come"
        assert status == 504
        assert problem["details"] == {"limit": "body_seconds", "most": 1}
        assert (await alice.poll(session))["messages"] == before


@pytest.mark.parametrize("route", POSTS)
async def test_a_body_that_breaks_off_is_nobodys_fault(hasty: ServerProcess, route: str) -> None:
    async with people(hasty, "alice") as (alice,):
        session = await alice.create()
        before = (await alice.poll(session))["messages"]
        token = token_of(alice) if "sessions" in route else hasty.admin_token
        more = {"Content-Type": "application/json", "Content-Length": 1000}
        head = request(hasty, "POST", route.replace("{id}", session), token, **more)
        for rest in (b"", b'{"v":1,'):
            with plug(hasty) as opened:
                opened.sendall(head + rest)
        assert (await alice.poll(session))["messages"] == before
    assert "Traceback" not in hasty.log


async def test_many_who_drip_cost_little_and_slow_nobody(hasty: ServerProcess) -> None:
    async with people(hasty, "alice", "mallory") as (alice, mallory):
        session = await alice.create()
        await mallory.join(session)
        before, held = (await alice.poll(session))["messages"], memory(hasty)
        more = {"Content-Type": "application/json", "Content-Length": MIB}
        path = f"/sessions/{session}/messages"
        head = request(hasty, "POST", path, token_of(mallory), **more)
        with contextlib.ExitStack() as opened:
            async with witnessed(hasty):
                answers = await asyncio.to_thread(begun, hasty, head + b"{", opened)
            statuses = [int(each.split()[1]) for each in answers]
            assert set(statuses) == {429, 504}
            busy = [answered_in(each) for each in answers if b" 429 " in each]
            assert {each["details"]["limit"] for each in busy} == {"stream_burst"}
        assert memory(hasty) - held < 100
        assert (await alice.poll(session))["messages"] == before


def begun(server: ServerProcess, sent: bytes, opened: contextlib.ExitStack) -> list[bytes]:
    """What those hear who begin and say no more."""
    plugs = []
    for _ in range(400):  # each says at once who it is, for of many strangers the oldest give way
        plugs.append(opened.enter_context(plug(server)))
        plugs[-1].sendall(sent)
    return [end_of(each) for each in plugs]


def answered_in(heard: bytes) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(heard.partition(b"\r\n\r\n")[2])["payload"]
    return said
