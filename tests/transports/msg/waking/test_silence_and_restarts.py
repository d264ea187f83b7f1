"""Silence is said once, and a server that dies in the middle of a wake does not wake twice."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.clients.http_client import envelope, join_payload
from tests.helpers.clients.websocket_client import SESSION_CONFIG
from tests.helpers.threads.method_client import MethodClient
from tests.helpers.threads.wake_scene import Scene, eventually, notices


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Scene(tmp_path).running(silence_seconds=4) as scene:
        yield scene


def test_silence_of_one_who_was_addressed_is_posted_once_and_reading_prevents_it(
    scene: Scene,
) -> None:
    reader = scene.client("reader")
    thread = scene.planner.thread("planner", "reader", "silent")
    scene.planner.post(thread, "are you there?", metadata={"to": ["reader", "silent"]})
    reader.read(thread)
    (notice,) = eventually(lambda: notices(scene.planner, thread, "silence"))
    assert notice["sender_agent_id"] == "system"
    assert notice["metadata"]["agent_id"] == "silent"
    assert "neither read, acknowledged nor posted" in notice["body"]
    agents = scene.operator.ok("list_agents")["agents"]
    assert [a["awaited_in"] for a in agents if a["agent_id"] == "silent"] == [[thread]]
    home = scene.operator.http.get("/home").json()
    assert home["counts"]["silences"] == 1
    (silence,) = home["silences"]
    assert silence.pop("since").endswith("Z")
    assert silence == {
        "thread": thread,
        "agent": "silent",
        "message": notice["metadata"]["message_id"],
        "by": "planner",
    }
    assert scene.planner.http.get("/home").json()["silences"] == []
    scene.server.restart()
    again = MethodClient(scene.server.url, "planner", scene.planner.token, {})
    with again:
        assert len(notices(again, thread, "silence")) == 1


def test_silence_in_a_session_is_posted_there_and_any_act_prevents_it(scene: Scene) -> None:
    boss = scene.client("boss", kind="human", roles=["admin", "driver"])
    agents = {name: scene.client(name) for name in ("reader", "poster", "quick", "silent")}
    session = room_of(boss, agents)
    boss.post(session, "are you there?", metadata={"to": list(agents)})
    agents["reader"].http.get(f"/sessions/{session}/messages").raise_for_status()
    agents["poster"].post(session, "I am")
    agents["quick"].read(session, limit=200)
    notice, *more = eventually(lambda: notices(boss, session, "silence"))
    assert more == []
    assert notice["sender_agent_id"] == "system"
    assert notice["metadata"]["agent_id"] == "silent"
    silences = scene.operator.http.get("/home").json()["silences"]
    assert [(one["thread"], one["agent"]) for one in silences] == [(session, "silent")]


def room_of(boss: MethodClient, agents: Mapping[str, MethodClient]) -> str:
    """A session of a person and these agents, without connections."""

    def send(who: MethodClient, type: str, session: str, payload: Any) -> str:
        body = envelope(type, "" if session == "new" else session, who.id, payload)
        answer = who.http.post(f"/sessions/{session}/messages", json=body)
        assert answer.status_code == 200, answer.text
        id: str = answer.json()["session"]
        return id

    session = send(boss, "session.create", "new", {"config": SESSION_CONFIG})
    send(boss, "session.join", session, join_payload(boss.id, roles=["admin", "driver"]))
    for name, agent in agents.items():
        send(agent, "session.join", session, join_payload(name, kind="agent"))
    return session


def test_politeness_of_two_agents_in_a_session_is_noticed_once(scene: Scene) -> None:
    boss = scene.client("boss", kind="human", roles=["admin", "driver"])
    pair = {name: scene.client(name) for name in ("ping", "pong")}
    session = room_of(boss, pair)
    for _ in range(5):
        for name, other in (("ping", "pong"), ("pong", "ping")):
            pair[name].post(session, "thank you!", metadata={"to": [other]})
    eventually(lambda: notices(boss, session, "politeness_loop"))
    pair["ping"].post(session, "no, thank you!", metadata={"to": ["pong"]})
    boss.post(session, "back to work", metadata={"to": ["ping"]})
    scene.settled(session)
    assert len(notices(boss, session, "politeness_loop")) == 1


def test_operators_who_watch_hear_of_a_silence_at_once(scene: Scene) -> None:
    thread = scene.planner.thread("planner", "silent")
    with scene.operator.http.stream("GET", "/home/events") as stream:
        homes = (
            json.loads(line.removeprefix("data: "))
            for line in stream.iter_lines()
            if line.startswith("data: ")
        )
        assert next(homes)["silences"] == []
        scene.planner.post(thread, "are you there?", metadata={"to": ["silent"]})
        heard = next(home for home in homes if home["silences"])
    assert [one["agent"] for one in heard["silences"]] == ["silent"]


def restarted(scene: Scene) -> MethodClient:
    scene.server.restart()
    return scene.clients.enter_context(
        MethodClient(scene.server.url, "planner", scene.planner.token, {})
    )


def test_a_server_that_is_killed_in_the_middle_of_a_wake_does_not_wake_again(
    scene: Scene,
) -> None:
    scene.beat(scene.client("coder"))
    scene.vendor.behaves({"seconds": 3})
    thread = scene.planner.thread("planner", "coder")
    scene.planner.post(thread, "look", metadata={"to": ["coder"]})
    eventually(lambda: scene.starts_for(thread))
    scene.server.kill()
    planner = restarted(scene)
    call = {"thread_id": thread, "target_agent_id": "coder"}
    answer = planner.ok("trigger_participant", **call)
    assert (answer["result"], answer["why"]) == ("skipped", "wake_under_way")
    assert len(scene.starts_for(thread)) == 1


def test_a_server_that_stops_ends_its_commands_says_so_and_asks_again_when_it_is_back(
    scene: Scene,
) -> None:
    scene.beat(scene.client("coder"))
    scene.vendor.behaves({"seconds": 600})
    thread = scene.planner.thread("planner", "coder")
    scene.planner.post(thread, "look", metadata={"to": ["coder"]})
    (start,) = eventually(lambda: scene.starts_for(thread) and scene.vendor.starts)
    scene.server.stop()
    assert not Path(f"/proc/{start['pid']}").exists()
    scene.vendor.behaves()  # the next one ends by itself
    planner = restarted(scene)
    (notice,) = eventually(lambda: notices(planner, thread, "wake_ended"))
    assert (notice["metadata"]["result"], notice["metadata"]["why"]) == ("failed", "interrupted")
    assert "The server stopped" in notice["body"]
    eventually(lambda: len(scene.starts_for(thread)) == 2)
