"""Conflicts of a merge: finding them, checking their resolutions, combining both sides' context."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from accord.core.kernel.context import Command
from accord.core.kernel.messages import MemberIds
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.decisions import decision_binding
from accord.core.room.forking.fork_state import Merge, MergeStrategy
from accord.core.room.shared_context import context_items, context_quota, tombstones
from accord.core.room.shared_context.context_items import ContextKey
from accord.core.room.state import ContextItem, Room, can_see
from accord.core.room.visibility import lineage, scope_of


class MergeResolution(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How one conflict is resolved."""

    conflict_id: ContextKey
    resolution: Literal["use_source", "use_target", "custom"]
    custom_value: str | dict[str, Any] | None = None


# Finding


def find_conflicts(room: Room, merge: Merge) -> frozenset[str]:
    """Keys changed on both sides since their common base (OPEN-48); `replace` has no conflicts.

    Two items with the same key but different authors conflict, whenever they were added.
    """
    if merge.strategy is MergeStrategy.REPLACE:
        return frozenset()
    ours = source_changes(room, merge)
    theirs = changes_since(room, merge.target, common_base(room, merge))
    existing = room.shelf.get(scope_of(merge.target), {})
    return frozenset(
        key
        for key, item in ours.items()
        if (key in theirs and (item or theirs[key]))
        or (item and key in existing and item.author != existing[key].author)
    )


def changes_since(room: Room, fork: str | None, base: int) -> dict[str, ContextItem | None]:
    """Changes in a fork's context since `base`: the item, or None if it was removed."""
    scope = scope_of(fork)
    shelf, removed = room.shelf.get(scope, {}), room.removed.get(scope, {})
    removals = {key: None for key, version in removed.items() if version > base}
    changes = {key: item for key, item in shelf.items() if item.changed > base}
    return {**removals, **changes}


def source_changes(room: Room, merge: Merge) -> dict[str, ContextItem | None]:
    """What the source changed; removing its own item does not remove a different one in the target.

    Rulings and mirrored tasks are never merged, so they cannot conflict.
    """
    existing = room.shelf.get(scope_of(merge.target), {})
    removed_ids = room.buried.get(merge.source, {})
    return {
        key: item
        for key, item in changes_since(room, merge.source, common_base(room, merge)).items()
        if not is_never_merged(room, key)
        and (item or key not in existing or removed_ids.get(key) == existing[key].announced)
    }


def is_never_merged(room: Room, key: str) -> bool:
    """Rulings belong to the fork that they were made in, mirrored tasks to the repository."""
    return key.startswith(decision_binding.DECISION_PREFIX) or context_items.is_mirrored(room, key)


def common_base(room: Room, merge: Merge) -> int:
    """The stream version up to which source and target share their history."""
    ours, theirs = lineage(room, merge.source), lineage(room, merge.target)
    not_shared = frozenset(ours) ^ frozenset(theirs)
    return min(room.forks[fork].base for fork in not_shared if fork is not None)


def items_on_both_sides(room: Room, merge: Merge, key: str) -> Iterator[ContextItem]:
    """The items with this key in source and target."""
    for fork in (merge.source, merge.target):
        if item := room.shelf.get(scope_of(fork), {}).get(key):
            yield item


# Resolving


def check_resolutions(
    room: Room, command: Command, merge: Merge, resolutions: tuple[MergeResolution, ...]
) -> None:
    """Each conflict needs exactly one resolution, and nothing else may have one."""
    resolved = [resolution.conflict_id for resolution in resolutions]
    conflicts = find_conflicts(room, merge)
    member_id = command.actor.principal
    if any(
        not all(can_see(item, member_id) for item in items_on_both_sides(room, merge, key))
        for key in conflicts
    ):
        detail = "Some conflicts are about context items that you cannot read"
        raise Refused(Reason.FORBIDDEN, f"{detail}; a member who can must execute the merge")
    if unknown := sorted(set(resolved) - conflicts):
        raise Refused(Reason.MALFORMED, f"Not in conflict: {', '.join(unknown)}")
    if len(resolved) != len(set(resolved)):
        raise Refused(Reason.MALFORMED, f"Resolved more than once: {', '.join(resolved)}")
    if missing := sorted(conflicts - set(resolved)):
        detail = (
            f"Unresolved conflicts: {', '.join(missing)}. Choose a side for each: "
            f"`--use-source {missing[0]}` or `--use-target {missing[0]}` of `accord session merge`"
        )
        raise Refused(Reason.WRONG_STATE, detail, {"conflicts": missing})
    for resolution in resolutions:
        check_custom_value(room, command, merge, resolution)


def check_custom_value(
    room: Room, command: Command, merge: Merge, resolution: MergeResolution
) -> None:
    """A custom value obeys the same rules as any context item."""
    if resolution.resolution != "custom":
        return
    if resolution.custom_value is None:
        raise Refused(Reason.MALFORMED, f"{resolution.conflict_id} needs a custom_value")
    item = next(items_on_both_sides(room, merge, resolution.conflict_id))
    context_items.check_reserved(room, command, item.key)
    context_quota.check_item_size(
        replace(item, content=resolution.custom_value), command.policy.limits
    )


# Combining


def merge_context(
    room: Room, merge: Merge, settled: tuple[MergeResolution, ...], version: int
) -> Room:
    """The room with the target's context merged; changed items are marked for later merges."""
    scope = scope_of(merge.target)
    before = room.shelf.get(scope, {})
    replaces = merge.strategy is MergeStrategy.REPLACE
    after = replace_items(room, merge) if replaces else combine_items(room, merge, settled)
    items = {key: mark_changed(item, before.get(key), version) for key, item in after.items()}
    gone = {key: before[key].announced for key in before.keys() - after.keys()}
    return tombstones.record_removals(
        replace(room, shelf={**room.shelf, scope: items}), scope, gone, version
    )


def mark_changed(item: ContextItem, before: ContextItem | None, version: int) -> ContextItem:
    """Mark a changed item; a copy that comes back unchanged keeps its original readers."""
    if before is not None and before.announced == item.announced:
        item = replace(item, visible_to=before.visible_to, changed=before.changed)
    return item if item == before else replace(item, changed=version)


def replace_items(room: Room, merge: Merge) -> dict[str, ContextItem]:
    """The source's context, plus the target's items that no member of the source could read."""
    source = room.forks[merge.source]
    ours = room.shelf.get(scope_of(source.id), {})
    theirs = room.shelf.get(scope_of(merge.target), {})
    retained = {
        key: item
        for key, item in theirs.items()
        if is_never_merged(room, key) or not any(can_see(item, id) for id in source.members)
    }
    return {key: item for key, item in ours.items() if not is_never_merged(room, key)} | retained


def combine_items(
    room: Room, merge: Merge, settled: tuple[MergeResolution, ...]
) -> dict[str, ContextItem]:
    """The target's context with the source's changes, conflicts resolved as given."""
    items = dict(room.shelf.get(scope_of(merge.target), {}))
    resolutions = {resolution.conflict_id: resolution for resolution in settled}
    for key, item in source_changes(room, merge).items():
        chosen = resolve_item(item, items.get(key), resolutions.get(key))
        if chosen is None:
            items.pop(key, None)
        else:
            items[key] = chosen
    return items


def resolve_item(
    ours: ContextItem | None, theirs: ContextItem | None, resolution: MergeResolution | None
) -> ContextItem | None:
    """The item that a key has after the merge; None if it is removed."""
    if resolution is None or resolution.resolution == "use_source":
        return ours
    if resolution.resolution == "use_target":
        return theirs
    item = ours or theirs
    readers = common_readers(ours, theirs)
    content = resolution.custom_value
    return item and replace(item, content=content, content_ref=None, visible_to=readers)


def common_readers(*items: ContextItem | None) -> MemberIds | None:
    """The readers who could read all of the items; None for everybody."""
    audiences = [context_items.item_audience(item) for item in items if item is not None]
    restricted = [audience for audience in audiences if audience is not None]
    return frozenset.intersection(*restricted) if restricted else None
