"""Roles: which ones a joiner is granted, and who may change them later."""

from collections.abc import Iterator

from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import (
    SESSION_CAPABILITIES,
    Capabilities,
    Capability,
    Kind,
    Permission,
    Role,
    Roles,
    capabilities_of,
    permissions_for,
)
from accord.core.room.approval import electorate
from accord.core.room.field_types import Id, ShortText
from accord.core.room.membership import leaving
from accord.core.room.membership.absence_pause import update_pause
from accord.core.room.membership.announcements import ParticipantAnnounce, with_member
from accord.core.room.state import Member, Room

ADMIN_ROLES = frozenset({Role.ADMIN})
OBSERVER_ROLES = frozenset({Role.OBSERVER})
MAX_REASON_LENGTH = 4096
# OPEN-8: without a credential, these are never granted.
PRIVILEGED_CAPABILITIES = frozenset(
    {Capability.APPROVE, Capability.MANAGE_PARTICIPANTS, Capability.END_SESSION}
)


class ParticipantRoleChange(Body, frozen=True, omit_defaults=True, gc=False):
    """Change a member's roles; without new ones, remove the member."""

    type = "participant.role_change"
    needs = Permission.MANAGE_PARTICIPANTS
    while_paused = True

    participant: Id
    old_roles: tuple[Role, ...]
    new_roles: tuple[Role, ...]
    changed_by: Id
    reason: ShortText | None = None

    def claimed_ids(self) -> Iterator[str]:
        yield self.changed_by


class RolesChanged(Event, frozen=True, kw_only=True, gc=False):
    """A member's roles changed; extra capabilities are gone (OPEN-9)."""

    name = "member.roles_changed"

    said: ParticipantRoleChange


# Granting


def grant_roles(
    actor: Actor, kind: Kind, announced: ParticipantAnnounce, known: Member | None
) -> tuple[Roles, Capabilities]:
    """The requested roles and capabilities that credential and policy allow (OPEN-8)."""
    if known is not None and known.settled:
        return known.roles, known.capabilities
    requested = frozenset(announced.roles) or OBSERVER_ROLES
    roles = requested & grantable_roles(actor, kind)
    capabilities = frozenset(announced.capabilities or ()) & grantable_capabilities(actor)
    held = known.roles & ADMIN_ROLES if known is not None else frozenset()
    if not roles | capabilities | held:
        names = ", ".join(sorted(requested))
        raise Refused(Reason.FORBIDDEN, f"{actor.principal} may not join as {names}")
    return roles | held or OBSERVER_ROLES, capabilities


def grantable_roles(actor: Actor, kind: Kind) -> Roles:
    """Without a credential all but admin; with one its own roles; all for a human operator."""
    if actor.credential is None:
        barred = ADMIN_ROLES | ({Role.APPROVER} if kind is Kind.AGENT else frozenset())
        return frozenset(Role) - barred
    if actor.is_operator:
        return frozenset(Role)
    return actor.credential.roles | OBSERVER_ROLES


def grantable_capabilities(actor: Actor) -> Capabilities:
    """The capabilities of a credential; without one, all that are not privileged."""
    if actor.credential is None:
        return SESSION_CAPABILITIES - PRIVILEGED_CAPABILITIES
    granted = capabilities_of(actor.credential.roles, actor.credential.capabilities)
    return granted & SESSION_CAPABILITIES


# Changing


def change_roles(
    room: Room, command: Command, body: ParticipantRoleChange
) -> Iterator[EventOrEffect]:
    """Change a member's roles; only admins touch admin, and one admin must remain.

    Without new roles the member is removed, and returns only after another change (OPEN-34).
    """
    member = room.members.get(body.participant) or removed_member(room, body.participant)
    if member is None:
        raise Refused(Reason.NO_MEMBER, f"{body.participant} is not in this session")
    check_old_roles(member, body)
    check_agent_role_change(room, command, member, body)
    check_admin_role_change(room, command, member, body)
    yield RolesChanged(said=body)
    if not body.new_roles:
        yield from removal(room, command, member, body)
    elif member.id in room.members:
        yield from after_demotion(room, member, body)


def removed_member(room: Room, id: str) -> Member | None:
    """A former member who was removed and not let back in yet."""
    former = room.former.get(id)
    return former if former is not None and former.removed_by else None


def check_old_roles(member: Member, body: ParticipantRoleChange) -> None:
    """`old_roles` must be those of the member; a removed one has none."""
    if member.removed_by:
        if body.old_roles or not body.new_roles:
            detail = (
                f"{member.removed_by} removed {member.id}; let them back in with empty old_roles"
            )
            raise Refused(Reason.WRONG_STATE, f"{detail} and the new roles")
        return
    if (frozenset(body.old_roles) or OBSERVER_ROLES) != member.roles:
        held = ", ".join(sorted(member.roles))
        raise Refused(Reason.WRONG_STATE, f"{member.id} has the roles {held}, not old_roles")


def check_admin_role_change(
    room: Room, command: Command, member: Member, body: ParticipantRoleChange
) -> None:
    """Only admins touch admin or their own roles, and the last admin stays."""
    held = frozenset() if member.removed_by else member.roles
    touches_admin = Role.ADMIN in held ^ frozenset(body.new_roles)
    is_admin = Role.ADMIN in room.members[command.actor.principal].roles
    if not is_admin and (touches_admin or member.id == command.actor.principal):
        detail = "Only an admin can grant or revoke admin, or change their own roles"
        raise Refused(Reason.FORBIDDEN, detail)
    others = [m for m in room.members.values() if Role.ADMIN in m.roles and m.id != member.id]
    if touches_admin and Role.ADMIN in held and not others:
        detail = f"{member.id} is the last admin; make another member admin first"
        raise Refused(Reason.WRONG_STATE, detail)


def removal(
    room: Room, command: Command, member: Member, body: ParticipantRoleChange
) -> Iterator[EventOrEffect]:
    """The server says that the member left, and why."""
    reason = f"Removed by {room.person(body.changed_by)}" + (
        f": {body.reason}" if body.reason else ""
    )
    leave = leaving.SessionLeave(reason[:MAX_REASON_LENGTH], member.id)
    yield from leaving.remove_member(
        room, command, member.id, leave, removed_by=command.actor.principal
    )


def after_demotion(
    room: Room, member: Member, body: ParticipantRoleChange
) -> Iterator[EventOrEffect]:
    """End the work of an agent that may only observe now; say what a lost voter means for gates."""
    may = permissions_for(member.kind, frozenset(body.new_roles), frozenset())
    if Permission.ACT_AS_AGENT in member.may - may:
        reason = f"{room.person(body.changed_by)} made {room.person(member.id)} an observer"
        yield from leaving.end_work(room, member.id, reason)
    if Permission.APPROVE not in may:
        yield from electorate.lost_voter_notices(room, member, keeps_vote=False)


def check_agent_role_change(
    room: Room, command: Command, member: Member, body: ParticipantRoleChange
) -> None:
    """Agents cannot change humans' roles, nor make anybody an approver or admin (UNI-13)."""
    by_agent = (
        command.actor.kind is not Kind.SYSTEM
        and room.members[command.actor.principal].kind is Kind.AGENT
    )
    promotes = frozenset(body.new_roles) & {Role.ADMIN, Role.APPROVER}
    if by_agent and (member.kind is Kind.HUMAN or promotes):
        detail = "An agent cannot change a human's roles, nor make anyone admin or approver"
        raise Refused(Reason.FORBIDDEN, detail)


def on_roles_changed(room: Room, event: RolesChanged, record: Record) -> Room:
    """The new roles; a member who was removed may join with them."""
    before = room.members.get(event.said.participant)
    if before is None:
        return let_back_in(room, event)
    after = with_roles(before, event)
    room = electorate.update_voter(with_member(room, after), before, after)
    if not event.said.new_roles:
        room = electorate.note_removal(room, before, record.actor)
    return update_pause(room, record.at)


def let_back_in(room: Room, event: RolesChanged) -> Room:
    """A removed member may join again, with these roles."""
    former = room.former.get(event.said.participant)
    if former is None:
        return room
    back = replace(with_roles(former, event), removed_by="")
    return replace(room, former={**room.former, back.id: back})


def with_roles(member: Member, event: RolesChanged) -> Member:
    """The member with the new roles; in logs of earlier versions, none means observer."""
    roles = frozenset(event.said.new_roles) or OBSERVER_ROLES
    return replace(member, roles=roles, capabilities=frozenset(), settled=True).with_permissions()


DECIDE: Deciders = {ParticipantRoleChange: change_roles}
EVOLVE: Evolvers = {RolesChanged: on_roles_changed}
