"""Silence is said once, and a server that dies in the middle of a wake does not wake twice."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    planner = restarted(scene)
    (notice,) = eventually(lambda: notices(planner, thread, "wake_ended"))
    assert (notice["metadata"]["result"], notice["metadata"]["why"]) == ("failed", "interrupted")
    assert "The server stopped" in notice["body"]
    eventually(lambda: len(scene.starts_for(thread)) == 2)
