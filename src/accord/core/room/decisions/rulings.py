"""Rulings: the kernel rules on batches among the context items, and releases bound proposals."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.decision_port import DecisionKernel, Ruling, StepResult
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.room.approval import gates
from accord.core.room.approval.gates import possible_categories
from accord.core.room.decisions import decision_binding, evidence_check
from accord.core.room.decisions.decision_binding import (
    CONVERGENCE_SUFFIX,
    DECISION_PREFIX,
    SNAPSHOT_SUFFIX,
    DecisionLink,
    decision_link_of,
    held_proposals,
    hold_reason,
    server_item_content,
)
from accord.core.room.field_types import Ids
from accord.core.room.room_settings import Category
from accord.core.room.shared_context import context_items, context_quota
from accord.core.room.shared_context.context_items import (
    ContextAdd,
    ContextRemove,
    ContextRemoved,
    ContextUpdate,
    item_of,
    with_item,
)
from accord.core.room.state import ContextItem, Room, ToolProposal, without_keys
from accord.core.room.visibility import scope_of

# `decision:release` is a batch, `decision:release:bob` is bob's independent judgement of it.
DECISION_KEY = re.compile(r"decision:([A-Za-z0-9_-]{1,64})(:[A-Za-z0-9_@.-]{1,64})?")
MAX_JUDGEMENTS = 8


class SubmittedBatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a context item `decision:<id>`.

    Proposals of the categories in `guards` must be bound to one of its items; without `guards`,
    they stay as they are. `evidence` lists the runs that show what an agent claims.
    """

    batch: str
    guards: tuple[Category, ...] | UnsetType = UNSET
    evidence: Ids = ()


class DecisionRuled(Event, frozen=True, kw_only=True, gc=False):
    """The kernel ruled; everybody receives the result as a context item of the server.

    `spent` are runs that no longer count as evidence because their items have changed since.
    """

    name = "decision.ruled"

    said: ContextAdd
    spent: Ids = ()


def parse_batch(item: ContextItem) -> SubmittedBatch:
    """Parse a submitted batch: plain text, or an object with guards and evidence."""
    if isinstance(item.content, str):
        return SubmittedBatch(item.content)
    try:
        return msgspec.convert(item.content, SubmittedBatch)
    except msgspec.ValidationError as error:
        detail = f"{item.key} must hold a batch, and may hold guards and evidence: {error}"
        raise Refused(Reason.MALFORMED, detail) from error


# Deciding


def add_context(room: Room, command: Command, body: ContextAdd) -> Iterator[EventOrEffect]:
    """Add a context item; if it is a batch, the kernel rules on it."""
    yield from context_items.add_item(room, command, body)
    if body.key.startswith(DECISION_PREFIX):
        yield from rule_on_batch(room, command, item_of(body, command.actor.principal))


def update_context(room: Room, command: Command, body: ContextUpdate) -> Iterator[EventOrEffect]:
    """Update a context item; for a batch, the kernel continues from its last snapshot."""
    yield from context_items.update_item(room, command, body)
    if body.key.startswith(DECISION_PREFIX):
        item = context_items.find_item(room, command, body.key)
        key = DECISION_KEY.fullmatch(body.key)
        if key and key[2] and item.author != command.actor.principal:
            raise Refused(
                Reason.FORBIDDEN,
                f"{body.key} is the judgement of {item.author}; only {item.author} can change it",
            )
        yield from rule_on_batch(room, command, context_items.apply_update(item, body))


def remove_context(room: Room, command: Command, body: ContextRemove) -> Iterator[EventOrEffect]:
    """Remove a context item; a batch takes its snapshot and comparison with it."""
    yield from context_items.remove_item(room, command, body)
    if body.key.startswith(DECISION_PREFIX):
        check_removable(room, command, context_items.find_item(room, command, body.key))
        snapshot = body.key + SNAPSHOT_SUFFIX
        if server_item_content(room, command.message.fork, snapshot) is not None:
            yield server_item_removed(command, snapshot, body.reason)
        room = without_items(room, command.message.fork, body.key, snapshot)
        if key := DECISION_KEY.fullmatch(body.key):
            yield from compare_judgements(room, command, key[1])


def check_removable(room: Room, command: Command, item: ContextItem) -> None:
    """The server removes its own items; agents remove only unguarded decisions of their own."""
    if item.author == SYSTEM:
        raise Refused(
            Reason.FORBIDDEN, f"{item.key} belongs to the server; remove the decision instead"
        )
    guarded = decision_binding.guarded_by(
        server_item_content(room, command.message.fork, item.key + SNAPSHOT_SUFFIX)
    )
    if command.actor.kind is Kind.AGENT and (guarded or item.author != command.actor.principal):
        raise Refused(Reason.FORBIDDEN, f"Only a human can remove {item.key}")


def rule_on_batch(room: Room, command: Command, item: ContextItem) -> Iterator[EventOrEffect]:
    """Rule on a batch, compare the judgements, and open the gates that are released."""
    key = DECISION_KEY.fullmatch(item.key)
    if key is None or item.visible_to is not None:
        detail = "A decision must be visible to all, as decision:<id> or decision:<id>:<judge>"
        raise Refused(Reason.MALFORMED, detail)
    kernel: DecisionKernel | None = command.policy.decision_kernel
    if kernel is None:
        raise Refused(Reason.WRONG_STATE, "This server has no decision kernel")
    submitted, fork, batch = parse_batch(item), command.message.fork, key[1]
    is_judgement = key[2] is not None
    if is_judgement and submitted.guards:
        raise Refused(Reason.MALFORMED, f"Set guards on {DECISION_PREFIX}{batch}, not here")
    check_judges_once(room, command, item, batch)
    before = server_item_content(room, fork, item.key + SNAPSHOT_SUFFIX)
    guarded = decision_binding.update_guards(
        command, decision_binding.guarded_by(before), submitted.guards
    )
    ruling = kernel.decide(
        submitted.batch, before["snapshot"] if before else "", to_iso(command.at)[:10]
    )
    if ruling.problem:
        raise Refused(Reason.MALFORMED, f"{item.key}: {ruling.problem}")
    relied_on = before is not None and (item.author != command.actor.principal or bool(guarded))
    known = before["items"] if before and relied_on else {}
    evidence_check.check_evidence(room, command, batch, ruling, submitted.evidence, known)
    room = with_item(room, scope_of(fork), item)
    changed = frozenset(claim.item for claim in ruling.claims) if before else None
    spent = () if is_judgement else decision_binding.outdated_runs(room, fork, batch, changed)
    yield from publish_ruling(
        room, command, batch, item.key, ruling_content(ruling, guarded), spent
    )


def check_judges_once(room: Room, command: Command, item: ContextItem, batch: str) -> None:
    """UNI-15: each judge submits one judgement of a batch."""
    for name, other in room.shelf.get(scope_of(command.message.fork), {}).items():
        key = DECISION_KEY.fullmatch(name)
        if key and key[1] == batch and name != item.key and other.author == item.author:
            detail = f"{item.author} has already judged {batch}, as {name}; update that instead"
            raise Refused(Reason.FORBIDDEN, detail)


def ruling_content(ruling: Ruling, guarded: decision_binding.Categories) -> dict[str, Any]:
    """A ruling as the content of a context item."""
    return {
        "snapshot": ruling.snapshot,
        "sha256": ruling.hash,
        "items": msgspec.to_builtins(ruling.items),
        "guards": sorted(guarded),
    }


def publish_ruling(
    room: Room, command: Command, batch: str, key: str, content: dict[str, Any], spent: Ids = ()
) -> Iterator[EventOrEffect]:
    """Publish a ruling as a context item, with the comparison and gates that follow from it."""
    yield from publish_server_item(room, command, key + SNAPSHOT_SUFFIX, content, spent)
    room = with_server_item(room, command.message.fork, key + SNAPSHOT_SUFFIX, content)
    yield from compare_judgements(room, command, batch)


def compare_judgements(room: Room, command: Command, batch: str) -> Iterator[EventOrEffect]:
    """Publish how far the independent judgements agree, and open the gates that are released."""
    key, fork = f"{DECISION_PREFIX}{batch}{CONVERGENCE_SUFFIX}", command.message.fork
    comparison = convergence_of(room, command, batch)
    if comparison is not None:
        yield from publish_server_item(room, command, key, comparison)
        room = with_server_item(room, fork, key, comparison)
    elif server_item_content(room, fork, key) is not None:
        yield server_item_removed(command, key, "Only one judgement is left")
        room = without_items(room, fork, key)
    yield from open_released_gates(room, command, batch)


def convergence_of(room: Room, command: Command, batch: str) -> dict[str, Any] | None:
    """How far the judgements of a batch agree; None if there is only one."""
    keys = sorted(room.shelf.get(scope_of(command.message.fork), {}))
    own = f"{DECISION_PREFIX}{batch}"
    hosts = [
        k
        for k in keys
        if k == own + SNAPSHOT_SUFFIX or (k.startswith(own + ":") and SNAPSHOT_SUFFIX in k)
    ]
    if len(hosts) < 2:
        return None
    if len(hosts) > MAX_JUDGEMENTS:
        raise Refused(
            Reason.FULL, f"{batch} already has {MAX_JUDGEMENTS} judgements, the most it may have"
        )
    contents = [server_item_content(room, command.message.fork, key) for key in hosts]
    snapshots = [content["snapshot"] for content in contents if content]
    rows, table = command.policy.decision_kernel.compare(snapshots)
    names = [key.removesuffix(SNAPSHOT_SUFFIX) for key in hosts]
    return {"hosts": names, "items": list(msgspec.to_builtins(rows)), "table": table}


def server_item_removed(command: Command, key: str, reason: str) -> ContextRemoved:
    return ContextRemoved(said=ContextRemove(key=key, reason=reason), fork=command.message.fork)


def without_items(room: Room, fork: str | None, *keys: str) -> Room:
    """The room without these context items."""
    scope = scope_of(fork)
    return replace(
        room, shelf={**room.shelf, scope: without_keys(room.shelf.get(scope, {}), *keys)}
    )


def publish_server_item(
    room: Room, command: Command, key: str, content: dict[str, Any], spent: Ids = ()
) -> Iterator[EventOrEffect]:
    """Publish a context item of the server's own; it counts against the quota."""
    body = ContextAdd(key=key, content_type="structured", content=content, tags=("decision",))
    context_quota.check_item_size(item_of(body, SYSTEM), command.policy.limits)
    after = with_server_item(room, command.message.fork, key, content)
    context_quota.check_quota(room, after, command.policy.limits, "The context is full")
    yield DecisionRuled(said=body, fork=command.message.fork, spent=spent)


def with_server_item(room: Room, fork: str | None, key: str, content: dict[str, Any]) -> Room:
    body = ContextAdd(key=key, content_type="structured", content=content, tags=("decision",))
    return with_item(room, scope_of(fork), item_of(body, SYSTEM))


def open_released_gates(room: Room, command: Command, batch: str) -> Iterator[EventOrEffect]:
    """Open the gates of proposals that this decision no longer holds."""
    for tool in held_proposals(room):
        link = decision_link_of(tool)
        bound = link is not None and link.batch == batch and tool.fork == command.message.fork
        if bound and hold_reason(room, tool) is None:
            yield gates.open_tool_gate(
                room, command, tool, possible_categories(tool.name, tool.category)
            )


def rule_on_step_run(
    room: Room, command: Command, tool: ToolProposal, link: DecisionLink, result: StepResult
) -> Iterator[EventOrEffect]:
    """A bound step ran: its result is evidence, so the kernel rules again, in the tool's fork.

    If it cannot, because the context is full or there is no kernel, the result is still recorded.
    A step that was held before it started does not count.
    """
    kernel = command.policy.decision_kernel
    snapshot_key = f"{DECISION_PREFIX}{link.batch}{SNAPSHOT_SUFFIX}"
    before = server_item_content(room, tool.fork, snapshot_key)
    if before is None or kernel is None:
        return
    if not tool.started and hold_reason(room, tool) is not None:
        return
    result = result._replace(item=link.item, step=link.step)
    ruling = kernel.decide_after_step(before["snapshot"], result, to_iso(command.at)[:10])
    if ruling.problem:
        return
    content = ruling_content(ruling, decision_binding.guarded_by(before))
    command = replace(command, message=replace(command.message, fork=tool.fork))
    with suppress(Refused):
        yield from list(
            publish_ruling(room, command, link.batch, DECISION_PREFIX + link.batch, content)
        )


# Folding


def on_ruled(room: Room, event: DecisionRuled, record: Record) -> Room:
    item = item_of(event.said, SYSTEM)
    item = replace(item, changed=record.version, announced=record.id)
    return with_item(decision_binding.without_runs(room, event.spent), scope_of(record.fork), item)


DECIDE: Deciders = {
    ContextAdd: add_context,
    ContextUpdate: update_context,
    ContextRemove: remove_context,
}
EVOLVE: Evolvers = {DecisionRuled: on_ruled}
