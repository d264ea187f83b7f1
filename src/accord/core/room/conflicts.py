"""Conflicts: what two sides of a merge changed, how it is settled, and what lies there then."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from accord.core.kernel.log import Ask, Seats
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import forks, graves, quota, shelf, waiting
from accord.core.room.places import scope_of
from accord.core.room.shelf import Key
from accord.core.room.state import Item, Merge, Room, Strategy, sees


class Resolution(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How one conflict is settled."""

    conflict_id: Key
    resolution: Literal["use_source", "use_target", "custom"]
    custom_value: str | dict[str, Any] | None = None


# Finding


def conflicts(room: Room, merge: Merge) -> frozenset[str]:
    """Keys changed on both sides since they parted (OPEN-48); `replace` asks nobody.

    Two items of one name by two authors were never one, whenever each was added.
    """
    if merge.strategy is Strategy.REPLACE:
        return frozenset()
    ours, theirs = brought(room, merge), changed(room, merge.target, parted(room, merge))
    held = room.shelf.get(scope_of(merge.target), {})
    return frozenset(
        key
        for key, item in ours.items()
        if (key in theirs and (item or theirs[key]))
        or (item and key in held and item.author != held[key].author)
    )


def changed(room: Room, fork: str | None, base: int) -> dict[str, Item | None]:
    """What happened on a shelf since `base`: an item, or None where it was removed."""
    scope = scope_of(fork)
    items = {k: i for k, i in room.shelf.get(scope, {}).items() if i.changed > base}
    gone = {k: None for k, v in room.removed.get(scope, {}).items() if v > base}
    return {**gone, **items}


def brought(room: Room, merge: Merge) -> dict[str, Item | None]:
    """What the source changed; to remove an item of its own removes nobody else's.

    What is not the members' own stays where it is, and nobody chooses.
    """
    held = room.shelf.get(scope_of(merge.target), {})
    buried = room.buried.get(merge.source, {})
    return {
        key: item
        for key, item in changed(room, merge.source, parted(room, merge)).items()
        if not stays(room, key)
        and (item or key not in held or buried.get(key) == held[key].announced)
    }


def stays(room: Room, key: str) -> bool:
    """Decisions are of the place where they were ruled on, and the pact is of the repository."""
    return key.startswith(waiting.PREFIX) or shelf.is_mirrored(room, key)


def parted(room: Room, merge: Merge) -> int:
    """The version up to which source and target have one past."""
    ours, theirs = forks.lineage(room, merge.source), forks.lineage(room, merge.target)
    apart = frozenset(ours) ^ frozenset(theirs)
    return min(room.forks[fork].base for fork in apart if fork is not None)


def both(room: Room, merge: Merge, key: str) -> Iterator[Item]:
    """The item of that key on either side."""
    for fork in (merge.source, merge.target):
        if item := room.shelf.get(scope_of(fork), {}).get(key):
            yield item


# Settling


def check_resolutions(room: Room, ask: Ask, merge: Merge, answers: tuple[Resolution, ...]) -> None:
    """Each conflict has one answer, and there are no answers to anything else."""
    answered = [each.conflict_id for each in answers]
    found = conflicts(room, merge)
    seat = ask.actor.seat
    if any(not all(sees(item, seat) for item in both(room, merge, key)) for key in found):
        raise Refused(Why.FORBIDDEN, "There are conflicts about context that you cannot see")
    unknown = sorted(set(answered) - found)
    if unknown or len(answered) != len(set(answered)):
        raise Refused(
            Why.MALFORMED, f"No such conflict, or twice: {', '.join(unknown or answered)}"
        )
    if missing := sorted(found - set(answered)):
        detail = f"Unresolved: {', '.join(missing)}"
        raise Refused(Why.WRONG_STATE, detail, {"conflicts": missing})
    for each in answers:
        check_custom(room, ask, merge, each)


def check_custom(room: Room, ask: Ask, merge: Merge, answer: Resolution) -> None:
    """A value of one's own is context like any other."""
    if answer.resolution != "custom":
        return
    if answer.custom_value is None:
        raise Refused(Why.MALFORMED, f"custom_value is needed for {answer.conflict_id}")
    item = next(both(room, merge, answer.conflict_id))
    shelf.check_reserved(room, ask, item.key)
    quota.check_content(replace(item, content=answer.custom_value), ask.house.limits)


# Taking over


def taken_over(room: Room, merge: Merge, settled: tuple[Resolution, ...], version: int) -> Room:
    """The target's shelf after the merge, with what changed there marked for merges to come."""
    scope = scope_of(merge.target)
    before = room.shelf.get(scope, {})
    whole = merge.strategy is Strategy.REPLACE
    now = replaced(room, merge) if whole else joint(room, merge, settled)
    items = {key: marked(item, before.get(key), version) for key, item in now.items()}
    gone = {key: before[key].announced for key in before.keys() - now.keys()}
    return graves.bury(replace(room, shelf={**room.shelf, scope: items}), scope, gone, version)


def marked(item: Item, held: Item | None, version: int) -> Item:
    """Changed now, unless it is what lay there; a copy is for whom its original was for."""
    if held is not None and held.announced == item.announced:
        item = replace(item, visible_to=held.visible_to, changed=held.changed)
    return item if item == held else replace(item, changed=version)


def replaced(room: Room, merge: Merge) -> dict[str, Item]:
    """The source's shelf, beside what stays and what nobody in the source could ever see."""
    source = room.forks[merge.source]
    held = room.shelf.get(scope_of(merge.target), {})
    brings = room.shelf.get(scope_of(source.id), {})
    kept = {
        key: item
        for key, item in held.items()
        if stays(room, key) or not any(sees(item, seat) for seat in source.members)
    }
    return {key: item for key, item in brings.items() if not stays(room, key)} | kept


def joint(room: Room, merge: Merge, settled: tuple[Resolution, ...]) -> dict[str, Item]:
    """The target's shelf with what changed in the source, conflicts as they were settled."""
    now = dict(room.shelf.get(scope_of(merge.target), {}))
    answers = {each.conflict_id: each for each in settled}
    for key, item in brought(room, merge).items():
        chosen = choose(item, now.get(key), answers.get(key))
        if chosen is None:
            now.pop(key, None)
        else:
            now[key] = chosen
    return now


def choose(item: Item | None, held: Item | None, answer: Resolution | None) -> Item | None:
    """What becomes of one key."""
    if answer is None or answer.resolution == "use_source":
        return item
    if answer.resolution == "use_target":
        return held
    base = item or held
    named = narrowest(item, held)
    return base and replace(base, content=answer.custom_value, content_ref=None, visible_to=named)


def narrowest(*items: Item | None) -> Seats | None:
    """Those who could see each of them."""
    named = [shelf.audience(item) for item in items if item is not None]
    limits = [each for each in named if each is not None]
    return frozenset.intersection(*limits) if limits else None
