"""Agents of people: enrolled with at most their person's roles, revoked with them."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor, CredentialRights
from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.people.agent_enrolment import AgentEnrol, AgentEnrolled
from accord.core.people.devices import (
    DEVICE_TOKEN_LIFE_S,
    MAX_DEVICES_PER_PRINCIPAL,
    DeviceAdded,
    DeviceRevoke,
    DeviceRevoked,
)
from accord.core.people.removal import PersonRemove, PersonRemoved
from accord.core.people.state import Device
from accord.core.people.tokens import TokenIssued, TokenRevoked
from tests.core.people.scenario import ANYBODY, BOB, OLGA, OTTO, ROBOT, T0, given, then, token, when

CAROL = Actor("carol", Kind.HUMAN, credential=CredentialRights(frozenset({Role.DRIVER})))
WATCHER = Actor("wendy", Kind.HUMAN, credential=CredentialRights(frozenset({Role.OBSERVER})))
CLAUDE = Actor("bob-claude", Kind.AGENT, credential=CredentialRights(frozenset({Role.DRIVER})))


def enrol(id: str = "bob-claude", **changes: Any) -> AgentEnrol:
    fields: dict[str, Any] = {
        "id": id,
        "roles": frozenset({Role.DRIVER}),
        "public_key": "key",
        "device": "D1",
        "jti": "J1",
        "key": "K1",
        "now": T0,
        "address": "127.0.0.1:7420",
    }
    return AgentEnrol(**{**fields, **changes})


def enrolled(**changes: Any) -> list[Event]:
    return when(given(), BOB, enrol(**changes))


def refusal(*events: Event, by: Actor = BOB, body: Any) -> Refused:
    with pytest.raises(Refused) as no:
        when(given(*events), by, body)
    return no.value


def test_a_person_enrols_an_agent_which_gets_a_short_token_of_its_own() -> None:
    device = Device(
        id="D1",
        principal="bob-claude",
        roles=frozenset({Role.DRIVER}),
        added_at=T0,
        public_key="key",
        address="127.0.0.1:7420",
        kind=Kind.AGENT,
        by="bob",
    )
    issued = token(
        id="bob-claude",
        kind=Kind.AGENT,
        expires_at=T0 + DEVICE_TOKEN_LIFE_S * 1000,
        device="D1",
    )

    assert enrolled() == [
        AgentEnrolled(id="bob-claude", workspace="default", by="bob"),
        DeviceAdded(device=device),
        TokenIssued(token=issued),
    ]
    assert given(*enrolled()).kind_of("default", "bob-claude") is Kind.AGENT


@pytest.mark.parametrize("actor", [ROBOT, WATCHER, ANYBODY, CLAUDE])
def test_agents_observers_and_unknown_roles_enrol_no_agent(actor: Actor) -> None:
    assert refusal(by=actor, body=enrol()).reason is Reason.FORBIDDEN


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.DRIVER, Role.APPROVER}))
def test_an_agent_gets_no_role_that_its_person_lacks(role: Role) -> None:
    assert refusal(body=enrol(roles=frozenset({role}))).reason is Reason.FORBIDDEN


def test_an_operator_may_give_every_role_but_admin() -> None:
    allowed = frozenset(Role) - {Role.ADMIN}
    assert when(given(), OLGA, enrol(roles=allowed))
    assert refusal(by=OLGA, body=enrol(roles=frozenset(Role))).reason is Reason.FORBIDDEN


@pytest.mark.parametrize("bad", [enrol(roles=frozenset()), enrol(id="system"), enrol(id=" x")])
def test_an_agent_needs_a_role_and_a_valid_id(bad: AgentEnrol) -> None:
    assert refusal(body=bad).reason is Reason.MALFORMED


def test_a_person_s_id_is_never_an_agent_s() -> None:
    known = TokenIssued(token=token(id="alice"))
    assert "is a person" in refusal(known, body=enrol("alice")).detail


def test_only_its_person_and_operators_give_an_agent_another_key() -> None:
    before = enrolled()
    again = enrol(device="D2", jti="J2")

    added = when(given(*before), BOB, again)
    assert [type(event) for event in added] == [DeviceAdded, TokenIssued]
    assert when(given(*before), OLGA, again)
    no = refusal(*before, by=CAROL, body=again)
    assert (no.reason, no.detail) == (
        Reason.FORBIDDEN,
        "The agent bob-claude belongs to bob; choose another id",
    )


def test_an_agent_with_an_operator_s_token_is_no_one_else_s() -> None:
    known = TokenIssued(token=token(id="robot", kind=Kind.AGENT))
    assert "has a token from an operator" in refusal(known, body=enrol("robot")).detail


def test_an_id_of_another_workspace_is_free() -> None:
    assert when(given(*enrolled()), OTTO, enrol(device="D2", jti="J2"))


def test_ids_of_devices_and_tokens_are_used_once() -> None:
    for body in (enrol("x", jti="J2"), enrol("x", device="D2")):
        assert refusal(*enrolled(), body=body).reason is Reason.KEY_REUSED


def test_an_agent_has_a_limited_number_of_devices() -> None:
    (_, added, issued) = enrolled()
    assert isinstance(added, DeviceAdded)
    many = [
        DeviceAdded(device=Device(**{**fields_of(added.device), "id": f"D{n}"}))
        for n in range(MAX_DEVICES_PER_PRINCIPAL)
    ]
    first = AgentEnrolled(id="bob-claude", workspace="default", by="bob")
    no = refusal(first, issued, *many, body=enrol(device="E1", jti="J2"))
    assert no.reason is Reason.TOO_MANY


def fields_of(device: Device) -> dict[str, Any]:
    return {name: getattr(device, name) for name in device.__struct_fields__}


@pytest.mark.parametrize("actor", [BOB, OLGA, CLAUDE])
def test_its_person_an_operator_and_the_agent_revoke_the_key(actor: Actor) -> None:
    ended = when(given(*enrolled()), actor, DeviceRevoke("D1"))

    assert [type(event) for event in ended] == [TokenRevoked, DeviceRevoked]
    assert not then(given(*enrolled()), ended).devices


@pytest.mark.parametrize("actor", [CAROL, OTTO, ROBOT])
def test_for_all_others_there_is_no_such_device(actor: Actor) -> None:
    assert refusal(*enrolled(), by=actor, body=DeviceRevoke("D1")).reason is Reason.NOT_FOUND


def test_with_a_person_their_agents_keys_end() -> None:
    of_carol = when(given(), CAROL, enrol("carol-codex", device="D2", jti="J2"))
    people = given(*enrolled(), *of_carol)

    ended = when(people, OLGA, PersonRemove(id="bob", workspace="default"))

    assert [type(event) for event in ended] == [TokenRevoked, DeviceRevoked, PersonRemoved]
    assert set(then(people, ended).devices) == {"D2"}
