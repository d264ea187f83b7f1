"""Agents of people: a human gives an agent a device key of its own, and can take it back."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body, Instant
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission, Role, Roles

from .devices import MAX_DEVICES_PER_PRINCIPAL, DeviceAdded, token_for
from .state import Device, Id, People, is_principal_id, known_key
from .tokens import TokenIssued


class AgentEnrol(Body, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Register a device key for an agent; `now` is the wall clock, `key` the server's signing key.

    The agent gets `roles`, which its person must have too. `supervises`: the key is not the agent's
    own but that of the program which holds its terminal.
    """

    type = "agent.enrol"
    needs = Permission.ENTER

    id: Id
    roles: Roles
    public_key: Annotated[str, Meta(min_length=1, max_length=64)]
    device: Id
    jti: Id
    key: Id
    now: Instant
    name: Annotated[str, Meta(max_length=128)] = ""
    address: Annotated[str, Meta(max_length=512)] = ""
    supervises: bool = False


class AgentEnrolled(Event, frozen=True, kw_only=True, gc=False):
    """A person gave an agent its first device key; only that person and operators give it more."""

    name = "agent.enrolled"

    id: str
    workspace: str
    by: str


def enrol_agent(people: People, command: Command, body: AgentEnrol) -> Iterator[EventOrEffect]:
    """Add a device of the agent and give it its first token."""
    actor = command.actor
    ensure_may_enrol(actor, body.roles)
    if not is_principal_id(body.id):
        raise Refused(Reason.MALFORMED, f"{body.id!r} is not a valid id for an agent")
    ensure_may_use_id(people, actor, body.id)
    who = (actor.workspace, body.id)
    owned = [each for each in people.devices.values() if (each.workspace, each.principal) == who]
    if len(owned) >= MAX_DEVICES_PER_PRINCIPAL:
        raise Refused(Reason.TOO_MANY, f"{body.id} has {len(owned)} devices; revoke some first")
    if body.device in people.devices or body.jti in people.tokens:
        raise Refused(Reason.KEY_REUSED, "The id of the device or its token is already in use")
    device = Device(
        id=body.device,
        principal=body.id,
        roles=body.roles,
        added_at=body.now,
        workspace=actor.workspace,
        name=body.name,
        public_key=body.public_key,
        address=body.address,
        kind=Kind.AGENT,
        by=actor.principal,
        supervises=body.supervises,
    )
    if known_key(*who) not in people.known:
        yield AgentEnrolled(id=body.id, workspace=actor.workspace, by=actor.principal)
    yield DeviceAdded(device=device)
    yield TokenIssued(token=token_for(device, body.jti, body.key, body.now))


def ensure_may_enrol(actor: Actor, roles: Roles) -> None:
    """Refuse all but humans with a role of their own, and roles that they do not have."""
    own = actor.credential.roles if actor.credential else frozenset[Role]()
    if actor.kind is not Kind.HUMAN or not own - {Role.OBSERVER}:
        detail = "Only a person with a role other than observer may enrol an agent"
        raise Refused(Reason.FORBIDDEN, detail)
    if not roles:
        raise Refused(Reason.MALFORMED, "Name at least one role for the agent")
    if Role.ADMIN in roles:
        raise Refused(Reason.FORBIDDEN, "An agent cannot be an admin; choose another role")
    beyond = roles - (frozenset(Role) if actor.is_operator else own)
    if beyond:
        detail = f"You do not have the roles {', '.join(sorted(beyond))}, so no agent of yours can"
        raise Refused(Reason.FORBIDDEN, detail)


def ensure_may_use_id(people: People, actor: Actor, id: str) -> None:
    """Refuse the id of a person, and that of an agent of another person."""
    known = people.kind_of(actor.workspace, id)
    if known is None:
        return
    if known is not Kind.AGENT:
        raise Refused(Reason.FORBIDDEN, f"{id} is a person; choose another id for the agent")
    owner = people.enrolled.get(known_key(actor.workspace, id), "")
    if owner != actor.principal and not actor.is_operator:
        whose = f"belongs to {owner}" if owner else "has a token from an operator"
        raise Refused(Reason.FORBIDDEN, f"The agent {id} {whose}; choose another id")


def on_enrolled(people: People, event: AgentEnrolled, record: Record) -> People:
    key = known_key(event.workspace, event.id)
    return replace(people, enrolled={**people.enrolled, key: event.by})


DECIDE: Deciders = {
    AgentEnrol: enrol_agent,
}
EVOLVE: Evolvers = {
    AgentEnrolled: on_enrolled,
}
