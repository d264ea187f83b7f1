"""Roles: which are granted at the door, and who changes them afterwards."""

from collections.abc import Iterator

from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Capabilities, Capability, Kind, May, Role, Roles, rights
from accord.core.kernel.log import Ask, Body, Deciders, Event, Evolvers, Fact, Record
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import rolls
from accord.core.room.fields import Id, Short
from accord.core.room.participants import ParticipantAnnounce, put
from accord.core.room.pauses import repaused
from accord.core.room.state import Member, Room

ADMIN = frozenset({Role.ADMIN})
OBSERVER = frozenset({Role.OBSERVER})
# OPEN-8: these are never had for the asking.
GIVEN_ONLY = frozenset({Capability.APPROVE, Capability.MANAGE_PARTICIPANTS, Capability.END_SESSION})


class ParticipantRoleChange(Body, frozen=True, omit_defaults=True, gc=False):
    """Give a member other roles."""

    type = "participant.role_change"
    needs = May.MANAGE
    while_paused = True

    participant: Id
    old_roles: tuple[Role, ...]
    new_roles: tuple[Role, ...]
    changed_by: Id
    reason: Short | None = None

    def claims(self) -> Iterator[str]:
        """Everybody acts for themselves."""
        yield self.changed_by


class RolesChanged(Event, frozen=True, kw_only=True, gc=False):
    """A member has other roles, and no capabilities beyond them (OPEN-9)."""

    name = "member.roles_changed"

    said: ParticipantRoleChange


# Granting


def granted(
    actor: Actor, kind: Kind, now: ParticipantAnnounce, known: Member | None
) -> tuple[Roles, Capabilities]:
    """What this joiner gets: roles are asked for, credential and policy grant (OPEN-8)."""
    if known is not None and known.settled:
        return known.roles, known.capabilities
    asked = frozenset(now.roles) or OBSERVER
    roles = asked & grantable_roles(actor, kind)
    capabilities = frozenset(now.capabilities or ()) & grantable_capabilities(actor)
    held = known.roles & ADMIN if known is not None else frozenset()
    if not roles | capabilities | held:
        wanted = ", ".join(sorted(asked))
        raise Refused(Why.FORBIDDEN, f"{actor.seat} may not join as {wanted}")
    return roles | held or OBSERVER, capabilities


def grantable_roles(actor: Actor, kind: Kind) -> Roles:
    """Every role but admin on trust; with a credential, its own, and all for a human admin."""
    if actor.grant is None:
        barred = ADMIN | ({Role.APPROVER} if kind is Kind.AGENT else frozenset())
        return frozenset(Role) - barred
    if actor.is_operator:
        return frozenset(Role)
    return actor.grant.roles | OBSERVER


def grantable_capabilities(actor: Actor) -> Capabilities:
    """What a credential's roles imply or it names; on trust, what could not do harm."""
    if actor.grant is None:
        return frozenset(Capability) - GIVEN_ONLY
    return rights(actor.grant.roles, actor.grant.capabilities)


# Changing


def change_roles(room: Room, ask: Ask, body: ParticipantRoleChange) -> Iterator[Fact]:
    """Other roles for a member; nobody rises by accident and an admin always remains."""
    member = room.members.get(body.participant)
    if member is None:
        raise Refused(Why.NO_MEMBER, f"{body.participant} is not in this session")
    if (frozenset(body.old_roles) or OBSERVER) != member.roles:
        held = ", ".join(sorted(member.roles))
        raise Refused(Why.WRONG_STATE, f"{member.id} holds {held}; old_roles must say so")
    check_agent_manages(room, ask, member, body)
    touches_admin = Role.ADMIN in member.roles ^ frozenset(body.new_roles)
    is_admin = Role.ADMIN in room.members[ask.actor.seat].roles
    if not is_admin and (touches_admin or member.id == ask.actor.seat):
        raise Refused(
            Why.FORBIDDEN, "Only an admin gives or takes admin or changes their own roles"
        )
    others = [m for m in room.members.values() if Role.ADMIN in m.roles and m.id != member.id]
    if touches_admin and Role.ADMIN in member.roles and not others:
        raise Refused(Why.WRONG_STATE, f"{member.id} is the last admin; make another one first")
    yield RolesChanged(said=body)


def check_agent_manages(room: Room, ask: Ask, member: Member, body: ParticipantRoleChange) -> None:
    """An agent has no say in who of the people may approve, nor makes approvers (UNI-13)."""
    by_agent = ask.actor.kind is not Kind.SYSTEM and room.members[ask.actor.seat].kind is Kind.AGENT
    raises = frozenset(body.new_roles) & {Role.ADMIN, Role.APPROVER}
    if by_agent and (member.kind is Kind.HUMAN or raises):
        raise Refused(Why.FORBIDDEN, "An agent cannot change people's roles or make approvers")


def on_roles_changed(room: Room, event: RolesChanged, record: Record) -> Room:
    """The new roles and nothing beside them."""
    before = room.members.get(event.said.participant)
    if before is None:
        return room
    roles = frozenset(event.said.new_roles) or OBSERVER
    now = replace(before, roles=roles, capabilities=frozenset(), settled=True).with_verbs()
    return repaused(rolls.member_changed(put(room, now), before, now), record.at)


DECIDE: Deciders = {ParticipantRoleChange: change_roles}
EVOLVE: Evolvers = {RolesChanged: on_roles_changed}
