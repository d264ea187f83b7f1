"""Commits of a repository: each is linked once, to what followed the link before it."""

from itertools import pairwise

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from msgspec.structs import replace

from accord.core.dialects.stored_records import decode_record, encode_record
from accord.core.kernel.actor import TIMER_ACTOR, Actor
from accord.core.kernel.context import Command, fold
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.provenance.commit_links import (
    CONTEXT,
    MAX_BOUND_SESSIONS,
    MAX_LEDGERS,
    CommitLinked,
    CommitRecord,
    LedgerPlace,
    LedgerPlaced,
    LedgerRemove,
    LedgerRemoved,
    Repo,
    SessionBind,
    SessionBound,
    SessionUnbind,
    SessionUnbound,
    link_id,
)
from accord.core.provenance.decision_commit import DecisionCommit
from tests.core.provenance.decision_samples import DECISION

BRIDGE = Actor(principal="system:bridge", kind=Kind.SYSTEM)
ALICE = Actor(principal="alice", kind=Kind.HUMAN)
STREAM = "repo/r1"
T0 = 1_750_000_000_000


def record(event: Event) -> Record:
    return Record(STREAM, 1, 0, "R1", T0, "system:bridge", "M1", "", "", event)


def repo(*events: Event) -> Repo:
    """The repository after these events, each through its stored bytes."""
    stored = (
        decode_record(STREAM, 1, encode_record(record(event)).body).record for event in events
    )
    return fold(CONTEXT, CONTEXT.initial_state(STREAM), stored)


def when(state: Repo, body: Body, actor: Actor = BRIDGE) -> list[Event]:
    ask = Command(Message("M1", "", "r1", actor.principal, body), actor, T0, {}, None)
    CONTEXT.admit(state, ask)
    return [f for f in CONTEXT.decide[type(body)](state, ask, body) if isinstance(f, Event)]


def decision(since: int, until: int, session: str = "s1", fork: str = "") -> DecisionCommit:
    return replace(DECISION, pvp_session=session, fork=fork, since=since, until=until)


def test_a_commit_is_linked_to_what_followed_the_last_link() -> None:
    state = repo(CommitLinked(decision=decision(0, 5)))

    (linked,) = when(state, CommitRecord(decision(5, 9)))

    assert linked == CommitLinked(decision=decision(5, 9))
    assert repo(CommitLinked(decision=decision(0, 5)), linked).since("s1") == 9


def test_a_stretch_that_another_commit_took_meanwhile_is_refused() -> None:
    state = repo(CommitLinked(decision=decision(0, 5)))

    with pytest.raises(Refused) as no:
        when(state, CommitRecord(decision(0, 9)))

    assert no.value.reason is Reason.WRONG_STATE
    assert no.value.details == {"linked": 5}


def test_a_rewritten_commit_carries_its_decision_again_and_moves_nothing() -> None:
    events = [CommitLinked(decision=decision(0, 5)), CommitLinked(decision=decision(5, 9))]

    (again,) = when(repo(*events), CommitRecord(decision(0, 5)))

    assert repo(*events, again) == repo(*events)


def test_a_fork_has_commits_of_its_own() -> None:
    state = repo(CommitLinked(decision=decision(0, 7, fork="try")))

    assert (state.since("s1", "try"), state.since("s1"), state.since("s2", "try")) == (7, 0, 0)


@examples(st.lists(st.integers(0, 50), min_size=1))
def test_no_stretch_is_covered_twice_and_none_is_left_out(ends: list[int]) -> None:
    state, taken = repo(), [0]
    for end in ends:
        made = decision(state.since("s1"), max(end, state.since("s1")))
        (event,) = when(state, CommitRecord(made))
        state = fold(CONTEXT, state, [record(event)])
        taken.append(made.until)

    assert all(one <= other for one, other in pairwise(taken))
    assert state.since("s1") == max(ends)


def test_a_session_is_bound_once_and_unbound_once() -> None:
    bound = SessionBound(session="s1")

    assert when(repo(), SessionBind("s1")) == [bound]
    assert when(repo(bound), SessionBind("s1")) == []
    assert when(repo(bound), SessionUnbind("s1")) == [SessionUnbound(session="s1")]
    assert when(repo(), SessionUnbind("s1")) == []
    assert repo(bound, SessionBound(session="s2"), SessionUnbound(session="s1")).bound == ("s2",)


def test_there_is_an_end_to_the_sessions_of_a_repository() -> None:
    full = repo(*(SessionBound(session=f"s{n}") for n in range(MAX_BOUND_SESSIONS)))

    with pytest.raises(Refused) as no:
        when(full, SessionBind("one more"))

    assert no.value.reason is Reason.FULL


@pytest.mark.parametrize("body", [CommitRecord(decision(0, 1)), SessionBind("s1")])
def test_nobody_but_the_server_records_a_commit(body: Body) -> None:
    with pytest.raises(Refused) as no:
        when(repo(), body, ALICE)

    assert no.value.reason is Reason.FORBIDDEN


def test_where_a_pact_lies_is_recorded_once_and_removed_when_somebody_says_so() -> None:
    one, other = LedgerPlaced(path="/w/0/.pact"), LedgerPlaced(path="/w/1/.pact")
    away = LedgerRemoved(path="/w/0/.pact")

    assert when(repo(), LedgerPlace("/w/0/.pact")) == [one]
    assert when(repo(one), LedgerPlace("/w/0/.pact")) == []
    assert repo(one, other, one).ledgers == ("/w/1/.pact", "/w/0/.pact")
    assert when(repo(one, other), LedgerRemove("/w/0/.pact")) == [away]
    assert when(repo(other), LedgerRemove("/w/0/.pact")) == []
    assert repo(one, other, away).ledgers == ("/w/1/.pact",)


def test_no_place_of_a_pact_gives_way_to_another() -> None:
    places = [LedgerPlaced(path=f"/w/{n}/.pact") for n in range(MAX_LEDGERS + 1)]
    full = repo(*places[:-1])

    with pytest.raises(Refused, match="accord git places") as no:
        when(full, LedgerPlace(places[-1].path))
    assert no.value.reason is Reason.FULL
    assert when(full, LedgerPlace(places[0].path)) == []
    assert repo(*places).ledgers == tuple(each.path for each in places[1:]), "as older servers did"


def test_time_changes_nothing() -> None:
    state = repo(SessionBound(session="s1"))

    assert when(state, CONTEXT.tick_body, TIMER_ACTOR) == []
    assert list(CONTEXT.deadlines(state, None)) == []
    assert not CONTEXT.knows_id(state, link_id("a" * 40), "alice")
