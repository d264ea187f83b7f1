"""Reading over HTTP costs the reader, and nobody else."""

import os
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.role_permissions import Kind
from accord.core.views import sessions
from accord.server.engine_factory import make_engine
from accord.server.serving import ReadyInfo, write_ready_file
from accord.stores import open_log
from accord.transports.http.sessions import SessionReader
from tests.helpers.attacks.approval_scene import get
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server

STATUS = {"participant": "alice", "status": "active", "last_active": "2026-01-30T20:00:00Z"}


async def test_a_number_of_many_digits_is_bad_input(server: ServerProcess) -> None:
    token = server.issue_token("alice")
    wire = await WebSocketClient.open(server.ws_url, "alice", token)
    session = await wire.create()
    path = f"/sessions/{session}/transcript"
    for query in (f"after={'9' * 5000}", f"limit={'0' * 5000}1", "after=-1", "after=٣"):
        url = f"{server.url}{path}?{query}".replace("٣", "%D9%A3")
        assert (await get(url, token))[0] == 400


async def test_asking_too_often_is_answered_with_how_long_to_wait(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--rate-limit", "2") as server:
        token = server.issue_token("alice")
        for _ in range(10):
            assert (await get(f"{server.url}/sessions", token))[0] == 200
        asked = Request(f"{server.url}/sessions", headers={"Authorization": f"Bearer {token}"})  # noqa: S310
        with pytest.raises(HTTPError) as no:
            urlopen(asked)  # noqa: S310, ASYNC210
        no.value.close()
        assert no.value.code == 429
        assert int(no.value.headers["Retry-After"]) >= 1
        assert (await get(f"{server.url}/sessions", server.issue_token("bob")))[0] == 200


async def test_pages_of_a_transcript_leave_nothing_out(server: ServerProcess) -> None:
    token = server.issue_token("alice")
    wire = await WebSocketClient.open(server.ws_url, "alice", token)
    session = await wire.create()
    for _ in range(20):
        await wire.send("presence.update", session, STATUS)
        await wire.receive_until("presence.update")
    url = f"{server.url}/sessions/{session}/transcript"
    whole = (await get(url, token))[1]["messages"]
    paged, after, more = [], 0, True
    while more:
        page = (await get(f"{url}?after={after}&limit=3", token))[1]
        paged += page["messages"]
        after, more = page["next"], page["has_more"]
    assert len(whole) > 20
    assert paged == whole


async def test_a_long_transcript_comes_in_answers_that_are_not(server: ServerProcess) -> None:
    token = server.issue_token("alice")
    wire = await WebSocketClient.open(server.ws_url, "alice", token)
    session = await wire.create()
    prompt = {"content": "x" * 900_000, "target_agent": "", "contributors": [], "context_keys": []}
    bot = await WebSocketClient.open(server.ws_url, "bot", server.issue_token("bot", "agent"))
    await bot.join(session, "agent")
    await wire.receive_until("participant.announce", id="bot")
    for _ in range(8):
        await wire.send("prompt.submit", session, prompt | {"target_agent": "bot"})
        await wire.receive_until("prompt.submit")
    url = f"{server.url}/sessions/{session}/transcript"
    first = (await get(url, token))[1]
    rest = (await get(f"{url}?after={first['next']}", token))[1]
    assert first["has_more"]
    assert not rest["has_more"]
    said = [m["type"] for m in first["messages"] + rest["messages"]]
    assert said.count("prompt.submit") == 8


async def test_a_strangers_list_opens_no_room_twice(
    tmp_path: Path, server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = await WebSocketClient.open(server.ws_url, "alice", server.issue_token("alice"))
    made = [await wire.create() for _ in range(3)]
    events = await open_log(f"sqlite:{server.home / 'accord.db'}")
    engine = make_engine(events)
    archive = SessionReader(engine)
    mallory, alice, bob = (Actor(seat, Kind.HUMAN) for seat in ("mallory", "alice", "bob"))
    assert await archive.list_sessions(mallory) == []
    looked: list[str] = []
    usual = engine.state

    async def noted(stream: str) -> object:
        looked.append(stream)
        return await usual(stream)

    monkeypatch.setattr(engine, "state", noted)
    assert await archive.list_sessions(mallory) == []
    assert looked == []
    assert {each["id"] for each in await archive.list_sessions(alice)} == set(made)
    assert await archive.list_sessions(Actor("alice", Kind.HUMAN, workspace="elsewhere")) == []

    other = await WebSocketClient.open(server.ws_url, "bob", server.issue_token("bob"))
    await other.join(made[1])
    await other.receive_until("participant.announce", id="bob")
    engine._on_batch(list(enumerate(await events.read(f"room/{made[1]}"), 1)))
    await engine.wait_until_idle()
    assert [each["id"] for each in await archive.list_sessions(bob)] == [made[1]]
    await events.close()


async def test_a_list_opens_no_session_that_is_over(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire = await WebSocketClient.open(server.ws_url, "lena", server.issue_token("lena"))
    made = [await wire.create() for _ in range(3)]
    other = await WebSocketClient.open(server.ws_url, "olaf", server.issue_token("olaf"))
    await other.join(made[0])
    await other.send("session.leave", made[0], {})
    await wire.receive_until("session.leave")
    for each in made[:2]:
        await wire.send("session.end", each, {"reason": "enough", "final_state": "completed"})
        await wire.receive_until("session.end")
    events = await open_log(f"sqlite:{server.home / 'accord.db'}")
    engine = make_engine(events)
    archive, looked, usual = SessionReader(engine), list[str](), engine.state

    async def noted(stream: str) -> object:
        looked.append(stream)
        return await usual(stream)

    for seat, known in (("lena", made), ("olaf", made[:1])):
        rooms = [await usual(f"room/{id}") for id in reversed(known)]
        actor = Actor(seat, Kind.HUMAN)
        await archive.list_sessions(actor)
        monkeypatch.setattr(engine, "state", noted)
        assert await archive.list_sessions(actor) == [
            sessions.session_summary(room, seat) for room in rooms
        ]
        monkeypatch.setattr(engine, "state", usual)
    assert looked == [f"room/{made[2]}"]
    await events.close()


def test_the_ready_file_is_never_written_into_a_file_of_others(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    part = tmp_path / f"ready.json.{os.getpid()}.part"
    for each in (part, ready):
        each.write_text("")
        each.chmod(0o666)
    write_ready_file(ready, ReadyInfo("", "", 1, "secret"))
    assert ready.stat().st_mode & 0o077 == 0
    assert b"secret" in ready.read_bytes()
    assert part.read_text() == ""
    assert {each.name for each in tmp_path.iterdir()} == {part.name, ready.name}


async def test_an_index_of_few_rooms_forgets_and_still_lists_all(server: ServerProcess) -> None:
    wire = await WebSocketClient.open(server.ws_url, "ines", server.issue_token("ines"))
    made = {await wire.create() for _ in range(5)}
    events = await open_log(f"sqlite:{server.home / 'accord.db'}")
    archive = SessionReader(make_engine(events))
    archive.index.max_entries = 2
    ines = Actor("ines", Kind.HUMAN)

    for _ in range(2):
        assert {each["id"] for each in await archive.list_sessions(ines)} == made
        assert len(archive.index.entries) == 2
        assert sum(map(len, archive.index.by_principal.values())) <= 2 * len(
            archive.index.by_principal
        )
    await events.close()


async def test_a_long_list_of_sessions_comes_in_pages(server: ServerProcess) -> None:
    token = server.issue_token("pia")
    wire = await WebSocketClient.open(server.ws_url, "pia", token)
    made = [await wire.create() for _ in range(5)]
    url, listed, after = f"{server.url}/sessions?limit=2", [], ""

    for expected in (True, True, False):
        page = (await get(f"{url}&after={after}", token))[1]
        assert page["has_more"] is expected
        listed += [each["id"] for each in page["sessions"]]
        after = listed[-1]

    assert len(listed) == 5
    assert set(listed) == set(made)
    assert (await get(f"{url}&after=elsewhere", token))[0] == 400
