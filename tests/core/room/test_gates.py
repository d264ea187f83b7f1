"""Gates: how they open, how they are voted on, and how they fail."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from accord.core.kernel.authority import Capability, Kind, Role
from accord.core.kernel.ballot import AllOf, AnyOf, Everyone, Named, OfRole, Quorum
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import Failure, Say
from accord.core.kernel.refusal import Why
from accord.core.room.gates import GateOpened, GateRequest
from accord.core.room.grants import ToolCleared
from accord.core.room.lifecycle import SessionEnded
from accord.core.room.members import Left, SessionLeave
from accord.core.room.state import Category, House, Presence, Room
from accord.core.room.timeouts import GateTimedOut
from accord.core.room.tools import ToolProposed
from accord.core.room.votes import Approved, GateApprove, GatePassed, GateReject, Rejected
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    T0,
    Step,
    after,
    after_seconds,
    approves,
    approves_tool,
    configures,
    ends,
    executes,
    finishes,
    gate_on,
    given,
    holding,
    joined,
    joins,
    kinds,
    left,
    may_run,
    now,
    opened,
    prompts,
    proposes,
    refused,
    rejects,
    rejects_tool,
    requests,
    says,
    step,
    ticks,
    waits,
    when,
)
from tests.spec import proves


def asking(*script: Step, **config: Any) -> Room:
    """Alice is admin, Bob approver; Claude has proposed `p`, which waits at its gate."""
    return given(
        opened(by=ALICE, **config),
        joined(BOB, Role.APPROVER),
        joined(CLAUDE, Role.DRIVER),
        step(CLAUDE, proposes(), id="p"),
        *script,
    )


def prompted(*script: Step) -> Room:
    """Alice is admin and Bob drives; Bob has submitted the prompt `q` and nothing is gated."""
    return given(
        opened(by=ALICE),
        joined(BOB, Role.DRIVER, Role.NAVIGATOR),
        joined(CLAUDE, Role.DRIVER),
        step(BOB, prompts(), id="q"),
        *script,
    )


BOBS_PROMPT = when(
    given(opened(by=ALICE), joined(BOB, Role.DRIVER), joined(CLAUDE, Role.DRIVER)),
    BOB,
    prompts(),
    id="q",
).records
CLAUDES_PROPOSAL = when(
    given(opened(by=ALICE), joined(CLAUDE, Role.DRIVER)), CLAUDE, proposes(), id="p"
).records


# Opening


@proves("PVP-13.2-1", "OPEN-22", "PVP-2-6")
def test_the_server_opens_a_gate_after_the_proposal_and_under_an_id_of_its_own() -> None:
    room = given(opened(by=ALICE), joined(CLAUDE, Role.DRIVER))

    facts = when(room, CLAUDE, proposes(), id="p")

    assert [ToolProposed, GateOpened] == kinds(facts)
    proposal, gate = facts.records
    assert (proposal.id, proposal.sender) == ("p", "claude")
    assert (gate.sender, gate.ref, gate.cause) == ("system", "p", "p")
    assert gate.id != "p"


@proves("PVP-14-1", "PVP-1.2-2")
def test_nothing_runs_while_its_gate_is_open() -> None:
    room = asking()

    assert waits(room, "p")
    with refused(Why.WRONG_STATE, "not approved yet"):
        when(room, CLAUDE, executes("p"))


@proves("PVP-14.4-1")
def test_a_gate_is_kept_with_its_request_its_votes_and_its_times() -> None:
    room = asking(step(BOB, approves(BOB, "p")), default_gate_quorum=AnyOf(2))

    gate = gate_on(room, "p")

    assert (gate.action_type, gate.action, gate.ballot.quorum) == ("tool", "p", AnyOf(2))
    assert (gate.timeout_seconds, gate.message) == (
        300,
        "claude wants to run run_tests: to see whether it works",
    )
    assert gate.ballot.yes == {"bob"}
    assert (gate.opened_at, gate.expires_at) == (T0, after_seconds(300))


@proves("PVP-14.1-1")
@pytest.mark.parametrize(
    "missing", ["action_type", "action_ref", "quorum", "timeout_seconds", "message"]
)
def test_a_request_has_all_five_fields(missing: str) -> None:
    whole = {
        "action_type": "prompt",
        "action_ref": "q",
        "quorum": {"type": "any", "count": 1},
        "timeout_seconds": 60,
        "message": "May I?",
    }
    assert msgspec.convert(whole, GateRequest) == requests("q")

    with pytest.raises(msgspec.ValidationError, match=missing):
        msgspec.convert({k: v for k, v in whole.items() if k != missing}, GateRequest)


@proves("PVP-14.1-2", "OPEN-26")
@pytest.mark.parametrize(
    "kind",
    [
        *("tool", "deploy", "prompt", "context_change"),
        *("session_config", "participant_add", "fork", "merge"),
    ],
)
def test_a_member_may_ask_for_a_gate_on_an_action_of_its_own(kind: Any) -> None:
    room = prompted()

    facts = when(room, BOB, requests("q", action_type=kind), id="g", known=BOBS_PROMPT)

    assert [GateOpened] == kinds(facts)
    gate = after(room, facts).gates["g"]
    assert (gate.action_type, gate.initiator, gate.expires_at) == (kind, "bob", after_seconds(60))


@proves("PVP-14.1-2")
def test_no_other_kind_of_action_is_gated() -> None:
    body = {**msgspec.to_builtins(requests("q")), "action_type": "lunch"}

    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, GateRequest)


@proves("OPEN-26")
def test_a_prompt_is_not_gated_by_itself() -> None:
    assert prompted().gates == {}


@proves("OPEN-10", "OPEN-26")
def test_nobody_asks_for_a_gate_on_somebody_elses_action() -> None:
    with refused(Why.FORBIDDEN, "an action of one's own"):
        when(prompted(), ALICE, requests("q"), known=BOBS_PROMPT)


@proves("OPEN-10")
def test_an_observer_asks_for_no_gate() -> None:
    room = given(opened(by=ALICE), joined(BOB, Role.OBSERVER))

    with refused(Why.FORBIDDEN):
        when(room, BOB, requests("q"), known=BOBS_PROMPT)


def test_a_gate_on_nothing_is_refused() -> None:
    with refused(Why.MALFORMED):
        when(prompted(), BOB, requests("nowhere"))


@proves("OPEN-19")
def test_an_action_has_one_open_gate() -> None:
    room = prompted(step(BOB, requests("q"), id="g"))

    with refused(Why.WRONG_STATE, "open gate already"):
        when(room, BOB, requests("q"), known=BOBS_PROMPT)
    with refused(Why.WRONG_STATE, "open gate already"):
        when(asking(), CLAUDE, requests("p"), known=CLAUDES_PROPOSAL)


@proves("OPEN-25")
def test_a_dead_action_gets_no_second_gate() -> None:
    room = asking(step(BOB, rejects(BOB, "p")))

    with refused(Why.WRONG_STATE, "not pending any more"):
        when(room, CLAUDE, requests("p"), known=CLAUDES_PROPOSAL)


def test_a_tool_that_may_run_is_not_gated_afterwards() -> None:
    room = asking(step(BOB, approves(BOB, "p")))

    with refused(Why.WRONG_STATE, "not pending any more"):
        when(room, CLAUDE, requests("p"), known=CLAUDES_PROPOSAL)


def test_a_room_has_a_bounded_number_of_open_gates() -> None:
    room = prompted(step(BOB, prompts(), id="q2"), step(BOB, requests("q2"), id="g2"))

    with refused(Why.WRONG_STATE, "1 gates are open"):
        when(room, BOB, requests("q"), known=BOBS_PROMPT, house=House(limits=Limits(gates=1)))


@proves("OPEN-15")
@pytest.mark.parametrize(
    "quorum",
    [
        Named(("alice", "claude")),
        AllOf((AnyOf(1), AllOf((Named(("claude",)),)))),
        AllOf((AllOf((AllOf((AllOf((AnyOf(1),)),)),)),)),
        AllOf((AllOf((AnyOf(1),) * 5), AllOf((AnyOf(1),) * 4))),
    ],
)
def test_a_quorum_that_could_never_count_is_refused(quorum: Quorum) -> None:
    with refused(Why.MALFORMED):
        when(prompted(), BOB, requests("q", quorum=quorum), known=BOBS_PROMPT)
    with refused(Why.MALFORMED):
        when(prompted(), ALICE, configures(default_gate_quorum=quorum))


@proves("OPEN-15")
def test_a_gate_that_nobody_can_pass_yet_says_so() -> None:
    room = asking(default_gate_quorum=AnyOf(3))

    assert gate_on(room, "p").message.endswith("(nobody here can approve this yet)")
    assert waits(room, "p")


@proves("OPEN-15")
def test_the_note_fits_into_the_longest_message() -> None:
    ask = requests("q", quorum=Named(("zoe",)), message="x" * 4096)

    facts = when(prompted(), BOB, ask, known=BOBS_PROMPT)

    (gate,) = facts
    assert isinstance(gate, GateOpened)
    assert len(gate.said.message) == 4096
    after(prompted(), facts)


@proves("OPEN-36")
def test_a_retry_is_known_as_one_though_the_server_added_a_note() -> None:
    ask = requests("q", quorum=Named(("zoe",)))

    (gate,) = when(prompted(), BOB, ask, known=BOBS_PROMPT)

    assert isinstance(gate, GateOpened)
    assert gate.said != ask
    assert ask.repeats(gate.said)
    assert not requests("q", message="Another").repeats(gate.said)
    assert not ask.repeats(prompts())


@proves("OPEN-26")
def test_the_quorum_is_that_of_the_moment_when_the_gate_was_opened() -> None:
    room = asking(
        step(ALICE, configures(default_gate_quorum=AnyOf(1), require_approval_for=[])),
        default_gate_quorum=AnyOf(2),
    )

    room = given(step(BOB, approves(BOB, "p")), room=room)

    assert waits(room, "p")


# Saying yes


@proves("PVP-14.3-1", "PVP-13.3-1", "OPEN-22")
def test_when_the_quorum_is_met_the_gate_passes_and_the_server_says_execute_once() -> None:
    room = asking()

    facts = when(room, BOB, approves(BOB, gate_on(room, "p").id), id="v")

    assert [Approved, GatePassed, ToolCleared] == kinds(facts)
    vote, _, execute = facts.records
    assert (vote.id, vote.sender) == ("v", "bob")
    assert (execute.sender, execute.ref) == ("system", "p")
    assert isinstance(execute.event, ToolCleared)
    assert execute.event.said.approved_by == ("bob",)
    room = after(room, facts)
    assert may_run(room, "p")
    assert not waits(room, "p")


def test_a_gate_on_no_tool_passes_without_further_ado() -> None:
    room = prompted(step(BOB, requests("q"), id="g"))

    facts = when(room, ALICE, approves(ALICE, "g"))

    assert [Approved, GatePassed] == kinds(facts)
    assert after(room, facts).gates == {}


@proves("PVP-14.2-1", "OPEN-24")
def test_an_approval_that_is_not_enough_leaves_the_gate_open_and_a_repeat_changes_nothing() -> None:
    room = asking(default_gate_quorum=AnyOf(2))

    once = given(step(BOB, approves(BOB, "p")), room=room)
    twice = given(step(BOB, approves(BOB, "p")), room=once)

    assert [Approved] == kinds(when(room, BOB, approves(BOB, "p")))
    assert once == twice
    assert waits(twice, "p")


@proves("OPEN-19")
def test_a_gate_is_known_by_its_id_and_by_its_action() -> None:
    room = asking()
    gate = gate_on(room, "p").id

    by_id = when(room, BOB, approves(BOB, gate))
    by_action = when(room, BOB, approves(BOB, "p"))
    by_ref = when(room, BOB, approves(BOB, "some-name-of-mine"), ref="p")
    by_gate_in_ref = when(room, BOB, approves(BOB, "some-name-of-mine"), ref=gate)

    for facts in (by_id, by_action, by_ref, by_gate_in_ref):
        assert isinstance(facts[0], Approved)
        assert facts[0].gate == gate


@proves("OPEN-19", "PVP-4.2-7")
def test_a_vote_refers_to_its_gate_unless_the_voter_says_otherwise() -> None:
    room = asking()
    gate = gate_on(room, "p").id

    assert when(room, BOB, approves(BOB, "p")).records[0].ref == gate
    assert when(room, BOB, approves(BOB, "p"), ref="p").records[0].ref == "p"


@proves("OPEN-19")
def test_the_server_calls_a_gate_by_its_id_alone() -> None:
    room = asking()
    gate = gate_on(room, "p").id

    (timed_out, _) = ticks(room, after_seconds(300))
    (withdrawn, _, _) = when(room, CLAUDE, SessionLeave())

    assert isinstance(timed_out, GateTimedOut)
    assert isinstance(withdrawn, Rejected)
    assert isinstance(withdrawn.said, GateReject)
    assert timed_out.said.gate == withdrawn.said.gate == gate


@proves("OPEN-24")
def test_a_vote_never_lands_on_another_gate_than_the_one_it_names() -> None:
    room = asking(step(CLAUDE, proposes(), id="p2"))
    resolved = gate_on(room, "p").id
    room = given(step(BOB, rejects(BOB, "p")), room=room)

    with refused(Why.WRONG_STATE, "closed already: rejected"):
        when(room, BOB, approves(BOB, resolved), ref="p2")


def test_a_vote_on_nothing_is_refused() -> None:
    with refused(Why.UNKNOWN, "no open gate nowhere"):
        when(asking(), BOB, approves(BOB, "nowhere"))


@proves("OPEN-20")
def test_tool_approve_is_a_vote_on_the_proposals_gate() -> None:
    facts = when(asking(), BOB, approves_tool(BOB, "p"))

    assert [Approved, GatePassed, ToolCleared] == kinds(facts)


@proves("OPEN-20")
def test_two_spellings_by_one_person_are_one_vote() -> None:
    room = asking(
        step(BOB, approves_tool(BOB, "p")),
        step(BOB, approves(BOB, "p")),
        default_gate_quorum=AnyOf(2),
    )

    assert waits(room, "p")
    assert gate_on(room, "p").ballot.yes == {"bob"}


@proves("OPEN-20")
@pytest.mark.parametrize("vote", [approves_tool, rejects_tool])
def test_without_an_open_gate_there_is_nothing_to_vote_on(vote: Any) -> None:
    room = given(
        opened(by=ALICE),
        joined(CLAUDE, Role.DRIVER),
        step(CLAUDE, proposes(category=Category.FILE_READ), id="p"),
    )

    with refused(Why.WRONG_STATE, "waits for nobody"):
        when(room, ALICE, vote(ALICE, "p"))
    with refused(Why.UNKNOWN):
        when(room, ALICE, vote(ALICE, "nowhere"))


@proves("PVP-14.3-1", "OPEN-14")
def test_whoever_prompted_the_agent_may_approve_its_tool() -> None:
    room = given(
        opened(by=ALICE),
        joined(CLAUDE, Role.DRIVER),
        step(ALICE, prompts(), id="q"),
        step(CLAUDE, proposes(), id="p", ref="q"),
        step(ALICE, approves(ALICE, "p")),
    )

    assert may_run(room, "p")


def test_approved_by_names_those_whose_approval_counted() -> None:
    room = asking(step(BOB, approves(BOB, "p")), default_gate_quorum=OfRole(Role.ADMIN, 1))

    facts = when(room, ALICE, approves(ALICE, "p"))

    assert isinstance(facts[1], GatePassed)
    assert facts[1].approved_by == ("alice",)


def test_more_people_may_approve_than_a_list_on_the_wire_usually_holds() -> None:
    seats = [f"s{number}" for number in range(300)]
    voters = [replace(BOB, seat=seat) for seat in seats]
    room = given(
        opened(by=ALICE, max_participants=400, default_gate_quorum=AnyOf(300)),
        joined(CLAUDE, Role.DRIVER),
        *(joined(voter, Role.APPROVER) for voter in voters),
        step(CLAUDE, proposes(), id="p"),
        *(step(voter, approves(voter, "p")) for voter in voters),
    )

    assert may_run(room, "p")


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


# Saying no


@proves("PVP-14.3-2", "OPEN-25", "OPEN-49")
def test_one_rejection_fails_the_gate_and_the_room_hears_of_it() -> None:
    room = asking(step(ALICE, approves(ALICE, "p")), default_gate_quorum=AnyOf(3))

    facts = when(room, BOB, rejects(BOB, "p"))

    assert [Rejected, Say] == kinds(facts)
    (news,) = says(facts)
    assert news.to is None
    assert news.body == Failure(Why.GATE_FAILED, "Rejected by bob", "p")
    assert not waits(after(room, facts), "p")


@proves("OPEN-25")
def test_what_was_rejected_is_dead_under_its_id() -> None:
    room = asking(step(BOB, rejects(BOB, "p")))

    with refused(Why.GATE_FAILED, "p was rejected; propose again under a new id"):
        when(room, CLAUDE, executes("p"))
    with refused(Why.GATE_FAILED):
        when(room, CLAUDE, finishes("p"))


@proves("OPEN-24")
def test_to_approve_and_then_reject_is_to_reject() -> None:
    room = asking(step(BOB, approves(BOB, "p")), default_gate_quorum=AnyOf(2))

    room = given(step(BOB, rejects(BOB, "p")), room=room)

    assert not waits(room, "p")
    with refused(Why.WRONG_STATE, "closed already: rejected"):
        when(room, ALICE, approves(ALICE, "p"))


@proves("OPEN-13")
def test_somebody_whom_the_quorum_does_not_ask_may_still_reject() -> None:
    room = asking(joined(CAROL, Role.NAVIGATOR), default_gate_quorum=Named(("alice",)))

    assert [Rejected, Say] == kinds(when(room, CAROL, rejects(CAROL, "p")))


@proves("OPEN-13")
def test_an_agent_with_the_right_may_reject() -> None:
    room = asking(joined(CODEX, Role.NAVIGATOR))

    assert [Rejected, Say] == kinds(when(room, CODEX, rejects(CODEX, "p")))


@proves("OPEN-20")
def test_tool_reject_is_a_vote_too() -> None:
    assert [Rejected, Say] == kinds(when(asking(), BOB, rejects_tool(BOB, "p")))


@proves("OPEN-24")
@pytest.mark.parametrize("vote", [approves, rejects])
def test_a_vote_on_a_gate_that_is_over_is_refused(vote: Any) -> None:
    waiting = asking()
    gate = gate_on(waiting, "p").id
    passed = given(step(BOB, approves(BOB, "p")), room=waiting)
    rejected = given(step(BOB, rejects(BOB, "p")), room=waiting)
    timed_out = after(waiting, ticks(waiting, after_seconds(300)))

    for room in (passed, rejected, timed_out):
        with refused(Why.WRONG_STATE, "closed already"):
            when(room, ALICE, vote(ALICE, gate))
        with refused(Why.WRONG_STATE):
            when(room, ALICE, vote(ALICE, "p"))


# Gates end with their initiator and with the session


@proves("OPEN-25")
def test_when_an_agent_goes_the_server_closes_its_gates_first() -> None:
    room = asking()

    facts = when(room, CLAUDE, SessionLeave(), id="bye")

    assert [Rejected, Say, Left] == kinds(facts)
    rejection, leave = facts.records
    assert (rejection.sender, leave.sender, leave.id) == ("system", "claude", "bye")
    room = after(room, facts)
    assert (room.gates, room.tools) == ({}, {})
    with refused(Why.WRONG_STATE, "closed already"):
        when(room, BOB, approves(BOB, "p"))


def test_when_somebody_else_goes_the_gate_stays() -> None:
    assert waits(asking(left(BOB)), "p")


@proves("OPEN-27")
def test_the_end_of_a_session_rejects_its_gates_first() -> None:
    room = asking(step(CLAUDE, proposes(), id="p2"))

    facts = when(room, ALICE, ends())

    assert [GateTimedOut, Say, GateTimedOut, Say, SessionEnded] == kinds(facts)
    timeouts = [fact.said for fact in facts if isinstance(fact, GateTimedOut)]
    assert [said.resolution.value for said in timeouts] == ["rejected", "rejected"]
    told = [fact.body for fact in facts if isinstance(fact, Say)]
    assert {each.detail for each in told if isinstance(each, Failure)} == {
        "The session ended first"
    }
    room = after(room, facts)
    assert (room.gates, room.tools) == ({}, {})


@proves("OPEN-27")
def test_nothing_is_due_after_the_end() -> None:
    room = asking(step(ALICE, ends()))

    assert ticks(room, after_seconds(10_000)) == []
    with refused(Why.ENDED):
        when(room, CLAUDE, executes("p"))


# Folding what is no longer there


def test_a_fact_about_a_gate_that_is_gone_changes_nothing() -> None:
    waiting = asking()
    yes = when(waiting, BOB, approves(BOB, "p"))
    no = when(waiting, BOB, rejects(BOB, "p"))
    late = ticks(waiting, after_seconds(300))
    over = given(step(BOB, rejects(BOB, "p")), room=waiting)

    assert after(over, yes) == after(over, no) == after(over, late) == over


def test_votes_name_the_voter_and_leave_room_for_a_comment() -> None:
    assert msgspec.convert(
        {"gate": "g", "approver": "bob", "comment": "Good"}, GateApprove
    ) == approves(BOB, "g", "Good")
    assert msgspec.convert({"gate": "g", "rejector": "bob", "reason": "No"}, GateReject) == rejects(
        BOB, "g"
    )
