"""Quorums count members, present or not, and say what can no longer be met."""

from typing import Any

import pytest

from accord.core.kernel.ballot import (
    AllOf,
    AnyOf,
    Everyone,
    Majority,
    Named,
    OfLabel,
    OfRole,
    Quorum,
)
from accord.core.kernel.messages import Failure
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.room_settings import AbsencePolicy, ServerPolicy
from accord.core.room.state import Presence, Room
from accord.core.views import sessions
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    CommandOutcome,
    Step,
    after,
    create_step,
    expect_refusal,
    gate_on,
    given,
    has_open_gate,
    join_step,
    presence_step,
    relays_of,
    role_change,
    script_step,
    session_config_update,
    session_create,
    session_end,
    tool_approve,
    tool_propose,
    when,
)
from tests.spec import proves

R = Role
ABSENT = [presence_step(who, Presence.DISCONNECTED) for who in (BOB, CAROL)]


def three_approvers(*script: Step, **config: Any) -> Room:
    """Alice is admin, Bob and Carol approve, Claude drives."""
    return given(
        create_step(**config),
        join_step(BOB, R.APPROVER),
        join_step(CAROL, R.APPROVER),
        join_step(CLAUDE, R.DRIVER),
        *script,
    )


def asks(*script: Step, **config: Any) -> Room:
    """The same after Claude's proposal `p`, with a script before it."""
    return three_approvers(*script, script_step(CLAUDE, tool_propose(), id="p"), **config)


def detail(room: Room) -> dict[str, Any]:
    return sessions.session_detail(room, "alice")


@proves("OPEN-17", "OPEN-18")
@pytest.mark.parametrize(("quorum", "required"), [(Everyone(), 3), (Majority(), 2)])
@pytest.mark.parametrize("policy", [AbsencePolicy.WAIT, AbsencePolicy.SKIP])
def test_absent_members_are_counted_unless_the_session_skips_them(
    quorum: Quorum, required: int, policy: AbsencePolicy
) -> None:
    room = asks(*ABSENT, default_gate_quorum=quorum, on_participant_timeout=policy)

    (gate,) = detail(room)["gates"]

    skips = policy is AbsencePolicy.SKIP
    assert gate["approvals_required"] == (1 if skips else required)
    assert gate["skipped"] == (["bob", "carol"] if skips else [])
    assert ("left out as absent: bob, carol" in gate["request"]["message"]) is skips


@proves("OPEN-18")
def test_a_rule_that_counts_no_electorate_leaves_nobody_out() -> None:
    room = asks(*ABSENT, on_participant_timeout=AbsencePolicy.SKIP)

    assert detail(room)["gates"][0]["skipped"] == []


@proves("OPEN-17")
def test_an_absence_after_the_opening_does_not_shrink_everybody() -> None:
    room = asks(*[], default_gate_quorum=Everyone())
    room = given(*ABSENT, script_step(ALICE, tool_approve(ALICE, "p")), room=room)

    assert has_open_gate(room, "p")
    room = given(
        script_step(BOB, tool_approve(BOB, "p")),
        script_step(CAROL, tool_approve(CAROL, "p")),
        room=room,
    )
    assert room.tools["p"].grant is not None


# At creation


class People:
    """A workspace that knows Zoe, and the agent Codex."""

    def kind_of(self, workspace: str, id: str) -> Kind | None:
        known = {("default", "zoe"): Kind.HUMAN, ("default", "codex"): Kind.AGENT}
        return known.get((workspace, id))


KNOWING = ServerPolicy(directory=People())


@proves("OPEN-15")
@pytest.mark.parametrize(
    ("quorum", "sentence"),
    [
        (AnyOf(4), "any 4 needs 4 people, but max_participants is 3"),
        (OfRole(R.ADMIN, 4), "role admin 4 needs 4"),
        (OfLabel("legal", 4), "label legal 4 needs 4"),
        (Named(("a", "b", "c", "d")), "a,b,c,d needs 4 people"),
        (AllOf((AnyOf(1), AnyOf(4))), "any 4 needs 4"),
        (Named(("codex",)), "Agents cannot approve; the quorum names codex"),
        (Named(("zoe", "everbody")), "does not know everbody; invite them"),
    ],
)
def test_a_quorum_that_could_never_be_met_is_refused_at_creation(
    quorum: Quorum, sentence: str
) -> None:
    body = session_create(default_gate_quorum=quorum, max_participants=3)

    with expect_refusal(Reason.MALFORMED, sentence):
        when(Room(id="r"), ALICE, body, policy=KNOWING)


@proves("OPEN-15")
@pytest.mark.parametrize(
    "quorum",
    [AnyOf(3), Named(("zoe",)), Everyone(), Majority(), OfLabel("legal", 1), OfRole(R.ADMIN, 3)],
)
def test_a_quorum_that_could_be_met_some_day_is_accepted(quorum: Quorum) -> None:
    body = session_create(default_gate_quorum=quorum, max_participants=3)

    assert when(Room(id="r"), ALICE, body, policy=KNOWING)


@proves("OPEN-15")
def test_members_and_former_members_are_known_without_a_token() -> None:
    room = three_approvers(script_step(CAROL, SessionLeave()))
    names = session_config_update(default_gate_quorum=Named(("bob", "carol")))

    assert when(room, ALICE, names, policy=KNOWING)


@proves("OPEN-15")
def test_ids_are_not_checked_without_tokens() -> None:
    assert when(Room(id="r"), ALICE, session_create(default_gate_quorum=Named(("anybody",))))


@proves("OPEN-15")
def test_lowering_max_participants_below_the_quorum_is_refused() -> None:
    room = three_approvers(default_gate_quorum=AnyOf(3))

    with expect_refusal(Reason.MALFORMED, "any 3 needs 3 people, but max_participants is 2"):
        when(room, ALICE, session_config_update(max_participants=2))


# When members change


def notices(facts: CommandOutcome) -> list[tuple[str, str]]:
    """What the room is told, and about what."""
    failures = [relay.body for relay in relays_of(facts) if isinstance(relay.body, Failure)]
    return [(failure.related_to, failure.detail) for failure in failures]


@proves("OPEN-15", "OPEN-17")
@pytest.mark.parametrize("how", ["leaves", "removed", "demoted"])
def test_session_and_gate_say_what_can_no_longer_be_met_and_by_whom(how: str) -> None:
    room = asks(default_gate_quorum=AnyOf(3))
    gate = gate_on(room, "p").id
    assert (detail(room)["unmeetable"], detail(room)["gates"][0]["unmeetable"]) == ([], [])

    if how == "leaves":
        facts = when(room, BOB, SessionLeave())
    else:
        new = [R.DRIVER] if how == "demoted" else list[Role]()
        facts = when(room, ALICE, role_change(ALICE, BOB, [R.APPROVER], new))

    missing = "any 3 needs 1 more: only alice, carol can approve"
    assert notices(facts) == [
        (gate, f"The gate {gate} can no longer be met: {missing}"),
        ("r", f"The session's quorum can no longer be met: {missing}"),
    ]
    shown = detail(after(room, facts))
    assert (shown["unmeetable"], shown["gates"][0]["unmeetable"]) == ([missing], [missing])


@proves("OPEN-17")
def test_an_approval_that_stays_counted_keeps_the_gate_meetable() -> None:
    room = asks(default_gate_quorum=AnyOf(3))
    room = given(script_step(BOB, tool_approve(BOB, "p")), room=room)

    facts = when(room, BOB, SessionLeave())

    assert [about for about, _ in notices(facts)] == ["r"]


def test_people_who_could_not_vote_are_no_loss() -> None:
    room = asks(join_step(DAVE, R.DRIVER), default_gate_quorum=AnyOf(3))

    assert notices(when(room, DAVE, SessionLeave())) == []


@proves("OPEN-15")
def test_a_named_approver_who_is_not_a_member_is_named() -> None:
    room = asks(default_gate_quorum=Named(("bob", "zoe")))

    assert detail(room)["unmeetable"] == ["only zoe could complete bob,zoe"]
    assert "only zoe could complete bob,zoe" in gate_on(room, "p").message


def test_a_session_that_ended_lacks_nothing() -> None:
    room = given(
        script_step(ALICE, session_end()), room=three_approvers(default_gate_quorum=AnyOf(9))
    )

    assert detail(room)["unmeetable"] == []
