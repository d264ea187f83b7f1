"""Tokens: given out, made void, forgotten once they have expired."""

from typing import Any

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.kernel.actor import TIMER_ACTOR, Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.people.context import CONTEXT
from accord.core.people.state import CLOCK_SKEW_MS, SWEEP_INTERVAL_MS, swept_at
from accord.core.people.tokens import (
    TokenIssue,
    TokenIssued,
    TokenRevoke,
    TokenRevoked,
    TokensExpired,
)
from tests.core.people.scenario import (
    ANYBODY,
    BOB,
    HOUR,
    OLGA,
    OTTO,
    ROBOT,
    T0,
    given,
    then,
    tick,
    token,
    when,
)
from tests.spec import proves


def test_what_was_issued_is_known_without_the_token_itself() -> None:
    facts = when(given(), OLGA, TokenIssue(token()))

    assert facts == [TokenIssued(token=token())]
    assert dict(then(given(), facts).tokens) == {"J1": token()}


def test_saying_the_same_again_changes_nothing() -> None:
    people = given(TokenIssued(token=token()))

    assert when(people, OLGA, TokenIssue(token())) == []


@pytest.mark.parametrize(
    "before", [TokenIssued(token=token(id="carol")), TokenRevoked(jti="J1", expires_at=None)]
)
def test_an_id_is_used_for_one_token_only(before: TokenIssued | TokenRevoked) -> None:
    with pytest.raises(Refused) as no:
        when(given(before), OLGA, TokenIssue(token()))

    assert no.value.reason is Reason.KEY_REUSED


@proves("OPEN-11")
@pytest.mark.parametrize(
    "name", ["system", "system:timer", "System", " system ", "ｓｙｓｔｅｍ", " a", "a ", "", "a\nb"]
)
def test_nobody_gets_a_token_as_the_server(name: str) -> None:
    with pytest.raises(Refused) as no:
        when(given(), OLGA, TokenIssue(token(id=name)))

    assert no.value.reason is Reason.MALFORMED


@pytest.mark.parametrize("wrong", [{"kind": Kind.SYSTEM}, {"expires_at": T0}])
def test_a_token_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused) as no:
        when(given(), OLGA, TokenIssue(token(**wrong)))

    assert no.value.reason is Reason.MALFORMED


@proves("OPEN-122")
def test_a_revoked_token_is_void_until_it_would_have_ended() -> None:
    people = given(TokenIssued(token=token()))

    facts = when(people, OLGA, TokenRevoke("J1", "laptop lost"))

    assert facts == [TokenRevoked(jti="J1", reason="laptop lost", expires_at=T0 + 12 * HOUR)]
    assert dict(then(people, facts).revoked) == {"J1": T0 + 12 * HOUR}


def test_a_token_nobody_remembers_can_be_revoked_and_stays_so() -> None:
    facts = when(given(), OLGA, TokenRevoke("lost"))
    people = then(given(), facts)

    assert facts == [TokenRevoked(jti="lost")]
    assert dict(people.revoked) == {"lost": None}
    assert list(CONTEXT.deadlines(people, None)) == []
    assert tick(people, T0 + 10_000 * HOUR) == []


def test_revoking_twice_is_revoking_once() -> None:
    assert when(given(TokenRevoked(jti="J1")), OLGA, TokenRevoke("J1")) == []


@pytest.mark.parametrize("actor", [BOB, ROBOT, ANYBODY], ids=lambda actor: actor.principal)
@pytest.mark.parametrize("body", [TokenIssue(token()), TokenRevoke("J1"), CONTEXT.tick_body])
def test_only_operators_and_the_server_have_a_say(
    actor: Actor, body: TokenIssue | TokenRevoke
) -> None:
    with pytest.raises(Refused) as no:
        when(given(), actor, body)

    assert no.value.reason is Reason.FORBIDDEN


def test_the_server_itself_may_issue() -> None:
    assert when(given(), TIMER_ACTOR, TokenIssue(token())) == [TokenIssued(token=token())]


def test_operators_look_after_their_own_workspace() -> None:
    theirs = token(workspace="elsewhere")
    people = given(TokenIssued(token=theirs), TokenIssued(token=token("J2")))

    assert when(given(), OTTO, TokenIssue(theirs)) == [TokenIssued(token=theirs)]
    assert [each.jti for each in people.tokens_visible_to(OTTO)] == ["J1"]
    assert [each.jti for each in people.tokens_visible_to(OLGA)] == ["J1", "J2"]


def test_operators_issue_nothing_for_another_workspace() -> None:
    with pytest.raises(Refused) as no:
        when(given(), OTTO, TokenIssue(token()))

    assert no.value.reason is Reason.FORBIDDEN


@pytest.mark.parametrize("jti", ["J1", "unheard-of"])
def test_of_another_workspace_one_learns_nothing(jti: str) -> None:
    with pytest.raises(Refused) as no:
        when(given(TokenIssued(token=token())), OTTO, TokenRevoke(jti))

    assert no.value.reason is Reason.NOT_FOUND


def test_what_has_expired_is_forgotten_at_the_next_sweep() -> None:
    people = given(
        TokenIssued(token=token()),
        TokenRevoked(jti="J1", expires_at=token().expires_at),
        TokenIssued(token=token("J2", expires_at=T0 + 48 * HOUR)),
    )
    soonest = min(CONTEXT.deadlines(people, None))

    assert tick(people, soonest - 1) == []
    facts = tick(people, soonest)
    assert facts == [TokensExpired(jtis=("J1",))]
    after = then(people, facts)
    assert (list(after.tokens), list(after.revoked)) == (["J2"], [])
    assert min(CONTEXT.deadlines(after, None)) > soonest


@proves("OPEN-122")
@for_all(st.integers(min_value=0, max_value=2**44))
def test_a_revocation_outlives_the_token_by_more_than_the_skew(end: int) -> None:
    assert end + CLOCK_SKEW_MS < swept_at(end) <= end + CLOCK_SKEW_MS + SWEEP_INTERVAL_MS
    assert swept_at(end) % SWEEP_INTERVAL_MS == 0


def test_a_sweep_that_another_server_did_first_folds_all_the_same() -> None:
    people = given(TokensExpired(jtis=("never heard of",)))

    assert people == given()


def test_the_state_survives_being_stored() -> None:
    people = given(TokenIssued(token=token()), TokenRevoked(jti="lost"))

    assert msgspec.json.decode(msgspec.json.encode(people), type=CONTEXT.state_type) == people


def test_the_state_vouches_for_its_tokens() -> None:
    people = given(TokenIssued(token=token()))

    assert CONTEXT.knows_id(people, "J1", "")
    assert not CONTEXT.knows_id(people, "J2", "")


@pytest.mark.parametrize(
    ("change", "at", "holds"),
    [
        ({}, T0, True),
        ({}, T0 + 13 * HOUR, False),
        ({"id": "carol"}, T0, False),
        ({"workspace": "elsewhere"}, T0, False),
    ],
    ids=["valid", "expired", "of another", "for another workspace"],
)
def test_a_valid_token_is_a_credential(change: dict[str, Any], at: int, holds: bool) -> None:
    people = given(TokenIssued(token=token(**change)))

    assert people.has_credential("default", "alice", at) is holds
    revoked = given(TokenIssued(token=token(**change)), TokenRevoked(jti="J1"))
    assert not revoked.has_credential("default", "alice", at)


def test_the_directory_knows_who_ever_had_a_token_and_of_which_kind() -> None:
    issued = token()
    people = given(TokenIssued(token=issued))

    assert people.kind_of(issued.workspace, issued.id) is issued.kind
    assert people.kind_of("elsewhere", issued.id) is None
    assert people.kind_of(issued.workspace, "a stranger") is None
