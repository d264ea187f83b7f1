"""Signed policies: who signs, what counts, and how many there may be."""

from hashlib import sha256

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.people import signed_policies
from accord.core.people.signed_policies import PolicySign
from tests.core.people.scenario import BOB, OLGA, OTTO, ROBOT, T0, given, then, when

TEXT = "version = 1\n"


def sign(text: str = TEXT, repository: str = "repo", workspace: str = "default") -> PolicySign:
    digest = sha256(text.encode()).hexdigest()
    return PolicySign(repository=repository, workspace=workspace, digest=digest, text=text)


def test_the_newest_signed_text_of_a_repository_counts() -> None:
    people = given()
    for text in (TEXT, TEXT + "# newer\n"):
        people = then(people, when(people, OLGA, sign(text)))

    signed = people.policy_of("default", "repo")

    assert signed is not None
    assert (signed.text, signed.by, signed.at) == (TEXT + "# newer\n", "olga", T0)
    assert people.policy_of("default", "other") is None
    assert people.policy_of("elsewhere", "repo") is None


@pytest.mark.parametrize("actor", [BOB, ROBOT, OTTO], ids=lambda who: who.principal)
def test_only_a_person_with_an_admin_token_of_the_workspace_signs(actor: Actor) -> None:
    with pytest.raises(Refused) as refused:
        when(given(), actor, sign())

    assert refused.value.reason is Reason.FORBIDDEN


def test_the_digest_has_to_be_that_of_the_text() -> None:
    body = PolicySign(repository="repo", workspace="default", digest="0" * 64, text=TEXT)

    with pytest.raises(Refused, match="digest"):
        when(given(), OLGA, body)


def test_a_server_keeps_so_many_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_policies, "MAX_POLICIES", 1)
    people = given()
    people = then(people, when(people, OLGA, sign()))

    with pytest.raises(Refused, match="most"):
        when(people, OLGA, sign(repository="other"))
    assert when(people, OLGA, sign(TEXT + "\n"))
