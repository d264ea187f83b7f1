"""Forks: some members continue a session apart, with their own conversation and context."""

import re
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.ids import MAIN_FORK, TRUNK_NAMES
from accord.core.kernel.limits import limit_exceeded
from accord.core.kernel.messages import Body, MemberIds
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission, Role
from accord.core.room.approval import electorate
from accord.core.room.field_types import Id, Ids, ShortText
from accord.core.room.forking.fork_state import Fork
from accord.core.room.shared_context import context_quota
from accord.core.room.shared_context.context_items import with_item
from accord.core.room.shared_context.item_content import TASKS_KEY
from accord.core.room.state import ContextItem, Room
from accord.core.room.visibility import lineage, scope_of

MAX_SLUG_LENGTH = 64
COPY_SCOPE = "\n"  # not a valid fork id


class ForkCreate(Body, frozen=True, omit_defaults=True, gc=False):
    """Fork at a message; inside a fork, fork that fork."""

    type = "fork.create"
    needs = Permission.FORK
    forkable = True
    cites_others = True

    name: Annotated[str, Meta(min_length=1, max_length=256)]
    from_point: Id
    reason: ShortText
    participants: Ids
    copy_context: bool

    def cited_ids(self) -> Iterator[str]:
        yield self.from_point


class ForkSwitch(Body, frozen=True, omit_defaults=True, gc=False):
    """Switch to another fork, or back to the trunk."""

    type = "fork.switch"
    needs = Permission.MEMBER

    target_fork: Annotated[str, Meta(max_length=128)]


class ForkCreated(Event, frozen=True, kw_only=True, gc=False):
    """A fork was created; the whole room learns of it, its messages are for its members."""

    name = "fork.created"
    room_wide = True

    said: ForkCreate
    parent: str | None
    members: MemberIds


class ForkSwitched(Event, frozen=True, kw_only=True, gc=False):
    """A member switched forks."""

    name = "fork.switched"

    said: ForkSwitch
    seat: str
    target: str | None


def unique_slug(name: str, taken: frozenset[str]) -> str:
    """A readable id that is not taken (OPEN-46)."""
    slug = (
        re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_SLUG_LENGTH].strip("-") or "fork"
    )
    candidate, number = slug, 1
    while candidate in taken or candidate in TRUNK_NAMES:
        number += 1
        candidate = f"{slug}-{number}"
    return candidate


def create_fork(room: Room, command: Command, body: ForkCreate) -> Iterator[EventOrEffect]:
    """Create a fork; its members must be present, and one of them must be able to approve."""
    if not room.session_config.allow_forks:
        raise Refused(Reason.WRONG_STATE, "Forks are disabled in this session")
    if len(room.forks) >= (max_forks := command.policy.limits.forks):
        raise limit_exceeded("forks", max_forks, f"A session may have at most {max_forks} forks")
    members = frozenset(body.participants) | {command.actor.principal}
    present = room.members_in(command.message.fork)
    if strangers := sorted(members - present):
        raise Refused(Reason.NO_MEMBER, f"Participants that are not here: {', '.join(strangers)}")
    check_from_point(room, command, body.from_point)
    check_approvers(room, members)
    check_copy_fits(room, command, body, members)
    yield ForkCreated(
        said=body,
        parent=command.message.fork,
        members=members,
        fork=unique_slug(body.name, frozenset(room.forks)),
    )


def check_from_point(room: Room, command: Command, point: str) -> None:
    """Refuse a `from_point` outside the history of the place where the fork begins."""
    if command.cited_records[point].fork not in lineage(room, command.message.fork):
        where = command.message.fork or MAIN_FORK
        raise Refused(Reason.MALFORMED, f"from_point {point} is not in the history of {where}")


def check_copy_fits(room: Room, command: Command, body: ForkCreate, members: MemberIds) -> None:
    """Check that copied context fits into the quota."""
    if not body.copy_context:
        return
    copied = copy_visible_items(room, command.message.fork, members)
    after = replace(room, shelf={**room.shelf, COPY_SCOPE: copied})
    context_quota.check_quota(room, after, command.policy.limits, "The copied context does not fit")


def check_approvers(room: Room, members: MemberIds) -> None:
    """OPEN-47: if the session requires approvals, a member of the fork must be able to approve."""
    configured = bool(room.session_config.require_approval_for)
    if configured and not any(room.members[id].can_vote for id in members):
        detail = "Tools need approval in this session: add a human who may approve to participants"
        raise Refused(Reason.WRONG_STATE, detail)


def fork_named(room: Room, name: str) -> Fork | None:
    """The fork with this id; None for the trunk, by any of its names."""
    if name in TRUNK_NAMES:
        return None
    if fork := room.forks.get(name):
        return fork
    raise Refused(Reason.NOT_FOUND, f"There is no fork {name}")


def switch_fork(room: Room, command: Command, body: ForkSwitch) -> Iterator[EventOrEffect]:
    """Switch to a fork one is a member of; an admin may enter any."""
    member_id = command.actor.principal
    fork = fork_named(room, body.target_fork)
    if fork is None:
        yield ForkSwitched(said=body, seat=member_id, target=None)
        return
    if member_id not in fork.members and Role.ADMIN not in room.members[member_id].roles:
        raise Refused(Reason.FORBIDDEN, f"You are not in the fork {fork.id}")
    yield ForkSwitched(said=body, seat=member_id, target=fork.id)


def on_created(room: Room, event: ForkCreated, record: Record) -> Room:
    """A new scope; with `copy_context`, it starts with the items that its members could read."""
    id = record.fork or ""
    fork = Fork(
        id=id,
        name=event.said.name,
        parent=event.parent,
        from_point=event.said.from_point,
        members=event.members,
        readers=event.members,
        created_by=record.actor,
        created_at=record.at,
        base=record.version,
    )
    room = replace(room, forks={**room.forks, id: fork})
    if event.said.copy_context:
        copied = copy_visible_items(room, event.parent, event.members)
        room = replace(room, shelf={**room.shelf, scope_of(id): copied})
    return with_pact_tasks(room, id)


def with_pact_tasks(room: Room, fork: str) -> Room:
    """The mirrored tasks are the same in every fork."""
    tasks = room.shelf.get(scope_of(None), {}).get(TASKS_KEY)
    return room if room.pact is None or tasks is None else with_item(room, scope_of(fork), tasks)


def copy_visible_items(
    room: Room, parent: str | None, members: MemberIds
) -> dict[str, ContextItem]:
    """The items that some of the members can read, restricted to those members (OPEN-47)."""
    copied: dict[str, ContextItem] = {}
    for item in room.shelf.get(scope_of(parent), {}).values():
        if item.visible_to is None:
            copied[item.key] = item
        elif readers := (item.visible_to | {item.author}) & members:
            copied[item.key] = replace(item, visible_to=readers)
    return copied


def on_switched(room: Room, event: ForkSwitched, record: Record) -> Room:
    """Move the member; an admin who enters a fork becomes a member of it."""
    member = room.members.get(event.seat)
    if member is None:
        return room
    room = replace(room, members={**room.members, member.id: replace(member, fork=event.target)})
    fork = room.forks.get(event.target or "")
    if fork is None:
        return room
    members = fork.members | {event.seat}
    fork = replace(fork, members=members, readers=fork.readers | {event.seat})
    return electorate.enrol_voters(replace(room, forks={**room.forks, fork.id: fork}))


DECIDE: Deciders = {ForkCreate: create_fork, ForkSwitch: switch_fork}
EVOLVE: Evolvers = {ForkCreated: on_created, ForkSwitched: on_switched}
