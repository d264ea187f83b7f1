"""Standing grants: which calls they vote on, and when they end."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.ballot import AllOf, AnyOf, Everyone, Majority, Named, OfLabel, OfRole
from accord.core.kernel.context import fold
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room import CONTEXT
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.standing_grants import (
    StandingGrantCreate,
    StandingGrantEnd,
    StandingGrantsExpired,
)
from accord.core.room.approval.tool_proposals import ToolProposed
from accord.core.room.approval.votes import GateApproved, GatePassed
from accord.core.room.room_settings import Category
from accord.core.room.state import CallSubject, Risk, Room
from accord.core.views import home, sessions
from tests.helpers.room.call_rules import REPORTED, policy_with
from tests.helpers.room.logged_room import LoggedRoom
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    T0,
    after,
    create_step,
    events_of,
    expect_refusal,
    gate_approve,
    gate_on,
    given,
    has_grant,
    join_step,
    leave_step,
    role_change,
    script_step,
    seconds_after_start,
    tick_at,
    tool_propose,
    types_of,
    when,
)

GRANT = StandingGrantCreate(agent="claude", run=("pytest **",), count=2, seconds=600)


def room_with_grant(grant: StandingGrantCreate = GRANT, **config: Any) -> Room:
    """Alice granted; Bob may approve, Carol may not."""
    return given(
        create_step(by=ALICE, **config),
        join_step(BOB, Role.APPROVER),
        join_step(CAROL, Role.OBSERVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(ALICE, grant, id="s"),
    )


def propose(room: Room, *, at: int = T0, id: str = "p", **found: Any) -> Any:
    body = tool_propose(metadata=REPORTED, category=Category.FILE_READ)
    return when(room, CLAUDE, body, id=id, at=at, policy=policy_with(**found))


def test_a_session_with_a_grant_in_force_is_looked_at_by_home() -> None:
    room = room_with_grant()

    assert room.needs_attention
    (listed,) = home.session_concerns(room, "bob", 0).standing_grants
    assert listed["id"] == "s"
    assert not replace(room, standing_grants={}).needs_attention


def test_a_matching_call_passes_by_the_grant_and_names_no_approver() -> None:
    room = room_with_grant()

    facts = propose(room)
    room = after(room, facts)

    assert types_of(facts) == [ToolProposed, GateOpened, GateApproved, GatePassed, ToolCleared]
    vote, passed, cleared = (
        next(e for e in events_of(facts) if isinstance(e, kind))
        for kind in (GateApproved, GatePassed, ToolCleared)
    )
    assert isinstance(vote, GateApproved)
    assert (vote.seat, vote.standing) == ("alice", "s")
    assert isinstance(passed, GatePassed)
    assert (passed.approved_by, passed.standing) == (("alice",), ("alice",))
    assert isinstance(cleared, ToolCleared)
    assert (cleared.said.approved_by, cleared.said.standing) == ((), ("alice",))
    assert has_grant(room, "p")
    assert room.standing_grants["s"].used == 1


def test_a_grant_that_is_used_up_is_gone() -> None:
    room = room_with_grant()
    for id in ("p", "q"):
        room = after(room, propose(room, id=id))

    assert room.standing_grants == {}
    assert not has_grant(after(room, propose(room, id="r")), "r")


@pytest.mark.parametrize(
    "found",
    [
        {"risk": Risk.HIGH},
        {"risk": Risk.CRITICAL},
        {"category": Category.DEPLOY, "categories": (Category.DEPLOY,)},
        {"category": Category.DATABASE, "categories": (Category.DATABASE,)},
        {"category": Category.SECRET_ACCESS, "categories": (Category.SECRET_ACCESS,)},
        {"categories": (Category.SHELL_EXECUTE, Category.FILE_DELETE)},
        {"subjects": ()},
        {"subjects": (CallSubject(run=("rm", "x")),)},
        {"subjects": (CallSubject(run=("pytest",)), CallSubject(write="a"))},
    ],
    ids=str,
)
def test_a_grant_votes_on_nothing_dangerous_and_nothing_else(found: dict[str, Any]) -> None:
    room = room_with_grant()

    facts = propose(room, **found)

    assert types_of(facts) == [ToolProposed, GateOpened]
    assert not has_grant(after(room, facts), "p")


def test_a_claim_of_the_agent_can_only_raise_what_the_server_found() -> None:
    room = room_with_grant()
    body = tool_propose(metadata=REPORTED, category=Category.DEPLOY, risk=Risk.MEDIUM)

    facts = when(room, CLAUDE, body, id="p", policy=policy_with())
    tool = after(room, facts).tools["p"]

    assert types_of(facts) == [ToolProposed, GateOpened]
    assert (tool.category, tool.risk) == (Category.DEPLOY, Risk.MEDIUM)
    assert tool.claimed == ("deploy", "medium")


def test_without_a_report_the_claim_is_taken_and_no_grant_votes() -> None:
    room = room_with_grant()

    facts = when(room, CLAUDE, tool_propose(), id="p", policy=policy_with())

    assert types_of(facts) == [ToolProposed, GateOpened]
    assert after(room, facts).tools["p"].computed is None


def test_a_server_without_rules_takes_the_claim_of_a_report() -> None:
    room = room_with_grant()

    facts = when(room, CLAUDE, tool_propose(metadata=REPORTED), id="p")

    assert types_of(facts) == [ToolProposed, GateOpened]
    assert after(room, facts).tools["p"].computed is None


def test_a_grant_does_not_vote_in_a_fork_without_its_grantor() -> None:
    talk = LoggedRoom.with_members((BOB, Role.NAVIGATOR), (CLAUDE, Role.DRIVER))
    talk.send(ALICE, GRANT, id="s")
    fork = talk.fork("Aside", CLAUDE, by=BOB)

    facts = talk.send(
        CLAUDE, tool_propose(metadata=REPORTED), id="p", fork=fork, house=policy_with()
    )

    assert types_of(facts) == [ToolProposed, GateOpened]
    assert talk.room.standing_grants["s"].used == 0


def test_a_vote_of_a_grant_that_is_gone_is_still_a_vote() -> None:
    talk = LoggedRoom.with_members(
        (BOB, Role.APPROVER), (CLAUDE, Role.DRIVER), default_gate_quorum=AnyOf(2)
    )
    talk.send(ALICE, GRANT, id="s")
    before = talk.room
    facts = talk.send(CLAUDE, tool_propose(metadata=REPORTED), id="p", house=policy_with())
    without = replace(before, standing_grants={})

    room = fold(CONTEXT, without, facts.records)

    assert gate_on(room, "p").ballot.yes == {"alice"}
    assert room.standing_grants == {}


def test_a_computed_class_is_the_servers_alone() -> None:
    with expect_refusal(Reason.MALFORMED, "computed"):
        when(room_with_grant(), CLAUDE, tool_propose(metadata={"computed": {}}), id="p")


def test_a_read_needs_no_gate_and_what_must_be_gated_does_whatever_the_session_says() -> None:
    room = room_with_grant(require_approval_for=())
    read: dict[str, Any] = {
        "category": Category.FILE_READ,
        "categories": (Category.FILE_READ,),
        "subjects": (),
    }

    assert types_of(propose(room, **read)) == [ToolProposed, ToolCleared]
    assert types_of(propose(room, subjects=(), must_be_gated=True)) == [ToolProposed, GateOpened]


@pytest.mark.parametrize(
    "quorum",
    [
        Everyone(),
        Majority(),
        Named(("alice",)),
        OfLabel("security", 1),
        AllOf((AnyOf(1), Everyone())),
    ],
    ids=repr,
)
def test_rules_that_ask_for_certain_people_do_not_count_it(quorum: Any) -> None:
    room = room_with_grant(default_gate_quorum=quorum)

    assert types_of(propose(room)) == [ToolProposed, GateOpened]


def test_a_role_rule_counts_it_and_a_second_approval_may_be_missing() -> None:
    by_role = room_with_grant(default_gate_quorum=OfRole(Role.ADMIN, 1))
    assert has_grant(after(by_role, propose(by_role)), "p")

    two = room_with_grant(default_gate_quorum=AnyOf(2))
    two = after(two, propose(two))
    gate = gate_on(two, "p")
    assert sessions.gate_view(two, gate)["standing"] == ["alice"]

    facts = when(two, BOB, gate_approve(BOB, gate.id), policy=policy_with())
    (cleared,) = [each for each in events_of(facts) if isinstance(each, ToolCleared)]
    assert (cleared.said.approved_by, cleared.said.standing) == (("bob",), ("alice",))


def test_an_own_vote_replaces_that_of_the_grant() -> None:
    room = room_with_grant(default_gate_quorum=AnyOf(2))
    room = after(room, propose(room))
    gate = gate_on(room, "p")

    room = after(room, when(room, ALICE, gate_approve(ALICE, gate.id)))

    assert gate_on(room, "p").standing == {}
    assert gate_on(room, "p").ballot.yes == {"alice"}


@pytest.mark.parametrize(
    "end",
    [
        leave_step(ALICE),
        script_step(BOB, StandingGrantEnd("s")),
        script_step(BOB, role_change(BOB, ALICE, [Role.ADMIN], [Role.OBSERVER])),
    ],
    ids=["left", "ended by another approver", "demoted"],
)
def test_a_grant_and_its_votes_end_with_its_grantors_right(end: Any) -> None:
    room = given(
        create_step(by=ALICE, default_gate_quorum=AnyOf(2)),
        join_step(BOB, Role.ADMIN),
        join_step(CLAUDE, Role.DRIVER),
        script_step(ALICE, GRANT, id="s"),
    )
    room = after(room, propose(room))

    room = given(end, room=room)

    assert room.standing_grants == {}
    assert gate_on(room, "p").ballot.yes == frozenset()


def test_a_grant_ends_with_its_time_and_with_its_agent() -> None:
    room = room_with_grant()
    late = seconds_after_start(601)

    assert types_of(propose(room, at=late)) == [ToolProposed, GateOpened]
    assert types_of(tick_at(room, seconds_after_start(599))) == []
    facts = tick_at(room, late)
    assert StandingGrantsExpired in types_of(facts)
    assert after(room, facts).standing_grants == {}
    assert given(leave_step(CLAUDE), room=room).standing_grants == {}


def test_one_vote_for_each_grantor_however_many_grants() -> None:
    room = room_with_grant(default_gate_quorum=AnyOf(2))
    room = given(script_step(ALICE, GRANT, id="t"), room=room)

    assert types_of(propose(room)) == [ToolProposed, GateOpened, GateApproved]


def test_the_end_of_a_grant_leaves_other_gates_alone() -> None:
    room = room_with_grant(default_gate_quorum=AnyOf(2))
    room = after(room, propose(room))
    room = after(room, when(room, CLAUDE, tool_propose(), id="other"))
    room = given(script_step(ALICE, gate_approve(ALICE, gate_on(room, "other").id)), room=room)

    room = given(script_step(BOB, StandingGrantEnd("s")), room=room)

    assert gate_on(room, "p").ballot.yes == frozenset()
    assert gate_on(room, "other").ballot.yes == {"alice"}


def test_a_retry_is_known_as_one_though_the_server_added_a_class() -> None:
    ask = tool_propose(metadata=REPORTED)
    (proposed, *_) = when(room_with_grant(), CLAUDE, ask, policy=policy_with())

    assert isinstance(proposed, ToolProposed)
    assert proposed.said != ask
    assert ask.is_retry_of(proposed.said)
    # An agent may have used the key before it had a meaning.
    old = tool_propose(metadata={"computed": "by me"})
    assert old.is_retry_of(old)
    assert not ask.is_retry_of(old)


def test_an_option_is_never_voted_on_beforehand() -> None:
    room = room_with_grant()
    room = after(room, when(room, CLAUDE, tool_propose(), id="first"))
    body = tool_propose(metadata={**REPORTED, "option_of": "first"})

    facts = when(room, CLAUDE, body, id="p", policy=policy_with())

    assert types_of(facts) == [ToolProposed, GateOpened]


@pytest.mark.parametrize(
    ("actor", "change", "reason"),
    [
        (CLAUDE, {}, Reason.FORBIDDEN),
        (CAROL, {}, Reason.FORBIDDEN),
        (ALICE, {"agent": "bob"}, Reason.NOT_FOUND),
        (ALICE, {"agent": "codex"}, Reason.NOT_FOUND),
        (ALICE, {"run": ()}, Reason.MALFORMED),
        (ALICE, {"run": ("** x",)}, Reason.MALFORMED),
        (ALICE, {"run": ("a ** b",)}, Reason.MALFORMED),
        (ALICE, {"run": ("a; b",)}, Reason.MALFORMED),
    ],
    ids=str,
)
def test_who_may_not_grant_and_what_is_no_grant(actor: Any, change: Any, reason: Reason) -> None:
    with pytest.raises(Refused) as refused:
        given(script_step(actor, replace(GRANT, **change)), room=room_with_grant())

    assert refused.value.reason is reason


def test_an_agent_with_the_right_to_approve_gives_no_grant() -> None:
    room = given(join_step(CODEX, Role.APPROVER), room=room_with_grant())

    with expect_refusal(Reason.FORBIDDEN, "Only humans"):
        when(room, CODEX, GRANT)


def test_a_session_has_so_many_grants_and_an_ended_one_is_unknown() -> None:
    room = given(
        *(script_step(ALICE, GRANT, id=f"g{number}") for number in range(63)),
        room=room_with_grant(),
    )

    with expect_refusal(Reason.TOO_MANY):
        when(room, ALICE, GRANT)
    with expect_refusal(Reason.NOT_FOUND):
        when(room, ALICE, StandingGrantEnd("gone"))


def test_a_grant_is_shown_in_the_session_and_at_home() -> None:
    room = room_with_grant(replace(GRANT, write=("src/**",)))

    (shown,) = sessions.session_detail(room, "bob")["standing_grants"]
    (at_home,) = home.session_concerns(room, "bob", 0).standing_grants

    assert (shown["grantor"], shown["agent"], shown["used"]) == ("alice", "claude", 0)
    assert at_home["session"] == room.id
    assert home.combine([home.session_concerns(room, "bob", 0)])["standing_grants"] == [at_home]


@pytest.mark.parametrize("pattern", ["src/**", "src/", "./src/*.py"])
def test_standing_grant_matches_files_by_pattern(pattern: str) -> None:
    room = room_with_grant(replace(GRANT, run=(), write=(pattern,)))
    inside: dict[str, Any] = {"subjects": (CallSubject(write="src/a.py"),)}

    assert has_grant(after(room, propose(room, **inside)), "p")
    assert not has_grant(
        after(room, propose(room, id="q", subjects=(CallSubject(write="a.py"),))), "q"
    )
