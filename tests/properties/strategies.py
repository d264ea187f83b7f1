"""Who talks where, and what is drawn of it."""

from hypothesis import strategies as st

from accord.core.kernel.actor import Actor, CredentialRights
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
from accord.core.kernel.role_permissions import Capability, Kind, Role
from accord.core.room.room_settings import AbsencePolicy, Category
from tests.helpers.room.scenario import ALICE, BOB, CAROL, CLAUDE, CODEX

ROOMS = ("r1", "r2", "r3")
# Dave shows a credential, the others are taken on trust.
DAVE = Actor(
    "dave",
    Kind.HUMAN,
    credential=CredentialRights(
        frozenset({Role.APPROVER, Role.DRIVER}),
        frozenset({Capability.APPROVE}),
        frozenset({"security"}),
    ),
)
HUMANS = (ALICE, BOB, CAROL, DAVE)
AGENTS = (CLAUDE, CODEX)
EVERYBODY = (*HUMANS, *AGENTS)
UNKNOWN_IDS = ("never said", "r1", "alice", "x" * 128)

people = st.sampled_from(EVERYBODY)
# Mostly one room, so that much happens in it.
rooms = st.sampled_from((*ROOMS[:1] * 5, *ROOMS))
indexes = st.integers(0, 5)
misbehaves = st.sampled_from([False, False, False, False, True])
roles = st.lists(st.sampled_from(Role), max_size=2, unique=True).map(tuple)
plain_quorums: st.SearchStrategy[Quorum] = st.one_of(
    st.integers(1, 3).map(AnyOf),
    st.just(Everyone()),
    st.just(Majority()),
    st.builds(OfRole, st.sampled_from((Role.NAVIGATOR, Role.APPROVER, Role.ADMIN)), st.just(1)),
    st.builds(OfLabel, st.just("security"), st.just(1)),
    st.lists(st.sampled_from([who.principal for who in EVERYBODY]), min_size=1, max_size=2).map(
        lambda seats: Named(tuple(seats))
    ),
)
quorums = st.one_of(
    plain_quorums,
    st.lists(plain_quorums, min_size=1, max_size=2).map(lambda rules: AllOf(tuple(rules))),
)
config_changes = st.one_of(
    st.builds(lambda quorum: {"default_gate_quorum": quorum}, quorums),
    st.sampled_from(AbsencePolicy).map(lambda policy: {"on_participant_timeout": policy}),
    st.lists(st.sampled_from(Category), max_size=3, unique=True).map(
        lambda listed: {"require_approval_for": listed}
    ),
    st.integers(1, 6).map(lambda most: {"max_participants": most}),
    st.sampled_from([{"no_such_rule": 1}, {"idle_timeout_seconds": -1}]),
)
