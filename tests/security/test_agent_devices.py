"""An agent's own device: enrolled by a person, renewed by proof, revoked with or without them."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.security.test_sign_in import SignedInDevice, bearer, get, new_key, post, sign_in


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all tests."""
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


def enrol(person: SignedInDevice, id: str, *roles: str) -> httpx.Response:
    return enrol_with_key(person, id, new_key()[1], *roles)


def enrol_with_key(person: SignedInDevice, id: str, public: str, *roles: str) -> httpx.Response:
    body = {"id": id, "roles": roles or ["driver"], "public_key": public}
    return post(person.house, "/sign-in/agents", body, **bearer(person.profile["token"]))


def agent_of(person: SignedInDevice, id: str) -> SignedInDevice:
    key, public = new_key()
    answer = enrol_with_key(person, id, public)
    assert answer.status_code == 201, answer.text
    return SignedInDevice(person.house, key, answer.json())


def whoami(house: ServerProcess, token: str) -> httpx.Response:
    return get(house, "/sign-in", **bearer(token))


def devices_of(person: SignedInDevice) -> list[dict[str, Any]]:
    answer = get(person.house, "/sign-in/devices", **bearer(person.profile["token"]))
    found: list[dict[str, Any]] = answer.json()["devices"]
    return found


def test_an_agent_has_a_token_of_its_own_and_renews_it_by_proof(house: ServerProcess) -> None:
    person = sign_in(house, "ann", "driver", "approver")
    agent = agent_of(person, "ann-claude")

    me = whoami(house, agent.profile["token"]).json()
    assert (me["id"], me["type"], me["roles"]) == ("ann-claude", "agent", ["driver"])
    renewed = agent.refresh(agent.proof())
    assert renewed.status_code == 200
    assert whoami(house, renewed.json()["token"]).json()["id"] == "ann-claude"
    listed = {each["principal"]: each for each in devices_of(person)}
    assert listed["ann-claude"]["type"] == "agent"
    assert listed["ann-claude"]["by"] == "ann"


def test_an_agent_cannot_enrol_an_agent_or_see_its_person_s_devices(house: ServerProcess) -> None:
    person = sign_in(house, "ben")
    agent = agent_of(person, "ben-claude")

    refused = enrol(agent, "ben-helper")

    assert refused.status_code == 403
    assert [each["principal"] for each in devices_of(agent)] == ["ben-claude"]
    own = person.profile["device"]
    answer = httpx.delete(
        f"{house.url}/sign-in/devices/{own}",
        headers=bearer(agent.profile["token"]),
        trust_env=False,
    )
    assert answer.status_code == 404


def test_an_agent_gets_at_most_its_person_s_roles(house: ServerProcess) -> None:
    person = sign_in(house, "cleo")

    for role in ("admin", "approver", "adversary"):
        assert enrol(person, "cleo-codex", role).status_code == 403
    assert enrol(sign_in(house, "mallory"), "cleo").status_code == 403


def test_a_bad_key_is_refused_and_enrols_nothing(house: ServerProcess) -> None:
    person = sign_in(house, "dora")

    refused = enrol_with_key(person, "dora-codex", "AAAA")

    assert refused.status_code == 400
    assert [each["principal"] for each in devices_of(person)] == ["dora"]


def test_its_person_revokes_the_agent_s_device(house: ServerProcess) -> None:
    person = sign_in(house, "eve")
    agent = agent_of(person, "eve-gemini")

    answer = httpx.delete(
        f"{house.url}/sign-in/devices/{agent.profile['device']}",
        headers=bearer(person.profile["token"]),
        trust_env=False,
    )

    assert answer.status_code == 204
    assert whoami(house, agent.profile["token"]).status_code == 401
    assert agent.refresh(agent.proof()).status_code == 401


def test_with_a_removed_person_their_agents_are_signed_out(house: ServerProcess) -> None:
    agent = agent_of(sign_in(house, "finn"), "finn-claude")

    removal = house.admin_request("DELETE", "/admin/people/finn")

    assert removal["devices"] == 2
    assert whoami(house, agent.profile["token"]).status_code == 401
    assert agent.refresh(agent.proof()).status_code == 401
