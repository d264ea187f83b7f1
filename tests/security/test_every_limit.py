"""Each limit is reached over a real server: the refusal names it, and nothing has changed."""

import asyncio
import contextlib
import json
import re
import select
import socket
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from accord.core.dialects.codes import CODES
from accord.core.kernel.limits import LIMITS
from accord.core.kernel.refusal import Why
from tests.helpers.server import ServerProcess, a_server
from tests.helpers.web import Web, envelope, participant
from tests.helpers.wire import CONFIG
from tests.security.raw import frame, plug, rest, upgraded
from tests.security.test_limits import stubborn
from tests.security.test_slow_http import established, wait_for

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
# Past these a connection ends, or there is no session yet: each has a test of its own below.
CUT: dict[str, Callable[..., Any]] = {}


def cuts(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The test reaches these."""

    def noted(test: Callable[..., Any]) -> Callable[..., Any]:
        CUT.update(dict.fromkeys(names, test))
        return test

    return noted


@pytest.fixture(scope="module")
def low(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    flags = [word for name, most in LOW.items() for word in ("--limit", f"{name}={most}")]
    with a_server(tmp_path_factory.mktemp("low"), "token", "--rate-limit", "500", *flags) as server:
        yield server


class Scene(NamedTuple):
    """A session of one principal, who meets one limit."""

    server: ServerProcess
    name: str
    web: Web
    session: str
    others: list[Web]
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
        told = await self.web.say(type, self.session, payload, **more)
        id: str = told["id"]
        return id

    async def other(self, seat: str, **wish: Any) -> Web:
        self.others.append(Web.of(self.server, f"{seat}-{self.name}", **wish))
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


# The step that is too much, once everything before it was taken.
Last = Callable[[], Awaitable[httpx.Response]]
Reach = Callable[[Scene], Awaitable[Last]]


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


async def join(web: Web, session: str, **who: Any) -> httpx.Response:
    return await web.post(
        session, envelope("session.join", session, web.seat, participant(web.seat, **who))
    )


async def agent_of(scene: Scene) -> Web:
    agent = await scene.other("agent", kind="agent")
    assert (await join(agent, scene.session, kind="agent")).status_code == 200
    return agent


async def participants(scene: Scene) -> Last:
    await join(await scene.other("one"), scene.session)
    two = await scene.other("two")
    return lambda: join(two, scene.session)


async def seats(scene: Scene) -> Last:
    for name in ("one", "two"):
        web = await scene.other(name)
        assert (await join(web, scene.session)).status_code == 200
        await web.say("session.leave", scene.session, {})
    three = await scene.other("three")
    return lambda: join(three, scene.session)


async def metadata(scene: Scene) -> Last:
    web = await scene.other("one")
    who = participant(web.seat)
    who["participant"]["metadata"] = {"k": "x" * 100}
    return lambda: web.post(scene.session, envelope("session.join", scene.session, web.seat, who))


async def tools(scene: Scene) -> Last:
    agent = await agent_of(scene)
    await agent.say("tool.propose", scene.session, tool(agent.seat, "shell_execute"))
    return lambda: agent.post(
        scene.session, envelope("tool.propose", scene.session, agent.seat, tool(agent.seat))
    )


async def gates(scene: Scene) -> Last:
    agent = await agent_of(scene)
    one, two = [await scene.say("prompt.submit", prompt(agent.seat)) for _ in range(2)]
    ask = {"action_type": "prompt", "quorum": {"type": "any", "count": 1}, "timeout_seconds": 60}
    ask["message"] = "May I?"
    await scene.say("gate.request", {**ask, "action_ref": one})
    return lambda: scene.post("gate.request", {**ask, "action_ref": two})


async def streams(scene: Scene) -> Last:
    agent = await agent_of(scene)
    asked = await scene.say("prompt.submit", prompt(agent.seat))
    start = {"agent": agent.seat, "prompt_ref": asked}
    await agent.say("response.start", scene.session, start)
    return lambda: agent.post(
        scene.session, envelope("response.start", scene.session, agent.seat, start)
    )


async def secrets(scene: Scene) -> Last:
    share = {"scope": [scene.web.seat], "value_ref": "env:X"}
    await scene.say("secret.share", {**share, "key": "a"})
    return lambda: scene.post("secret.share", {**share, "key": "b"})


async def forks(scene: Scene) -> Last:
    point = await scene.say("context.add", note("a"))
    fork = {"from_point": point, "reason": "To see", "participants": [], "copy_context": False}
    await scene.say("fork.create", {**fork, "name": "one"})
    return lambda: scene.post("fork.create", {**fork, "name": "two"})


async def context_item(scene: Scene) -> Last:
    return lambda: scene.post("context.add", note("a", 1001))


async def context(scene: Scene) -> Last:
    await scene.say("context.add", note("a", 900))
    return lambda: scene.post("context.add", note("b", 1, tags=["x" * 600]))


async def context_kept(scene: Scene) -> Last:
    point = await scene.say("context.add", note("a", 100))
    fork = {"from_point": point, "reason": "To see", "participants": [], "copy_context": False}
    await scene.say("fork.create", {**fork, "name": "one"})
    await scene.say("context.add", note("b", 900), fork="one")
    merge = {"source_fork": "one", "target_fork": "main", "strategy": "append", "summary": "So"}
    proposed = await scene.say("merge.propose", merge)
    return lambda: scene.post("merge.execute", {"merge_proposal": proposed})


async def message(scene: Scene) -> Last:
    return lambda: scene.post("context.add", note("a", 8 * KIB))


async def stream_bytes(scene: Scene) -> Last:
    """As much as goes at once; then it takes its time."""
    for _ in range(200):
        answer = await scene.post("context.add", note("a", 7 * KIB))
        if answer.status_code == 429:
            return lambda: scene.post("context.add", note("a", 7 * KIB))
    raise AssertionError("it never ends")


async def stream_burst(scene: Scene) -> Last:
    """Bodies that have begun count, each at least as one part of what may be under way."""
    for _ in range(LOW["stream_burst"] // (64 * KIB)):
        begin_post(scene)
    return lambda: until_refused(scene)


async def until_refused(scene: Scene) -> httpx.Response:
    """As soon as the others have begun; a draft is never kept."""
    while True:
        draft = {"content": "x", "contributors": [scene.web.seat]}
        answer = await scene.post("prompt.draft", draft)
        if answer.status_code != 200:
            return answer


def begin_post(scene: Scene) -> socket.socket:
    """A message of which only the head ever comes."""
    lines = [
        f"POST /sessions/{scene.session}/messages HTTP/1.1",
        f"Host: {scene.server.url[7:]}",
        f"Authorization: Bearer {scene.token}",
        "Content-Type: application/json",
        "Content-Length: 1000",
    ]
    scene.plugs.append(plug(scene.server))
    scene.plugs[-1].sendall("\r\n".join([*lines, "", ""]).encode())
    return scene.plugs[-1]


async def body_seconds(scene: Scene) -> Last:
    return lambda: asyncio.to_thread(answer_on, begin_post(scene))


def answer_on(opened: socket.socket) -> httpx.Response:
    """What a bare connection is told at the end."""
    head, _, body = rest(opened).partition(b"\r\n\r\n")
    return httpx.Response(int(head.split()[1]), content=body)


async def queue(scene: Scene) -> Last:
    """What cites a message that is not at hand is looked up; the others wait meanwhile."""
    for _ in range(2):
        await scene.say("context.add", note("a"))
    return lambda: queued(scene)


async def queued(scene: Scene) -> httpx.Response:
    """Everything arrives at once; the refusal of the last, as HTTP would say it."""
    said = [
        envelope("context.remove", scene.session, scene.web.seat, {"key": "nowhere", "reason": "x"})
        for _ in range(3)
    ]
    said[0]["ref"] = "nowhere"
    with await asyncio.to_thread(upgraded, scene.server, scene.token) as opened:
        opened.sendall(b"".join(frame(json.dumps(each).encode()) for each in said))
        heard = await asyncio.to_thread(errors_on, opened, len(said))
    (no,) = (each for each in heard if each["payload"].get("related_to") == said[-1]["id"])
    return httpx.Response(CODES[Why.TOO_MANY].http, json=no)


def errors_on(opened: socket.socket, count: int) -> list[dict[str, Any]]:
    """The next errors; frames of a server are short here and not masked."""
    heard = b""
    while heard.count(b'"type":"error"') < count or not heard.endswith(b"}"):
        more = opened.recv(1 << 16)
        assert more, heard
        heard += more
    return [json.loads(each) for each in re.findall(rb'\{"v":1.*?\}(?=\x81|$)', heard, re.DOTALL)]


async def unstored(scene: Scene) -> Last:
    """Somebody else keeps the file locked, and what was decided waits."""
    await scene.say("context.add", note("a"))
    return lambda: stalled(scene)


async def stalled(scene: Scene) -> httpx.Response:
    """The refusal; whatever was taken in before is on record once the file is free."""
    held = sqlite3.connect(scene.server.home / "accord.db", isolation_level=None)
    posts: list[asyncio.Task[httpx.Response]] = []
    with contextlib.closing(held):
        held.execute("BEGIN IMMEDIATE")
        for _ in range(20):
            posts.append(asyncio.create_task(scene.post("context.add", note("a", 7 * KIB))))
            done, _ = await asyncio.wait(posts, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
            if done:
                break
        held.execute("ROLLBACK")
    answers = [await each for each in posts]
    (no,) = (each for each in answers if each.status_code == 429)
    scene.taken.extend(each.json()["id"] for each in answers if each.status_code == 200)
    return no


async def polls_per_principal(scene: Scene) -> Last:
    last = (await scene.web.poll(scene.session))["messages"][-1]["id"]
    where = f"/sessions/{scene.session}/messages?after={last}&wait=3"
    return lambda: refused_of(*(scene.web.http.get(where) for _ in range(2)))


async def refused_of(*asked: Awaitable[httpx.Response]) -> httpx.Response:
    """The one of them that was refused."""
    return max(await asyncio.gather(*asked), key=lambda answer: answer.status_code)


async def sessions_per_principal(scene: Scene) -> Last:
    await scene.web.create()
    made = envelope("session.create", "new", scene.web.seat, {"config": CONFIG})
    return lambda: scene.web.post("new", made)


REACH: dict[str, Reach] = {
    "participants": participants,
    "seats": seats,
    "metadata": metadata,
    "tools": tools,
    "gates": gates,
    "streams": streams,
    "secrets": secrets,
    "forks": forks,
    "context_item": context_item,
    "context": context,
    "context_kept": context_kept,
    "message": message,
    "stream_bytes": stream_bytes,
    "stream_burst": stream_burst,
    "body_seconds": body_seconds,
    "queue": queue,
    "unstored": unstored,
    "unstored_session": unstored,
    "polls_per_principal": polls_per_principal,
    "sessions_per_principal": sessions_per_principal,
}


@pytest.fixture
async def scene(
    low: ServerProcess, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Scene]:
    name = request.param
    with contextlib.ExitStack() as stack:
        server = low
        if name in OWN:
            flags = ("--limit", f"{name}={OWN[name]}")
            server = stack.enter_context(a_server(tmp_path, "token", *flags))
        web = Web.of(server, f"owner-{name}", roles=["admin", "driver", "approver"])
        session = await web.create(max_participants=100)
        made = Scene(server, name, web, session, [], [], [])
        yield made
        for each in (web, *made.others):
            await each.close()
        for opened in made.plugs:
            opened.close()


@pytest.mark.parametrize("scene", REACH, indirect=True, ids=str)
async def test_past_a_limit_the_refusal_names_it_and_nothing_changed(scene: Scene) -> None:
    last = await REACH[scene.name](scene)
    before = await scene.everything()

    answer = await last()

    said = answer.json()
    problem = said.get("payload") or said["error"]
    assert problem["details"]["limit"] == scene.name, problem
    assert problem["details"]["most"] == {**LOW, **OWN}[scene.name]
    codes = CODES[LIMITS[scene.name].bound.why]
    assert (answer.status_code, problem["code"]) == (codes.http, codes.pvp)
    assert await scene.everything() == before


# What ends a connection, or comes before there is a session


@cuts("frame")
async def test_a_frame_that_is_too_long_ends_the_connection(low: ServerProcess) -> None:
    token = low.issue("framer")
    async with connect(low.ws_url, additional_headers={"Authorization": f"Bearer {token}"}) as ws:
        await ws.send("x" * (LOW["frame"] + 1))
        with pytest.raises(ConnectionClosed) as end:
            await ws.recv()

    assert end.value.rcvd is not None
    assert end.value.rcvd.code == 1009


@cuts("connections_per_principal")
async def test_one_principal_has_so_many_connections_and_others_are_not_its_affair(
    low: ServerProcess,
) -> None:
    mine = {"Authorization": f"Bearer {low.issue('many')}"}
    async with connect(low.ws_url, additional_headers=mine) as one:
        async with connect(low.ws_url, additional_headers=mine):
            with pytest.raises(InvalidStatus) as no:
                await connect(low.ws_url, additional_headers=mine)
            assert no.value.response.status_code == 429
            assert b"connections_per_principal" in (no.value.response.body or b"")
            theirs = {"Authorization": f"Bearer {low.issue('another')}"}
            await (await connect(low.ws_url, additional_headers=theirs)).close()
        await (await one.ping())


@cuts("head", "body")
async def test_a_head_and_a_body_have_an_end(low: ServerProcess) -> None:
    headers = {"Authorization": f"Bearer {low.admin_token}"}
    async with httpx.AsyncClient(base_url=low.url, trust_env=False) as http:
        long = await http.get("/healthz", headers={"x": "y" * 2 * KIB})
        large = await http.post("/admin/tokens", headers=headers, content=b" " * (KIB + 1))

    assert (long.status_code, "(head)" in long.text) == (431, True)
    assert large.status_code == 413
    assert large.json()["error"]["details"] == {"limit": "body", "most": KIB}


# The whole server


@cuts("sessions")
async def test_a_workspace_has_so_many_sessions_and_an_end_makes_room(tmp_path: Path) -> None:
    with a_server(tmp_path, "token", "--limit", "sessions=2") as server:
        webs = [Web.of(server, f"u{number}", roles=["admin", "driver"]) for number in range(3)]
        first = await webs[0].create()
        await webs[1].create()
        made = envelope("session.create", "new", "u2", {"config": CONFIG})
        answer = await webs[2].post("new", made)
        assert answer.status_code == 429
        assert answer.json()["payload"]["details"] == {"limit": "sessions", "most": 2}
        assert (await webs[2].http.get("/sessions")).json()["sessions"] == []

        await asyncio.to_thread(server.restart)
        assert (await webs[2].post("new", made)).status_code == 429, "a restart forgets nothing"
        await webs[0].say("session.end", first, {"reason": "Done", "final_state": "completed"})
        assert (await webs[2].post("new", made)).status_code == 200
        for web in webs:
            await web.close()


@cuts("connections")
async def test_a_server_has_so_many_connections(tmp_path: Path) -> None:
    with a_server(tmp_path, "token", "--limit", "connections=3") as server:
        headers = {"Authorization": f"Bearer {server.issue('alice')}"}
        held = [await connect(server.ws_url, additional_headers=headers) for _ in range(3)]
        with pytest.raises(InvalidStatus) as no:
            await connect(server.ws_url, additional_headers=headers)
        assert no.value.response.status_code == 503
        assert b"(connections)" in (no.value.response.body or b"")
        for each in held:
            await each.close()


@cuts("polls")
async def test_so_many_wait_in_all(tmp_path: Path) -> None:
    with a_server(tmp_path, "token", "--limit", "polls=1") as server:
        one, two = [Web.of(server, name, roles=["admin", "driver"]) for name in ("one", "two")]
        session, other = await one.create(), await two.create()
        last = (await one.poll(session))["messages"][-1]["id"]
        newest = (await two.poll(other))["messages"][-1]["id"]
        both = await asyncio.gather(
            one.http.get(f"/sessions/{session}/messages?after={last}&wait=3"),
            two.http.get(f"/sessions/{other}/messages?after={newest}&wait=3"),
        )
        await asyncio.gather(one.close(), two.close())

    good, bad = sorted(both, key=lambda answer: answer.status_code)
    assert (good.status_code, bad.status_code) == (200, 429)
    assert bad.json()["error"]["details"]["limit"] == "polls"


def gone(opened: socket.socket) -> bool:
    """Whether the server hangs up, and soon; whatever it said before is not read to the end."""
    opened.settimeout(10)
    try:
        return not opened.recv(1)
    except ConnectionError:
        return True


@cuts("strangers")
async def test_of_those_who_show_no_identity_the_longest_waiting_give_way(tmp_path: Path) -> None:
    with a_server(tmp_path, "token", "--limit", "strangers=2") as server:
        alice = Web.of(server, "alice", roles=["admin", "driver"])
        before = (await alice.http.get("/sessions")).json(), server.admin("GET", "/admin/tokens")
        with contextlib.ExitStack() as stack:
            first, second = (stack.enter_context(plug(server)) for _ in range(2))
            while not ready(first):  # nobody gives way within a second
                stack.enter_context(plug(server))
                await asyncio.sleep(0.1)
            assert gone(first)
            await asyncio.to_thread(gone, second)
            assert (await alice.http.get("/healthz")).status_code == 200
        after = (await alice.http.get("/sessions")).json(), server.admin("GET", "/admin/tokens")
        await alice.close()
    assert after == before


def ready(opened: socket.socket) -> bool:
    """Whether there is something to read, an end included."""
    return bool(select.select([opened], [], [], 0)[0])


@cuts("backlog")
async def test_a_reader_too_far_behind_is_cut_off_and_reads_on_later(tmp_path: Path) -> None:
    with a_server(tmp_path, "token", "--limit", f"backlog={64 * KIB}") as server:
        alice, bob = (Web.of(server, name, roles=["admin", "driver"]) for name in ("alice", "bob"))
        session = await alice.create()
        first = (await bob.join(session))["id"]
        async with bob.http.stream("GET", f"/sessions/{session}/events") as lazy:
            assert lazy.status_code == 200
            said = [
                (await alice.say("context.add", session, note("k", 900_000)))["id"]
                for _ in range(12)
            ]
            await asyncio.to_thread(wait_for, lambda: "reader.cut_off" in server.log)
            with pytest.raises(httpx.HTTPError):
                await lazy.aread()
        heard: list[str] = []
        more, after = True, first
        while more:
            page = await bob.poll(session, after, limit=1000)
            heard += [each["id"] for each in page["messages"] if each["type"] == "context.add"]
            more, after = page["has_more"], page["next"]
        await asyncio.gather(alice.close(), bob.close())
    assert heard == said


@cuts("unread", "stall_seconds")
@pytest.mark.parametrize("limit", ["unread=1MiB", "stall_seconds=1"])
async def test_an_answer_that_nobody_reads_is_let_go(tmp_path: Path, limit: str) -> None:
    with a_server(tmp_path, "token", "--limit", limit) as server:
        alice = Web.of(server, "alice", roles=["admin", "driver"])
        session = await alice.create()
        for number in range(6):
            await alice.say("context.add", session, note(f"k{number}", 900_000))
        before = (await alice.http.get(f"/sessions/{session}")).json()
        await alice.close()
        await asyncio.to_thread(wait_for, lambda: established(server) == 0)
        token = alice.http.headers["authorization"]
        ask = f"GET /sessions/{session}/transcript HTTP/1.1\r\nHost: {server.url[7:]}\r\n"
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                opened = stack.enter_context(stubborn(server))
                # More than the two machines hold between them.
                opened.sendall(f"{ask}Authorization: {token}\r\n\r\n".encode() * 4)
            await asyncio.to_thread(wait_for, lambda: ready(opened))
            if limit.startswith("unread"):
                await asyncio.to_thread(wait_for, lambda: "readers.cut_off" in server.log)
            else:
                await asyncio.to_thread(wait_for, lambda: established(server) == 0)
        later = Web.of(server, "alice", roles=["admin", "driver"])
        assert (await later.http.get(f"/sessions/{session}")).json() == before
        await later.close()


async def test_operators_are_counted_too(tmp_path: Path) -> None:
    with a_server(tmp_path, "token", "--rate-limit", "2") as server:
        headers = {"Authorization": f"Bearer {server.admin_token}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, trust_env=False) as http:
            answers = [await http.get("/admin/keys") for _ in range(30)]
            # As from another machine, by way of a proxy.
            far = [await http.get("/metrics", headers={"via": "x"}) for _ in range(30)]

    for each in (answers, far):
        assert each[-1].status_code == 429
        assert int(each[-1].headers["retry-after"]) >= 1
    assert answers[0].status_code == 200


def test_every_limit_is_reached_over_a_real_server() -> None:
    assert REACH.keys() | CUT.keys() == LIMITS.keys()
    assert not REACH.keys() & CUT.keys()
