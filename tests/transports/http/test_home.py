"""`GET /home` and `GET /home/events`, from a real server process and from an engine of its own."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from accord.api import home as shapes
from accord.client import Client
from accord.core.kernel.actor import Actor
from accord.core.kernel.role_permissions import Kind
from accord.data_dir import KEYS_DIR_NAME
from accord.engine.engine import Engine
from accord.identity.token_signing import Keyring
from accord.server.engine_factory import make_engine
from accord.stores import open_log
from accord.transports.http import home as endpoints
from accord.transports.http.home import HomeReader
from accord.transports.http.sessions import SessionReader
from accord.transports.intake import AuthPolicy, Intake
from accord.transports.msg.service import ThreadService
from tests.helpers.clients.http_client import HttpClient
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.threads.method_client import MethodClient

PROPOSAL: dict[str, Any] = {
    "tool_name": "shell",
    "arguments": {"argv": ["ls"]},
    "agent": "bot",
    "risk_level": "low",
    "description": "Look around",
    "requires_approval": False,
    "category": "shell_execute",
}


def token_of(web: HttpClient) -> str:
    """The token that this client sends."""
    words: str = web.http.headers["authorization"]
    return words.removeprefix("Bearer ")


def home_reader(engine: Engine, home: Path) -> HomeReader:
    """A reader of the same log beside the server."""
    sessions = SessionReader(engine)
    keyring = Keyring.open(home / KEYS_DIR_NAME)
    intake = Intake(engine, AuthPolicy(keyring, frozenset))
    return HomeReader(sessions, ThreadService(intake, sessions))


class HomeEvents:
    """The events of one stream in order."""

    def __init__(self, response: httpx.Response) -> None:
        self.lines = response.aiter_lines()

    async def next_event(self) -> tuple[str, dict[str, Any]] | None:
        """Type and data of the next event; None at the end."""
        kind = ""
        async with asyncio.timeout(20):
            async for line in self.lines:
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    return kind, json.loads(line.removeprefix("data: "))
        return None

    async def wait_for(self, session: str, **counts: int) -> dict[str, Any]:
        """The next event about the session with these counts."""
        while event := await self.next_event():
            kind, data = event
            counted = {name: data["counts"][name] for name in counts}
            if kind == "session" and data["session"] == session and counted == counts:
                return data
        raise AssertionError("the stream ended")


@asynccontextmanager
async def home_events(who: HttpClient) -> AsyncIterator[HomeEvents]:
    async with who.http.stream("GET", "/home/events") as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield HomeEvents(response)


async def read(who: HttpClient) -> dict[str, Any]:
    response = await who.http.get("/home")
    assert response.status_code == 200, response.text
    content: dict[str, Any] = response.json()
    return content


@pytest.fixture
async def bot(signed: ServerProcess) -> AsyncIterator[HttpClient]:
    """An agent."""
    web = HttpClient.with_token(signed, "bot", kind="agent", roles=["driver"])
    yield web
    await web.close()


async def a_gate(alice: HttpClient, bot: HttpClient, **changes: Any) -> tuple[str, str]:
    """A session of Alice's where a proposal of the agent's waits; returns both ids."""
    session = await alice.create()
    await bot.join(session, kind="agent")
    receipt = await bot.send("tool.propose", session, PROPOSAL | changes)
    return session, receipt["id"]


def gates_in(home: dict[str, Any], session: str) -> list[dict[str, Any]]:
    return [gate for gate in home["gates"] if gate["session"] == session]


async def test_a_gate_is_there_for_a_member_without_any_connection(
    alice: HttpClient, bot: HttpClient
) -> None:
    session, proposal = await a_gate(alice, bot)

    (gate,) = gates_in(await read(alice), session)

    assert gate["action"]["id"] == proposal
    assert gate["action"]["arguments"] == {"argv": ["ls"]}
    assert (gate["may_approve"], gate["my_vote"], gate["waits_for"]) == (True, None, ["alice"])


async def test_strangers_and_members_without_a_vote_see_no_card(
    alice: HttpClient, bob: HttpClient, bot: HttpClient
) -> None:
    session, _ = await a_gate(alice, bot)
    before = (await read(bob))["counts"]["other_gates"]
    await bob.join(session)

    home = await read(bob)

    assert gates_in(home, session) == []
    assert home["counts"]["other_gates"] == before + 1


async def test_an_ended_gate_says_how_and_when(alice: HttpClient, bot: HttpClient) -> None:
    session, proposal = await a_gate(alice, bot)
    no = {"gate": proposal, "rejector": "alice", "reason": "Not now"}
    await alice.send("gate.reject", session, no)

    home = await read(alice)

    (ended,) = [gate for gate in home["ended_gates"] if gate["session"] == session]
    assert gates_in(home, session) == []
    assert (ended["outcome"], ended["by"], ended["reason"]) == ("rejected", ["alice"], "Not now")
    assert ended["ended_at"].endswith("Z")


async def test_events_begin_with_the_home_and_go_on_with_what_changes(
    alice: HttpClient, bot: HttpClient
) -> None:
    session, _ = await a_gate(alice, bot)
    async with home_events(alice) as stream:
        first = await stream.next_event()
        assert first is not None
        assert first[0] == "home"
        assert len(gates_in(first[1], session)) == 1

        other, proposal = await a_gate(alice, bot)
        news = await stream.wait_for(other, gates=1)
        assert news["gates"][0]["action"]["id"] == proposal
        await alice.send("gate.approve", other, {"gate": proposal, "approver": "alice"})
        over = await stream.wait_for(other, gates=0)

    assert over["ended_gates"][0]["by"] == ["alice"]


async def test_events_have_the_shapes_that_the_client_decodes(
    alice: HttpClient, bot: HttpClient
) -> None:
    import msgspec

    session, _ = await a_gate(alice, bot)
    async with home_events(alice) as stream:
        await stream.next_event()
        await bot.send("tool.propose", session, PROPOSAL)
        news = await stream.wait_for(session, gates=2)

    decoded = msgspec.convert(news, shapes.SessionHome)
    assert [gate.session for gate in decoded.gates] == [session, session]


async def test_a_change_that_concerns_no_reader_is_not_sent(
    alice: HttpClient, bot: HttpClient
) -> None:
    session = await alice.create()
    await bot.join(session, kind="agent")
    note = {"key": "k", "content_type": "text", "content": "x"}
    async with home_events(alice) as stream:
        await stream.next_event()
        await alice.send("context.add", session, note)
        await bot.send("tool.propose", session, PROPOSAL)
        event = await stream.next_event()

    assert event is not None
    assert (event[0], event[1]["counts"]["gates"]) == ("session", 1)


async def test_events_end_with_the_token(signed: ServerProcess) -> None:
    wish = {"id": "eve", "type": "human", "roles": ["driver"]}
    issued = signed.admin_request("POST", "/admin/tokens", wish)
    eve = HttpClient(signed.url, "eve", issued["token"])
    async with home_events(eve) as stream:
        await stream.next_event()
        jti = issued.get("jti") or issued["claims"]["jti"]
        signed.admin_request("DELETE", f"/admin/tokens/{jti}")
        assert await stream.next_event() is None
    assert (await eve.http.get("/home")).status_code == 401
    await eve.close()


async def test_a_removed_member_hears_that_nothing_concerns_them_any_more(
    alice: HttpClient, bot: HttpClient, signed: ServerProcess
) -> None:
    session, _ = await a_gate(alice, bot)
    carol = HttpClient.with_token(signed, "carol", roles=["approver"])
    await carol.join(session, roles=["approver"])
    async with home_events(carol) as stream:
        await stream.next_event()
        await carol.send("session.leave", session, {})
        last = await stream.wait_for(session, gates=0)
    assert last["ended_gates"] == last["stalls"] == []
    await carol.close()


async def test_a_request_reads_only_the_callers_sessions_that_are_not_at_rest(
    signed: ServerProcess,
    alice: HttpClient,
    bob: HttpClient,
    bot: HttpClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dora = HttpClient.with_token(signed, "dora", roles=["admin"])
    waiting, _ = await a_gate(dora, bot)
    quiet = await dora.create()
    await a_gate(alice, bot)
    events = await open_log(f"sqlite:{signed.home / 'accord.db'}")
    engine = make_engine(events)
    reader, actor = home_reader(engine, signed.home), Actor("dora", Kind.HUMAN)
    assert [gate["session"] for gate in (await reader.read(actor))["gates"]] == [waiting]
    looked: list[str] = []
    usual, streams = engine.state, engine.events.streams

    async def noted(stream: str) -> object:
        looked.append(stream)
        return await usual(stream)

    async def all_streams(prefix: str) -> object:
        looked.append(prefix)
        return await streams(prefix)

    monkeypatch.setattr(engine, "state", noted)
    monkeypatch.setattr(engine.events, "streams", all_streams)
    await reader.read(actor)
    assert looked == [f"room/{waiting}"]

    # What another process appends is noticed on the tail of the log.
    engine.streams.clear()
    await bot.join(quiet, kind="agent")
    await bot.send("tool.propose", quiet, PROPOSAL)
    engine._on_batch(list(enumerate(await events.read(f"room/{quiet}"), 1)))
    again = await reader.read(actor)
    assert {gate["session"] for gate in again["gates"]} == {waiting, quiet}
    assert "room/" not in looked
    await dora.close()
    await engine.wait_until_idle()
    await events.close()


async def test_more_sessions_than_one_answer_covers_are_said_to_be_there(
    signed: ServerProcess, bot: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_SESSIONS", 1)
    frank = HttpClient.with_token(signed, "frank", roles=["admin"])
    for _ in range(2):
        await a_gate(frank, bot)
    events = await open_log(f"sqlite:{signed.home / 'accord.db'}")
    engine = make_engine(events)

    home = await home_reader(engine, signed.home).read(Actor("frank", Kind.HUMAN))

    assert (len(home["gates"]), home["has_more"]) == (1, True)
    await frank.close()
    await events.close()


async def test_a_damaged_session_hides_no_other(
    signed: ServerProcess, bot: HttpClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from accord.engine.ports import DamagedError

    grace = HttpClient.with_token(signed, "grace", roles=["admin"])
    (broken, _), (good, _) = [await a_gate(grace, bot) for _ in range(2)]
    events = await open_log(f"sqlite:{signed.home / 'accord.db'}")
    engine = make_engine(events)
    reader, actor = home_reader(engine, signed.home), Actor("grace", Kind.HUMAN)
    await reader.read(actor)
    usual = engine.state

    async def damaged(stream: str) -> object:
        if stream == f"room/{broken}":
            raise DamagedError("broken")
        return await usual(stream)

    monkeypatch.setattr(engine, "state", damaged)

    assert [gate["session"] for gate in (await reader.read(actor))["gates"]] == [good]
    await grace.close()
    await events.close()


async def test_unread_threads_are_at_home_and_their_changes_are_events(
    signed: ServerProcess,
) -> None:
    ann = HttpClient.with_token(signed, "ann", roles=["driver"])
    with MethodClient.of(signed, "worker") as worker, MethodClient.of(signed, "other") as other:
        thread = worker.thread("ann", title="Review")
        hidden = other.thread("worker")
        worker.post(thread, "look")
        other.post(hidden, "not for ann")
        home = (await ann.http.get("/home")).json()
        assert home["counts"]["unread_threads"] == 1
        (unread,) = home["unread_threads"]
        assert (unread["thread_id"], unread["unread"]) == (thread, 1)

        events = Client(signed.url, token=token_of(ann)).threads.changes()
        assert [each.thread_id for each in await anext(events)] == [thread]
        other.post(hidden, "nor this")
        worker.post(thread, "look again")
        (changed,) = await anext(events)
        assert (changed.thread_id, changed.unread, changed.last_seq) == (thread, 2, 2)
    await ann.close()


async def test_questions_are_at_home_until_they_are_answered(signed: ServerProcess) -> None:
    ann = HttpClient.with_token(signed, "ann", roles=["driver"])
    with MethodClient.of(signed, "worker") as worker:
        thread = worker.thread("ann", "worker", title="Review")
        async with ann.http.stream("GET", "/home/events") as response:
            lines = (line async for line in response.aiter_lines() if line.startswith("data: "))
            assert json.loads((await anext(lines))[6:])["questions"] == []
            worker.post(thread, "which one?", metadata={"to": ["ann"]})
            changed = json.loads((await anext(lines))[6:])
        home = (await ann.http.get("/home")).json()
        (question,) = changed["questions"]
        assert home["questions"] == [question]
        assert home["counts"]["questions"] == 1
        assert (question["kind"], question["by"]) == ("addressed", "worker")
        assert (question["thread"], question["seq"]) == (thread, 1)
        answer = {"thread_id": thread, "schema_version": 1, "body": "the first"}
        assert (await ann.http.post("/v1/post_message", json=answer)).status_code == 200
        assert (await ann.http.get("/home")).json()["questions"] == []
    await ann.close()
