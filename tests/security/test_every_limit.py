"""Each limit is reached over a real server: the refusal names it, and nothing has changed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from accord.core.dialects.codes import CODES
from accord.core.kernel.limits import LIMITS
from tests.engine import test_commit, test_load
from tests.helpers.server import ServerProcess, a_server
from tests.helpers.web import Web, envelope, participant
from tests.helpers.wire import CONFIG
from tests.security import test_limits, test_slow_reader

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
    "stream_bytes": 64 * KIB,
    "stream_burst": 256 * KIB,
    "connections_per_principal": 2,
    "polls_per_principal": 1,
    "sessions_per_principal": 2,
    "head": 2 * KIB,
    "body": 1 * KIB,
}
# Those about the whole server get one each.
ALONE = {"polls": 1, "sessions": 2, "connections": 3}
# Those that no single client meets, or that end a connection instead of refusing.
PROVEN_BY: dict[str, Callable[..., Any]] = {
    "queue": test_commit.test_a_room_that_cannot_keep_up_says_so,
    "unstored": test_load.test_what_waits_for_a_hanging_store_has_an_end,
    "unstored_session": test_load.test_what_waits_for_a_hanging_store_has_an_end,
    "strangers": test_limits.test_those_who_waited_longest_give_way_once_too_many_wait,
    "backlog": test_slow_reader.test_a_reader_that_stops_slows_nobody_and_is_cut_off,
}


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

    async def history(self) -> list[dict[str, Any]]:
        page = await self.web.poll(self.session, limit=1000)
        messages: list[dict[str, Any]] = page["messages"]
        return messages


Reach = Callable[[Scene], Awaitable[httpx.Response]]


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


async def participants(scene: Scene) -> httpx.Response:
    await join(await scene.other("one"), scene.session)
    return await join(await scene.other("two"), scene.session)


async def seats(scene: Scene) -> httpx.Response:
    for name in ("one", "two"):
        web = await scene.other(name)
        assert (await join(web, scene.session)).status_code == 200
        await web.say("session.leave", scene.session, {})
    return await join(await scene.other("three"), scene.session)


async def metadata(scene: Scene) -> httpx.Response:
    web = await scene.other("one")
    who = participant(web.seat)
    who["participant"]["metadata"] = {"k": "x" * 100}
    return await web.post(scene.session, envelope("session.join", scene.session, web.seat, who))


async def tools(scene: Scene) -> httpx.Response:
    agent = await agent_of(scene)
    await agent.say("tool.propose", scene.session, tool(agent.seat, "shell_execute"))
    return await agent.post(
        scene.session, envelope("tool.propose", scene.session, agent.seat, tool(agent.seat))
    )


async def gates(scene: Scene) -> httpx.Response:
    agent = await agent_of(scene)
    one, two = [await scene.say("prompt.submit", prompt(agent.seat)) for _ in range(2)]
    ask = {"action_type": "prompt", "quorum": {"type": "any", "count": 1}, "timeout_seconds": 60}
    ask["message"] = "May I?"
    await scene.say("gate.request", {**ask, "action_ref": one})
    return await scene.post("gate.request", {**ask, "action_ref": two})


async def streams(scene: Scene) -> httpx.Response:
    agent = await agent_of(scene)
    asked = await scene.say("prompt.submit", prompt(agent.seat))
    start = {"agent": agent.seat, "prompt_ref": asked}
    await agent.say("response.start", scene.session, start)
    return await agent.post(
        scene.session, envelope("response.start", scene.session, agent.seat, start)
    )


async def secrets(scene: Scene) -> httpx.Response:
    share = {"scope": [scene.web.seat], "value_ref": "env:X"}
    await scene.say("secret.share", {**share, "key": "a"})
    return await scene.post("secret.share", {**share, "key": "b"})


async def forks(scene: Scene) -> httpx.Response:
    point = await scene.say("context.add", note("a"))
    fork = {"from_point": point, "reason": "To see", "participants": [], "copy_context": False}
    await scene.say("fork.create", {**fork, "name": "one"})
    return await scene.post("fork.create", {**fork, "name": "two"})


async def context_item(scene: Scene) -> httpx.Response:
    return await scene.post("context.add", note("a", 1001))


async def context(scene: Scene) -> httpx.Response:
    await scene.say("context.add", note("a", 900))
    return await scene.post("context.add", note("b", 1, tags=["x" * 600]))


async def context_kept(scene: Scene) -> httpx.Response:
    point = await scene.say("context.add", note("a", 100))
    fork = {"from_point": point, "reason": "To see", "participants": [], "copy_context": False}
    await scene.say("fork.create", {**fork, "name": "one"})
    await scene.say("context.add", note("b", 900), fork="one")
    merge = {"source_fork": "one", "target_fork": "main", "strategy": "append", "summary": "So"}
    proposed = await scene.say("merge.propose", merge)
    return await scene.post("merge.execute", {"merge_proposal": proposed})


async def message(scene: Scene) -> httpx.Response:
    return await scene.post("context.add", note("a", 8 * KIB))


async def burst(scene: Scene) -> httpx.Response:
    for _ in range(200):
        answer = await scene.post("context.add", note("a", 7 * KIB))
        if answer.status_code == 429:
            return answer
    raise AssertionError("it never ends")


async def polls_per_principal(scene: Scene) -> httpx.Response:
    last = (await scene.web.poll(scene.session))["messages"][-1]["id"]
    where = f"/sessions/{scene.session}/messages?after={last}&wait=3"
    both = await asyncio.gather(*(scene.web.http.get(where) for _ in range(2)))
    return max(both, key=lambda answer: answer.status_code)


async def sessions_per_principal(scene: Scene) -> httpx.Response:
    await scene.web.create()
    made = envelope("session.create", "new", scene.web.seat, {"config": CONFIG})
    return await scene.web.post("new", made)


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
    "stream_bytes": burst,
    "polls_per_principal": polls_per_principal,
    "sessions_per_principal": sessions_per_principal,
}


@pytest.fixture
async def scene(low: ServerProcess, request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    name = request.param
    web = Web.of(low, f"owner-{name}", roles=["admin", "driver", "approver"])
    session = await web.create(max_participants=100)
    made = Scene(low, name, web, session, [])
    yield made
    for each in (web, *made.others):
        await each.close()


@pytest.mark.parametrize("scene", REACH, indirect=True, ids=str)
async def test_past_a_limit_the_refusal_names_it_and_nothing_changed(scene: Scene) -> None:
    answer = await REACH[scene.name](scene)

    said = answer.json()
    problem = said.get("payload") or said["error"]
    assert problem["details"]["limit"] == scene.name, problem
    assert problem["details"]["most"] == LOW[scene.name]
    codes = CODES[LIMITS[scene.name].bound.why]
    assert (answer.status_code, problem["code"]) == (codes.http, codes.pvp)
    if answer.status_code != 429:
        said_since = [message["id"] for message in await scene.history()]
        assert problem.get("related_to") not in said_since


# What ends a connection, or comes before there is a session


async def test_a_frame_that_is_too_long_ends_the_connection(low: ServerProcess) -> None:
    token = low.issue("framer")
    async with connect(low.ws_url, additional_headers={"Authorization": f"Bearer {token}"}) as ws:
        await ws.send("x" * (LOW["frame"] + 1))
        with pytest.raises(ConnectionClosed) as end:
            await ws.recv()

    assert end.value.rcvd is not None
    assert end.value.rcvd.code == 1009


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


async def test_a_head_and_a_body_have_an_end(low: ServerProcess) -> None:
    headers = {"Authorization": f"Bearer {low.admin_token}"}
    async with httpx.AsyncClient(base_url=low.url, trust_env=False) as http:
        long = await http.get("/healthz", headers={"x": "y" * 2 * KIB})
        large = await http.post("/admin/tokens", headers=headers, content=b" " * (KIB + 1))

    assert (long.status_code, "(head)" in long.text) == (431, True)
    assert large.status_code == 413
    assert large.json()["error"]["details"] == {"limit": "body", "most": KIB}


# The whole server


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


async def test_operators_are_counted_too(tmp_path: Path) -> None:
    with a_server(tmp_path, "token", "--rate-limit", "2") as server:
        headers = {"Authorization": f"Bearer {server.admin_token}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, trust_env=False) as http:
            answers = [await http.get("/admin/keys") for _ in range(30)]

    assert {answer.status_code for answer in answers} == {200, 429}
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_every_limit_is_reached_somewhere() -> None:
    here = {*REACH, *ALONE, "stream_burst", "frame", "connections_per_principal", "head", "body"}

    assert here | set(PROVEN_BY) == set(LIMITS)
