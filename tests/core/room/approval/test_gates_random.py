"""Gates under any sequence of votes, joins, leaves, promotions and demotions."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import AnyOf, Everyone, Majority, Named, OfRole, Quorum
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room.approval.gate_timeouts import GateTimedOut
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.votes import GateApprove, GateApproved, GatePassed, GateReject
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.state import Presence, Room
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    CommandOutcome,
    after,
    create_step,
    gate_approve,
    gate_reject,
    given,
    has_open_gate,
    join_step,
    presence_step,
    role_change,
    script_step,
    session_join,
    tool_propose,
    types_of,
    when,
    with_credential,
)
from tests.spec import proves

# Written out again, not imported: the roles of PVP 7.2 that may approve.
APPROVING = {"navigator", "adversary", "approver", "admin"}
ROLES = [Role.APPROVER, Role.NAVIGATOR, Role.DRIVER, Role.OBSERVER]
QUORUMS: list[Quorum] = [
    AnyOf(1),
    AnyOf(2),
    AnyOf(3),
    Everyone(),
    Majority(),
    OfRole(Role.APPROVER, 1),
    OfRole(Role.APPROVER, 2),
    Named(("bob", "carol")),
]

Move = Callable[[Room], tuple[Actor, Body]]


def vote(who: Actor) -> Move:
    return lambda room: (who, gate_approve(who, "p"))


def leave(who: Actor) -> Move:
    return lambda room: (who, SessionLeave())


def join(who: Actor, role: Role) -> Move:
    return lambda room: (with_credential(who, role), session_join(who, role))


def become(who: Actor, role: Role) -> Move:
    def move(room: Room) -> tuple[Actor, Body]:
        member = room.members.get(who.principal)
        return ALICE, role_change(ALICE, who, member.roles if member else (), [role])

    return move


def turn(who: Actor, status: Presence) -> Move:
    return lambda room: presence_step(who, status)[:2]


MOVES: list[Move] = [
    *(vote(who) for who in (ALICE, BOB, CAROL, CODEX) for _ in range(3)),
    *(leave(who) for who in (BOB, CAROL)),
    *(join(who, role) for who in (BOB, CAROL) for role in ROLES),
    *(become(who, role) for who in (BOB, CAROL) for role in ROLES),
    *(turn(who, status) for who in (BOB, CAROL) for status in Presence),
]
moves = st.lists(st.sampled_from(MOVES), max_size=25)


def start(quorum: Quorum) -> Room:
    """Alice, Bob and Carol may approve; an agent with that right is there too."""
    return given(
        create_step(by=ALICE, default_gate_quorum=quorum),
        join_step(BOB, Role.APPROVER),
        join_step(CAROL, Role.APPROVER),
        join_step(CODEX, Role.NAVIGATOR),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
    )


# What each person's standing is, told from what they did alone


@dataclass
class Person:
    roles: set[str]
    approved: bool = False
    asked: bool = True  # on the list that `all` and `majority` count

    def holds(self, roles: set[str], wanted: set[str]) -> None:
        """Whoever may not approve any more, or lacks what was asked for, has not approved."""
        lost = self.roles - roles
        self.roles = roles
        if not roles & APPROVING:
            self.approved = self.asked = False
        if lost & wanted:
            self.approved = False

    def goes(self) -> None:
        """A vote stays behind; an empty chair does not."""
        self.asked = self.asked and self.approved


@dataclass
class Ledger:
    quorum: Quorum
    people: dict[str, Person] = field(
        default_factory=lambda: {
            "alice": Person({"admin"}),
            "bob": Person({"approver"}),
            "carol": Person({"approver"}),
        }
    )

    @property
    def wanted(self) -> set[str]:
        return {self.quorum.role.value} if isinstance(self.quorum, OfRole) else set()

    def notes(self, actor: Actor, body: Body, room: Room) -> None:
        if isinstance(body, GateApprove):
            self.people[actor.principal].approved = True
        if isinstance(body, SessionLeave):
            self.people[actor.principal].goes()
        for seat, person in self.people.items():
            if member := room.members.get(seat):
                person.holds({role.value for role in member.roles}, self.wanted)

    def enough(self) -> bool:
        yes = {seat for seat, person in self.people.items() if person.approved}
        asked = {seat for seat, person in self.people.items() if person.asked}
        match self.quorum:
            case AnyOf(count):
                return len(yes) >= count
            case OfRole(role, count):
                return sum(role.value in self.people[seat].roles for seat in yes) >= count
            case Named(participants):
                return set(participants) <= yes
            case Everyone():
                return bool(asked) and asked <= yes
            case Majority():
                return 2 * len(asked & yes) > len(asked)
            case _:
                raise AssertionError(self.quorum)


def tried(room: Room, actor: Actor, body: Body) -> CommandOutcome | None:
    try:
        return when(room, actor, body)
    except Refused:
        return None


@proves("OPEN-12", "OPEN-16", "OPEN-17", "PVP-14-1", "PVP-14.3-1")
@drawn(quorum=st.sampled_from(QUORUMS), script=moves)
@settings(max_examples=150, deadline=None)
def test_a_gate_passes_with_the_vote_that_is_enough_and_never_otherwise(
    quorum: Quorum, script: list[Move]
) -> None:
    room, ledger = start(quorum), Ledger(quorum)
    for move in script:
        actor, body = move(room)
        facts = tried(room, actor, body)
        if facts is None:
            continue
        room = after(room, facts)
        ledger.notes(actor, body, room)
        fresh_human_act = isinstance(body, GateApprove) and actor.kind is Kind.HUMAN
        assert (GatePassed in types_of(facts)) is (fresh_human_act and ledger.enough())
        if GatePassed in types_of(facts):
            break
    else:
        assert has_open_gate(room, "p")


@proves("PVP-14.3-2", "OPEN-24", "OPEN-25")
@drawn(quorum=st.sampled_from(QUORUMS), before=moves, afterwards=moves)
@settings(max_examples=60, deadline=None)
def test_a_rejection_is_final_whatever_happens_before_and_afterwards(
    quorum: Quorum, before: list[Move], afterwards: list[Move]
) -> None:
    room = start(quorum)
    for move in [*before, lambda room: (ALICE, gate_reject(ALICE, "p")), *afterwards]:
        was_open = has_open_gate(room, "p")
        actor, body = move(room)
        facts = tried(room, actor, body)
        if facts is None:
            continue
        room = after(room, facts)
        if not was_open:
            assert not {GateApproved, GatePassed, ToolCleared, GateTimedOut} & set(types_of(facts))
        if isinstance(body, GateReject):
            assert "p" not in room.tools
    assert not has_open_gate(room, "p")
