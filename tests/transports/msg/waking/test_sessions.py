"""Agents of a session that are away: prompts, decided gates and chat wake them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect
from websockets.sync.connection import Connection

from tests.helpers.clients.http_client import envelope, join_payload
from tests.helpers.clients.websocket_client import SESSION_CONFIG
from tests.helpers.threads.method_client import MethodClient
from tests.helpers.threads.wake_scene import Scene, eventually, next_number
from tests.spec import proves


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Scene(tmp_path_factory.mktemp("waking")).running() as scene:
        yield scene


class Room:
    """A session of a person and an agent that can be resumed, seen once and gone since."""

    def __init__(self, scene: Scene, agent: str) -> None:
        self.scene, self.agent_id = scene, agent
        self.boss = scene.client("boss", kind="human", roles=["admin", "driver", "approver"])
        self.agent = scene.client(agent)
        self.id = self.send(self.boss, "session.create", {"config": SESSION_CONFIG}, "new")[
            "session"
        ]
        roles = ["admin", "driver", "approver"]
        self.send(self.boss, "session.join", join_payload("boss", roles=roles))
        scene.beat(self.agent)
        with self.connection() as socket:
            assert self.presence(socket)

    def connection(self) -> ClientConnection:
        """The agent's own connection, in the session."""
        url = self.scene.server.ws_url
        headers = {"Authorization": f"Bearer {self.agent.token}"}
        socket = connect(url, additional_headers=headers)
        payload = join_payload(self.agent_id, kind="agent")
        socket.send(json.dumps(envelope("session.join", self.id, self.agent_id, payload)))
        return socket

    def presence(self, socket: Connection) -> bool:
        """Wait until the join is answered."""
        while json.loads(socket.recv(timeout=30))["type"] != "session.join":
            pass
        return True

    def send(
        self, who: MethodClient, type: str, payload: Any, session: str = "", **more: Any
    ) -> dict[str, Any]:
        session = session or self.id
        answer = who.http.post(
            f"/sessions/{session}/messages",
            json=envelope(type, session, who.id, payload, **more),
        )
        assert answer.status_code == 200, answer.text
        receipt: dict[str, Any] = answer.json()
        return receipt

    def detail(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.boss.http.get(f"/sessions/{self.id}").json()
        return answer

    def until_gone(self) -> None:
        eventually(lambda: self.presence_of_agent() == "disconnected")

    def presence_of_agent(self) -> str:
        found: str = next(
            each["presence"] for each in self.detail()["members"] if each["id"] == self.agent_id
        )
        return found

    def prompt(self, text: str = "please go on") -> str:
        payload = {
            "content": text,
            "target_agent": self.agent_id,
            "contributors": ["boss"],
            "context_keys": [],
        }
        id: str = self.send(self.boss, "prompt.submit", payload)["id"]
        return id

    def wakes(self) -> list[list[str]]:
        return self.scene.starts_for(self.id)


@proves("UNI-24")
def test_a_prompt_to_an_absent_agent_wakes_it_once(scene: Scene) -> None:
    room = Room(scene, "coder")
    room.until_gone()
    room.prompt("please look at the parser")
    [argv] = eventually(room.wakes)
    assert "resume" in argv
    assert "unread message" in argv[-1]
    # It is data of the session: the words of a prompt are read there, under its own rules.
    assert "parser" not in argv[-1]
    room.prompt("and at the lexer")
    scene.settled(room.id)
    assert len(room.wakes()) == 1, "the second is within the cool-down"


@proves("UNI-24")
def test_an_agent_that_is_connected_is_not_woken(scene: Scene) -> None:
    room = Room(scene, "mover")
    room.until_gone()
    with room.connection() as socket:
        room.presence(socket)
        room.prompt()
        scene.settled(room.id)
    assert room.wakes() == []


def test_an_absent_agent_that_cannot_be_woken_is_reported_to_the_sender(scene: Scene) -> None:
    room = Room(scene, "coder")
    agent = f"loner-{next_number()}"
    loner = scene.client(agent)
    room.agent, room.agent_id = loner, agent
    with room.connection() as socket:
        room.presence(socket)
    room.until_gone()
    events = room.boss.http.stream("GET", f"/sessions/{room.id}/events")
    with events as stream:
        lines = stream.iter_lines()
        room.prompt()
        notice = next(line for line in lines if "reads the prompt when it returns" in line)
    assert agent in notice
    assert "AGENT_ERROR" in notice


@proves("UNI-24")
def test_a_decided_gate_wakes_the_agent_that_proposed(scene: Scene) -> None:
    room = Room(scene, "sleeper")
    proposal = {
        "tool_name": "shell",
        "arguments": {"command": "make"},
        "agent": "sleeper",
        "risk_level": "medium",
        "description": "build it",
        "requires_approval": True,
        "category": "shell_execute",
    }
    with room.connection() as socket:
        room.presence(socket)
        room.send(room.agent, "tool.propose", proposal)
        [gate] = room.detail()["gates"]
    room.until_gone()
    assert room.wakes() == []
    room.send(
        room.boss, "gate.approve", {"gate": gate["id"], "approver": "boss", "comment": "go on"}
    )
    assert eventually(room.wakes)


def test_chat_that_addresses_an_absent_agent_wakes_it_and_strangers_cannot_be_addressed(
    scene: Scene,
) -> None:
    room = Room(scene, "chatty")
    room.until_gone()
    stranger = {"thread_id": room.id, "schema_version": 1, "body": "x", "metadata": {"to": ["eve"]}}
    assert room.boss.refused("post_message", **stranger) == (400, "VALIDATION_ERROR")
    room.boss.post(room.id, "not for you")
    scene.settled(room.id)
    assert room.wakes() == []
    room.boss.post(room.id, "for you", metadata={"to": ["chatty"]})
    assert eventually(room.wakes)


@proves("MSG-3.8-1", "UNI-6")
def test_a_participant_of_a_session_is_triggered_by_its_members_alone(scene: Scene) -> None:
    room = Room(scene, "talker")
    room.until_gone()
    asked = {"thread_id": room.id, "target_agent_id": "talker", "reason": "look"}
    assert scene.planner.refused("trigger_participant", **asked) == (404, "NOT_FOUND")
    assert scene.operator.refused("trigger_participant", **asked) == (404, "NOT_FOUND")
    person = asked | {"target_agent_id": "boss"}
    assert room.boss.refused("trigger_participant", **person) == (400, "VALIDATION_ERROR")
    nothing = room.boss.ok("trigger_participant", **asked)
    assert (nothing["result"], nothing["why"]) == ("skipped", "nothing_unread")
    room.boss.post(room.id, "have a look")
    woken = room.boss.ok("trigger_participant", **asked, trigger_prompt="look at the tests")
    assert (woken["action"], woken["result"]) == ("resume_session", "fallback_used")
    assert "> look at the tests" in room.wakes()[0][-1]
    end = {"reason": "completed", "final_state": "completed"}
    room.send(room.boss, "session.end", end)
    assert room.boss.refused("trigger_participant", **asked) == (409, "CONFLICT")


def test_a_failed_wake_is_reported_in_the_session(scene: Scene) -> None:
    room = Room(scene, "failing")
    room.until_gone()
    scene.vendor.behaves({"exit": 3, "stderr": "no"})
    room.prompt()

    def reported() -> list[dict[str, Any]]:
        return [
            each
            for each in room.boss.read(room.id, limit=200)
            if each.get("metadata", {}).get("notice") == "wake_ended"
        ]

    [notice] = eventually(reported)
    assert (notice["kind"], notice["sender_agent_id"]) == ("system", "system")
    assert "Waking failing: failed" in notice["body"]
    scene.vendor.behaves()


@pytest.fixture(autouse=True)
def calm(scene: Scene) -> None:
    scene.vendor.behaves()
