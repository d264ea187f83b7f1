"""Admission: whether a sender may send this message to this room at all, and who is there."""

from collections.abc import Iterator

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission
from accord.core.room.membership import joining
from accord.core.room.state import Member, Presence, Room
from accord.core.room.visibility import check_fork_open

# Looking up an enum member is slow, and every message needs these two.
SYSTEM_KIND, ENTER_PERMISSION = Kind.SYSTEM, Permission.ENTER


def admit(room: Room, command: Command) -> None:
    """Refuse senders who are not members, lack the permission, or send at the wrong time."""
    body, actor = command.message.body, command.actor
    if actor.kind is SYSTEM_KIND:
        return
    if body.needs is ENTER_PERMISSION:
        admit_newcomer(room, command)
        return
    member = room.members.get(actor.principal)
    if member is None or actor.workspace != room.workspace:
        raise not_a_member_refusal(room, command)
    if room.ended and not body.after_end:
        raise session_ended_refusal(room)
    if body.needs not in member.may:
        raise Refused(Reason.FORBIDDEN, forbidden_detail(body, actor.principal))
    if actor.max_permissions is not None:
        check_credential(room, command, member)
    if type(body).claimed_ids is not Body.claimed_ids:
        check_sender_claims(command)
    if room.paused_at is not None and not body.while_paused:
        raise Refused(
            Reason.WRONG_STATE, "The session is paused until absent participants are back"
        )
    if command.message.fork is not None:
        check_fork_membership(room, command)


def admit_newcomer(room: Room, command: Command) -> None:
    """Admit a message that needs no membership; joining a session that has ended is refused."""
    check_sender_claims(command)
    if command.message.fork is not None:
        check_fork_membership(room, command)
    if isinstance(command.message.body, joining.SessionJoin):
        if not room.exists or command.actor.workspace != room.workspace:
            raise not_a_member_refusal(room, command)
        if room.ended:
            raise (
                session_ended_refusal(room)
                if is_or_was_member(room, command.actor)
                else not_a_member_refusal(room, command)
            )


def is_or_was_member(room: Room, actor: Actor) -> bool:
    """Whether this principal is or was a member; ids are unique only within a workspace."""
    known = actor.principal in room.members or actor.principal in room.former
    return known and actor.workspace == room.workspace


def connected_members(room: Room) -> Iterator[str]:
    """Members of an open session that are not known to be disconnected."""
    if room.ended:
        return
    for member in room.members.values():
        if member.presence is not Presence.DISCONNECTED:
            yield member.id


def check_credential(room: Room, command: Command, member: Member) -> None:
    """Check that today's credential allows this, whatever the member was granted when joining.

    Rights that the room itself granted, to its creator or by a role change, need no credential.
    """
    actor, body = command.actor, command.message.body
    if member.kind is Kind.HUMAN and actor.kind is Kind.AGENT:
        raise Refused(
            Reason.CLAIM_MISMATCH, f"{actor.principal} is a human here; your token is an agent's"
        )
    granted_here = member.settled or actor.principal == room.created_by
    if body.needs not in (actor.max_permissions or ()) and not granted_here:
        raise Refused(Reason.FORBIDDEN, forbidden_detail(body, actor.principal))


def check_sender_claims(command: Command) -> None:
    """UNI-1: a sender cannot claim another identity in the payload."""
    for claimed in command.message.body.claimed_ids():
        if claimed != command.actor.principal:
            detail = (
                f"You are {command.actor.principal}, but the payload names {claimed} as its sender"
            )
            raise Refused(Reason.CLAIM_MISMATCH, detail)


def not_a_member_refusal(room: Room, command: Command) -> Refused:
    """Former members learn that they left; for all others the session does not exist (OPEN-49)."""
    if is_or_was_member(room, command.actor):
        former = room.former.get(command.actor.principal)
        if former is not None and former.removed_by:
            return joining.removed_refusal(former)
        return Refused(Reason.NO_MEMBER, "You left this session; join it again first")
    return Refused(Reason.NO_ROOM, f"There is no session {command.message.room}")


def session_ended_refusal(room: Room) -> Refused:
    return Refused(
        Reason.ENDED, f"The session has ended ({room.ended}); its history stays readable"
    )


def check_fork_membership(room: Room, command: Command) -> None:
    """Only members of an open fork send messages inside it."""
    body, fork = command.message.body, command.message.fork or ""
    if not body.forkable:
        raise Refused(
            Reason.MALFORMED, f"{body.type} applies to the whole session; leave out `fork`"
        )
    check_fork_open(room, command, fork)


def forbidden_detail(body: Body, member_id: str) -> str:
    if body.needs is Permission.SERVER_ONLY:
        return f"Only the server sends {body.type}"
    return f"{member_id} may not send {body.type}: it needs the right to {body.needs}"


def check_not_halted(room: Room, agent: str) -> None:
    """Refuse actions of a stopped agent until it is prompted again."""
    if urgency := room.halted.get(agent):
        detail = f"{agent} was stopped by an interrupt ({urgency}); prompt it again first"
        raise Refused(Reason.WRONG_STATE, detail)
