"""Messages about gates name people by id and, beside it, the name that they chose."""

from collections.abc import Iterable

from msgspec.structs import replace

from accord.core.kernel.context import EventOrEffect
from accord.core.kernel.effects import ServerNotice
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.votes import GateApprove
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.merges import MergePropose
from accord.core.room.state import MAX_SHOWN_NAME, Room, shown_name
from tests.helpers.room.logged_room import LoggedRoom, failures_of
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    gate_approve,
    gate_on,
    role_change,
    tool_approve,
    tool_propose,
    tool_reject,
)
from tests.spec import proves

AGENT, PERSON = "claude (Pair of Eyes)", "bob (Robert Roe)"


def room_with_names() -> LoggedRoom:
    talk = LoggedRoom.with_members((BOB, Role.ADVERSARY), (CLAUDE, Role.DRIVER))
    names = {"bob": "Robert Roe", "claude": "Pair of Eyes"}
    members = {
        id: replace(member, name=names.get(id, member.name))
        for id, member in talk.room.members.items()
    }
    talk.room = replace(talk.room, members=members)
    return talk


def details_of(facts: Iterable[EventOrEffect]) -> list[str]:
    return [failure.detail for failure, _ in failures_of(facts)]


@proves("OPEN-15")
def test_a_gate_says_who_wants_what() -> None:
    talk = room_with_names()
    talk.send(CLAUDE, tool_propose(), id="t")
    talk.fork("Aside", BOB, CLAUDE)
    talk.send(CLAUDE, MergePropose("aside", "", MergeStrategy.APPEND, "Done"), id="m")

    assert gate_on(talk.room, "t").message.startswith(f"{AGENT} wants to run ")
    assert gate_on(talk.room, "m").message.startswith(f"{AGENT} wants to merge aside ")


def test_a_gate_that_ends_says_who_ended_it() -> None:
    talk = room_with_names()
    talk.send(CLAUDE, tool_propose(), id="no")
    talk.send(CLAUDE, tool_propose(), id="back")
    talk.fork("Aside", BOB, CLAUDE)
    talk.send(CLAUDE, MergePropose("aside", "", MergeStrategy.APPEND, "Done"), id="m")
    rejected = talk.send(BOB, tool_reject(BOB, "no"))
    talk.send(BOB, tool_approve(BOB, "back"))
    taken = talk.send(BOB, tool_reject(BOB, "back", "wait"))
    passed = talk.send(BOB, gate_approve(BOB, "m"))

    assert details_of(rejected) == [f"Rejected by {PERSON}"]
    assert details_of(taken) == [f"{PERSON} took the grant back: wait"]
    (notice,) = [fact for fact in passed if isinstance(fact, ServerNotice)]
    assert isinstance(notice.body, GateApprove)
    assert notice.body.comment == f"The gate passed, approved by {PERSON}"


def test_a_removal_says_who_removed_whom_at_the_gates() -> None:
    talk = room_with_names()
    talk.send(CLAUDE, tool_propose(), id="t")
    talk.send(ALICE, role_change(ALICE, BOB, [Role.ADVERSARY], []))
    notes = gate_on(talk.room, "t").notes
    removed = talk.send(ALICE, role_change(ALICE, CLAUDE, [Role.DRIVER], []))

    assert notes == (f"alice removed {PERSON}, whose approval does not count",)
    assert f"alice removed {AGENT}" in details_of(removed)
    assert talk.room.person("bob") == PERSON


def test_a_name_cannot_leave_its_parentheses_or_its_line() -> None:
    assert shown_name("Bob), approved by (alice\n\x1b[2J") == "Bob , approved by alice [2J"
    assert len(shown_name("x" * 500)) == MAX_SHOWN_NAME
    assert Room(id="r").person("stranger") == "stranger"
