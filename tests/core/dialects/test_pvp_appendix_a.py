"""The example session of PVP, Appendix A: it must work as printed."""

import json
from typing import Any

import pytest

from accord.core.dialects import pvp
from accord.core.dialects.stored_records import encode_record
from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import is_id
from accord.core.kernel.role_permissions import Capability, Kind, Role
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.tool_proposals import ToolProposed
from accord.core.room.state import Room
from tests.helpers.pvp_appendix_a import APPENDIX_MESSAGES, APPENDIX_SESSION_ID
from tests.helpers.room.scenario import CommandOutcome, after, given, types_of, when
from tests.spec import proves

ALICE = Actor(principal="alice_01", kind=Kind.HUMAN)
CLAUDE = Actor(principal="claude_01", kind=Kind.AGENT)
CREATE, JOIN, PROMPT, PROPOSE, APPROVE = (json.dumps(each).encode() for each in APPENDIX_MESSAGES)


def said(room: Room, actor: Actor, data: bytes, ref: str | None = None) -> CommandOutcome:
    """What a message of the example leads to."""
    message = pvp.decode(data)
    assert message.sender == actor.principal
    return when(room, actor, message.body, id=message.id, ref=ref or message.ref)


def played(*script: tuple[Actor, bytes]) -> Room:
    """The room after some of the example."""
    room = given()
    for actor, data in script:
        room = after(room, said(room, actor, data))
    return room


@pytest.mark.parametrize("each", APPENDIX_MESSAGES, ids=lambda each: str(each["type"]))
def test_each_message_is_read_and_written_with_the_same_values(each: dict[str, Any]) -> None:
    message = pvp.decode(json.dumps(each).encode())

    assert json.loads(pvp.encode_relayed(message)) == each


@proves("PVP-A-2", "OPEN-4", "PVP-5.1-1")
def test_its_ids_are_taken_although_some_are_no_ulids() -> None:
    ids = {each[name] for each in APPENDIX_MESSAGES for name in ("id", "session", "sender")}

    assert all(is_id(each) for each in ids)
    assert any("I" in each["id"] or "U" in each["id"] for each in APPENDIX_MESSAGES)
    assert {each["session"] for each in APPENDIX_MESSAGES} == {APPENDIX_SESSION_ID}


@proves("PVP-A-1", "PVP-A-3", "OPEN-6")
def test_alice_opens_the_session_and_claude_drives_in_it() -> None:
    room = played((ALICE, CREATE), (CLAUDE, JOIN))

    assert room.name == "Auth Feature"
    assert room.session_config.max_participants == 5
    assert room.members["alice_01"].roles == {Role.ADMIN}
    assert room.members["claude_01"].roles == {Role.DRIVER}
    assert room.members["claude_01"].capabilities == {Capability.PROMPT}
    assert room.members["claude_01"].transport == "websocket"


@proves("PVP-A-4", "OPEN-20")
def test_her_approval_of_the_proposal_lets_it_run() -> None:
    room = played((ALICE, CREATE), (CLAUDE, JOIN), (ALICE, PROMPT))

    proposed = said(room, CLAUDE, PROPOSE)
    room = after(room, proposed)
    approved = said(room, ALICE, APPROVE)

    assert types_of(proposed) == [ToolProposed, GateOpened]
    assert ToolCleared in types_of(approved)
    assert after(room, approved).tools[APPENDIX_MESSAGES[3]["id"]].grant is not None


def test_what_is_kept_of_it_holds_what_was_said() -> None:
    facts = said(given(), ALICE, CREATE)

    frame = encode_record(facts.records[0]).frame

    assert frame is not None
    assert json.loads(frame)["payload"] == APPENDIX_MESSAGES[0]["payload"]
