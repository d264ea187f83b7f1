"""Signing keys: which one signs, and every public half there was."""

import pytest

from accord.core.kernel.actor import TIMER_ACTOR, Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.people.context import CONTEXT
from accord.core.people.signing_keys import IdSecretChoose, KeyRotate, KeyRotated
from accord.core.people.state import SigningKey
from tests.core.people.scenario import BOB, FIRST, OLGA, OTTO, ROBOT, SECOND, given, then, when


@pytest.mark.parametrize("actor", [OLGA, TIMER_ACTOR], ids=lambda actor: actor.principal)
def test_the_log_knows_every_key_and_which_one_signs(actor: Actor) -> None:
    people = given(KeyRotated(key=FIRST))

    after = then(people, when(people, actor, KeyRotate(SECOND)))

    assert after.active == "K2"
    assert dict(after.keys) == {"K1": FIRST, "K2": SECOND}
    assert CONTEXT.knows_id(after, "K1", "")


def test_the_key_that_signs_already_is_no_news() -> None:
    assert when(given(KeyRotated(key=FIRST)), OLGA, KeyRotate(FIRST)) == []


def test_a_key_keeps_its_name() -> None:
    with pytest.raises(Refused) as no:
        when(given(KeyRotated(key=FIRST)), OLGA, KeyRotate(SigningKey("K1", SECOND.public)))

    assert no.value.reason is Reason.KEY_REUSED


@pytest.mark.parametrize("actor", [BOB, ROBOT, OTTO], ids=lambda actor: actor.principal)
def test_only_the_houses_operators_change_keys(actor: Actor) -> None:
    with pytest.raises(Refused) as no:
        when(given(), actor, KeyRotate(FIRST))

    assert no.value.reason is Reason.FORBIDDEN


def test_the_first_secret_for_message_ids_stays() -> None:
    people = then(given(), when(given(), TIMER_ACTOR, IdSecretChoose("first")))

    assert people.id_secret == "first"
    assert when(people, TIMER_ACTOR, IdSecretChoose("second")) == []


@pytest.mark.parametrize("actor", [BOB, ROBOT, OTTO], ids=lambda actor: actor.principal)
def test_only_the_server_and_its_operators_choose_the_secret(actor: Actor) -> None:
    with pytest.raises(Refused) as no:
        when(given(), actor, IdSecretChoose("mine"))

    assert no.value.reason is Reason.FORBIDDEN
