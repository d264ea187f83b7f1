"""Who may vote at a gate, and whose own action it is."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.authority import Capability, Kind, Role
from accord.core.kernel.ballot import AnyOf, Everyone, Named
from accord.core.kernel.log import Say
from accord.core.kernel.refusal import Why
from accord.core.room.grants import ToolCleared
from accord.core.room.state import Presence
from accord.core.room.votes import Approved, GatePassed, Rejected
from tests.helpers.gates import asking, prompted
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    after,
    approves,
    approves_tool,
    gate_on,
    given,
    holding,
    joined,
    joins,
    kinds,
    left,
    now,
    opened,
    prompts,
    proposes,
    refused,
    rejects,
    rejects_tool,
    requests,
    step,
    waits,
    when,
)
from tests.spec import proves

# Who may vote


@proves("OPEN-12", "UNI-14")
@pytest.mark.parametrize("role", [Role.NAVIGATOR, Role.ADVERSARY, Role.APPROVER, Role.ADMIN])
@pytest.mark.parametrize("vote", [approves, approves_tool])
def test_an_agents_approval_is_refused_whatever_its_roles(role: Role, vote: Any) -> None:
    room = asking(joined(CODEX, role))

    with refused(Why.FORBIDDEN, "Only people approve"):
        when(room, CODEX, vote(CODEX, "p"))


@proves("OPEN-12")
def test_an_agents_capability_to_approve_is_worth_nothing() -> None:
    room = asking(joined(CODEX, Role.DRIVER, capabilities=(Capability.APPROVE,)))

    with refused(Why.FORBIDDEN, "Only people approve"):
        when(room, CODEX, approves(CODEX, "p"))


@proves("OPEN-12")
def test_a_human_who_comes_back_as_an_agent_has_no_vote_left() -> None:
    room = asking(step(BOB, approves(BOB, "p")), default_gate_quorum=AnyOf(2))
    as_agent = joins(replace(BOB, kind=Kind.AGENT), Role.APPROVER)
    back = step(holding(BOB, Role.APPROVER), as_agent)

    room = given(back, step(ALICE, approves(ALICE, "p")), room=room)

    assert waits(room, "p")
    assert gate_on(room, "p").ballot.yes == {"alice"}


@proves("PVP-7.2-1", "OPEN-13")
def test_a_driver_neither_approves_nor_rejects() -> None:
    room = asking(joined(CAROL, Role.DRIVER))

    with refused(Why.FORBIDDEN):
        when(room, CAROL, approves(CAROL, "p"))
    with refused(Why.FORBIDDEN, "may not reject; an interrupt is open to you"):
        when(room, CAROL, rejects(CAROL, "p"))


@proves("PVP-2-5", "OPEN-13")
def test_an_observer_neither_approves_nor_rejects() -> None:
    room = asking(joined(CAROL, Role.OBSERVER))

    with refused(Why.FORBIDDEN):
        when(room, CAROL, approves(CAROL, "p"))
    with refused(Why.FORBIDDEN):
        when(room, CAROL, rejects(CAROL, "p"))


@proves("PVP-7.3-1", "OPEN-13")
def test_an_observer_with_the_capability_both_approves_and_rejects() -> None:
    room = asking(joined(CAROL, Role.OBSERVER, capabilities=(Capability.APPROVE,)))

    assert [Approved, GatePassed, ToolCleared] == kinds(when(room, CAROL, approves(CAROL, "p")))
    assert [Rejected, Say] == kinds(when(room, CAROL, rejects(CAROL, "p")))


@proves("OPEN-11")
def test_nobody_votes_in_anothers_name() -> None:
    with refused(Why.CLAIM_MISMATCH):
        when(asking(), BOB, approves(ALICE, "p"))
    with refused(Why.CLAIM_MISMATCH):
        when(asking(), BOB, rejects(ALICE, "p"))
    with refused(Why.CLAIM_MISMATCH):
        when(asking(), BOB, approves_tool(ALICE, "p"))
    with refused(Why.CLAIM_MISMATCH):
        when(asking(), BOB, rejects_tool(ALICE, "p"))


# One's own action


@proves("OPEN-14", "UNI-15")
def test_whoever_asks_does_not_count() -> None:
    room = prompted(step(BOB, requests("q"), id="g"))

    with refused(Why.FORBIDDEN, "Whoever proposes cannot approve"):
        when(room, BOB, approves(BOB, "g"))


@proves("OPEN-14")
def test_a_human_alone_may_approve_their_own_action_and_the_log_says_so() -> None:
    room = given(
        opened(by=ALICE),
        joined(CLAUDE, Role.DRIVER),
        joined(BOB, Role.DRIVER),
        step(ALICE, prompts(), id="q"),
        step(ALICE, requests("q", quorum=Everyone()), id="g"),
    )

    facts = when(room, ALICE, approves(ALICE, "g"))

    assert [Approved, GatePassed] == kinds(facts)
    assert isinstance(facts[0], Approved)
    assert facts[0].self_approved


@proves("OPEN-14")
def test_being_alone_is_settled_when_the_gate_opens() -> None:
    alone = given(
        opened(by=ALICE),
        joined(CLAUDE, Role.DRIVER),
        step(ALICE, prompts(), id="q"),
        step(ALICE, requests("q"), id="g"),
        joined(BOB, Role.APPROVER),
    )

    by_another = when(alone, BOB, approves(BOB, "g"))

    assert [Approved, GatePassed] == kinds(when(alone, ALICE, approves(ALICE, "g")))
    assert isinstance(by_another[0], Approved)
    assert not by_another[0].self_approved


@proves("OPEN-14")
def test_whoever_becomes_alone_later_still_does_not_count() -> None:
    room = given(
        opened(by=ALICE),
        joined(BOB, Role.APPROVER),
        joined(CLAUDE, Role.DRIVER),
        step(ALICE, prompts(), id="q"),
        step(ALICE, requests("q"), id="g"),
        left(BOB),
    )

    with refused(Why.FORBIDDEN, "Whoever proposes"):
        when(room, ALICE, approves(ALICE, "g"))


@proves("OPEN-14")
def test_an_absent_colleague_is_still_a_colleague() -> None:
    room = given(
        opened(by=ALICE),
        joined(BOB, Role.APPROVER),
        joined(CLAUDE, Role.DRIVER),
        now(BOB, Presence.DISCONNECTED),
        step(ALICE, prompts(), id="q"),
        step(ALICE, requests("q"), id="g"),
    )

    with refused(Why.FORBIDDEN, "Whoever proposes"):
        when(room, ALICE, approves(ALICE, "g"))


@proves("OPEN-14")
def test_an_agent_alone_with_itself_never_approves() -> None:
    room = given(
        opened(by=CLAUDE),
        step(CLAUDE, proposes(), id="p"),
    )

    with refused(Why.FORBIDDEN):
        when(room, CLAUDE, approves(CLAUDE, "p"))
    assert gate_on(room, "p").message.endswith("(nobody here can approve this yet)")


@proves("OPEN-14", "OPEN-15")
def test_an_initiator_whom_the_quorum_names_blocks_its_own_gate() -> None:
    room = prompted(step(BOB, requests("q", quorum=Named(("alice", "bob"))), id="g"))

    room = given(step(ALICE, approves(ALICE, "g")), room=room)

    assert waits(room, "q")


@proves("OPEN-13")
def test_an_initiator_may_withdraw_its_own_action() -> None:
    facts = when(asking(), CLAUDE, rejects(CLAUDE, "p", "I have a better idea"))

    assert [Rejected, Say] == kinds(facts)
    assert not after(asking(), facts).tools
