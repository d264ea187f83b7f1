"""Decisions by rule: a batch on the shelf is ruled on, and what is bound to it waits for that."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Ask, Deciders, Event, Evolvers, Fact, Record
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.rulings import Judge, Ran, Ruling
from accord.core.kernel.times import iso
from accord.core.room import gates, guards, quota, shelf, witness
from accord.core.room.fields import Ids
from accord.core.room.naming import called
from accord.core.room.places import scope_of
from accord.core.room.shelf import (
    ContextAdd,
    ContextRemove,
    ContextRemoved,
    ContextUpdate,
    item_of,
    put,
)
from accord.core.room.state import Category, Item, Room, Tool, without
from accord.core.room.waiting import CONVERGENCE, PREFIX, SNAPSHOT, bound, held, hindrance, told

# `decision:release` is a batch, `decision:release:bob` an independent judgement of the same.
KEY = re.compile(r"decision:([A-Za-z0-9_-]{1,64})(:[A-Za-z0-9_@.-]{1,64})?")
MOST_HOSTS = 8


class Submitted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What lies under `decision:<id>`.

    Proposals of the categories in `guards` must be bound to an item of it; where it is left out,
    that stays as it was. What an agent claims to have observed, `evidence` backs with the runs of
    steps that are bound to the item.
    """

    batch: str
    guards: tuple[Category, ...] | UnsetType = UNSET
    evidence: Ids = ()


class Ruled(Event, frozen=True, kw_only=True, gc=False):
    """The kernel said something; everybody hears it as context of the server's.

    `spent` are runs that are older than the news of their item, and back none any more.
    """

    name = "decision.ruled"

    said: ContextAdd
    spent: Ids = ()


# Reading


def submitted(item: Item) -> Submitted:
    """What an item holds, as text or as an object."""
    if isinstance(item.content, str):
        return Submitted(item.content)
    try:
        return msgspec.convert(item.content, Submitted)
    except msgspec.ValidationError as error:
        detail = f"{item.key} holds a batch, and maybe guards and evidence: {error}"
        raise Refused(Why.MALFORMED, detail) from error


# Deciding


def add(room: Room, ask: Ask, body: ContextAdd) -> Iterator[Fact]:
    """Something for the shelf; a batch is ruled on as well."""
    yield from shelf.add(room, ask, body)
    if body.key.startswith(PREFIX):
        yield from ruled(room, ask, item_of(body, ask.actor.seat))


def update(room: Room, ask: Ask, body: ContextUpdate) -> Iterator[Fact]:
    """A change; that of a batch goes on from where it stood."""
    yield from shelf.update(room, ask, body)
    if body.key.startswith(PREFIX):
        item = shelf.find(room, ask, body.key)
        found = KEY.fullmatch(body.key)
        if found and found[2] and item.author != ask.actor.seat:
            raise Refused(Why.FORBIDDEN, f"{body.key} is the judgement of {item.author}")
        yield from ruled(room, ask, shelf.updated(item, body))


def remove(room: Room, ask: Ask, body: ContextRemove) -> Iterator[Fact]:
    """Away; with a batch goes what was made of it."""
    yield from shelf.remove(room, ask, body)
    if body.key.startswith(PREFIX):
        check_removable(room, ask, shelf.find(room, ask, body.key))
        made = body.key + SNAPSHOT
        if told(room, ask.message.fork, made) is not None:
            yield unsaid(ask, made, body.reason)
        room = cleared(room, ask.message.fork, body.key, made)
        if found := KEY.fullmatch(body.key):
            yield from weighed(room, ask, found[1])


def check_removable(room: Room, ask: Ask, item: Item) -> None:
    """What the server made goes with its decision; agents take back only what is theirs."""
    if item.author == SYSTEM:
        raise Refused(Why.FORBIDDEN, f"{item.key} is the server's; remove the decision itself")
    guarded = guards.of(told(room, ask.message.fork, item.key + SNAPSHOT))
    if ask.actor.kind is Kind.AGENT and (guarded or item.author != ask.actor.seat):
        raise Refused(Why.FORBIDDEN, f"{item.key} is for people to remove")


def ruled(room: Room, ask: Ask, item: Item) -> Iterator[Fact]:
    """What follows from a batch: the ruling, the comparison, the gates that may open now."""
    found = KEY.fullmatch(item.key)
    if found is None or item.visible_to is not None:
        detail = "A decision is for everybody, under decision:<id> or decision:<id>:<who judges>"
        raise Refused(Why.MALFORMED, detail)
    judge: Judge | None = ask.house.judge
    if judge is None:
        raise Refused(Why.WRONG_STATE, "No decision kernel is at hand here")
    said, fork = submitted(item), ask.message.fork
    if found[2] and said.guards:
        raise Refused(Why.MALFORMED, f"{PREFIX}{found[1]} itself says what it guards")
    check_independent(room, ask, item, found[1])
    before = told(room, fork, item.key + SNAPSHOT)
    kinds = guards.settled(ask, guards.of(before), said.guards)
    ruling = judge.rule(said.batch, before["snapshot"] if before else "", iso(ask.at)[:10])
    if ruling.problem:
        raise Refused(Why.MALFORMED, f"{item.key}: {ruling.problem}")
    relied = before is not None and (item.author != ask.actor.seat or bool(kinds))
    known = before["items"] if before and relied else {}
    witness.check(room, ask, found[1], ruling, said.evidence, known)
    room = put(room, scope_of(fork), item)
    named = frozenset(claim.item for claim in ruling.claims) if before else None
    spent = () if found[2] else witness.old(room, fork, found[1], named)
    yield from announced(room, ask, found[1], item.key, content_of(ruling, kinds), spent)


def check_independent(room: Room, ask: Ask, item: Item, batch: str) -> None:
    """UNI-15: nobody judges one question twice."""
    for key, other in room.shelf.get(scope_of(ask.message.fork), {}).items():
        found = KEY.fullmatch(key)
        if found and found[1] == batch and key != item.key and other.author == item.author:
            raise Refused(Why.FORBIDDEN, f"{item.author} has judged {batch} already, as {key}")


def content_of(ruling: Ruling, kinds: guards.Kinds) -> dict[str, Any]:
    """A ruling as it lies on the shelf."""
    return {
        "snapshot": ruling.snapshot,
        "sha256": ruling.hash,
        "items": msgspec.to_builtins(ruling.items),
        "guards": sorted(kinds),
    }


def announced(
    room: Room, ask: Ask, batch: str, key: str, content: dict[str, Any], spent: Ids = ()
) -> Iterator[Fact]:
    """The ruling as context, and what follows from it."""
    yield from kept(room, ask, key + SNAPSHOT, content, spent)
    room = shelved(room, ask.message.fork, key + SNAPSHOT, content)
    yield from weighed(room, ask, batch)


def weighed(room: Room, ask: Ask, batch: str) -> Iterator[Fact]:
    """What independent judgements make of a decision, and the gates that open."""
    key, fork = f"{PREFIX}{batch}{CONVERGENCE}", ask.message.fork
    compared = convergence(room, ask, batch)
    if compared is not None:
        yield from kept(room, ask, key, compared)
        room = shelved(room, fork, key, compared)
    elif told(room, fork, key) is not None:
        yield unsaid(ask, key, "There is one judgement")
        room = cleared(room, fork, key)
    yield from freed(room, ask, batch)


def convergence(room: Room, ask: Ask, batch: str) -> dict[str, Any] | None:
    """How far the judgements of a batch agree, where there are several."""
    keys = sorted(room.shelf.get(scope_of(ask.message.fork), {}))
    own = f"{PREFIX}{batch}"
    hosts = [k for k in keys if k == own + SNAPSHOT or (k.startswith(own + ":") and SNAPSHOT in k)]
    if len(hosts) < 2:
        return None
    if len(hosts) > MOST_HOSTS:
        raise Refused(Why.FULL, f"{MOST_HOSTS} judgements of one question are enough")
    said = [told(room, ask.message.fork, key) for key in hosts]
    rows, table = ask.house.judge.compare([each["snapshot"] for each in said if each])
    names = [key.removesuffix(SNAPSHOT) for key in hosts]
    return {"hosts": names, "items": list(msgspec.to_builtins(rows)), "table": table}


def unsaid(ask: Ask, key: str, reason: str) -> ContextRemoved:
    """Context of the server's that goes."""
    return ContextRemoved(said=ContextRemove(key=key, reason=reason), fork=ask.message.fork)


def cleared(room: Room, fork: str | None, *keys: str) -> Room:
    """The room without those on its shelf."""
    scope = scope_of(fork)
    return replace(room, shelf={**room.shelf, scope: without(room.shelf.get(scope, {}), *keys)})


def kept(
    room: Room, ask: Ask, key: str, content: dict[str, Any], spent: Ids = ()
) -> Iterator[Fact]:
    """Context of the server's own; it takes room like any."""
    said = ContextAdd(key=key, content_type="structured", content=content, tags=("decision",))
    quota.check_content(item_of(said, SYSTEM), ask.house.limits)
    after = shelved(room, ask.message.fork, key, content)
    quota.check(room, after, ask.house.limits, "The context is full")
    yield Ruled(said=said, fork=ask.message.fork, spent=spent)


def shelved(room: Room, fork: str | None, key: str, content: dict[str, Any]) -> Room:
    """The room with that on its shelf."""
    said = ContextAdd(key=key, content_type="structured", content=content, tags=("decision",))
    return put(room, scope_of(fork), item_of(said, SYSTEM))


def freed(room: Room, ask: Ask, batch: str) -> Iterator[Fact]:
    """A gate for every proposal that waited for this decision and need not any more."""
    for tool in held(room):
        link = bound(tool)
        mine = link is not None and link.batch == batch and tool.fork == ask.message.fork
        if mine and hindrance(room, tool) is None:
            yield gates.for_tool(room, ask, tool, called(tool.name, tool.category))


def ran(room: Room, ask: Ask, tool: Tool, went: Ran) -> Iterator[Fact]:
    """A bound step was run: that is evidence, and the kernel looks again, where the tool is.

    Where it cannot, because the room is full or has no kernel, the result is one all the same.
    What was never begun, and is held by now, was not to be run.
    """
    link, judge = bound(tool), ask.house.judge
    said = told(room, tool.fork, f"{PREFIX}{link.batch}{SNAPSHOT}") if link else None
    if link is None or said is None or judge is None:
        return
    if not tool.started and hindrance(room, tool) is not None:
        return
    went = went._replace(item=link.item, step=link.step)
    ruling = judge.after(said["snapshot"], went, iso(ask.at)[:10])
    if ruling.problem:
        return
    content = content_of(ruling, guards.of(said))
    ask = replace(ask, message=replace(ask.message, fork=tool.fork))
    with suppress(Refused):
        yield from list(announced(room, ask, link.batch, PREFIX + link.batch, content))


# Folding


def on_ruled(room: Room, event: Ruled, record: Record) -> Room:
    """The server's own item, or its new version."""
    item = item_of(event.said, SYSTEM)
    now = replace(item, changed=record.version, announced=record.id)
    return put(witness.forgotten(room, event.spent), scope_of(record.fork), now)


DECIDE: Deciders = {ContextAdd: add, ContextUpdate: update, ContextRemove: remove}
EVOLVE: Evolvers = {Ruled: on_ruled}
