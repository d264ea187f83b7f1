"""Proposals bound to a decision: which step each one is, what holds it, which must be bound."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from accord.core.kernel.context import Command, EventOrEffect, Evolvers
from accord.core.kernel.decision_port import ItemRuling
from accord.core.kernel.effects import Relay
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Failure
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.room.approval import grants
from accord.core.room.approval.grants import ToolReject
from accord.core.room.field_types import Ids, ShortText
from accord.core.room.room_settings import Category
from accord.core.room.state import Room, StepRun, ToolProposal, without_keys
from accord.core.room.visibility import lineage, scope_of

DECISION_PREFIX = "decision:"
SNAPSHOT_SUFFIX, CONVERGENCE_SUFFIX = "#snapshot", "#convergence"
BATCH_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
Categories = frozenset[Category]
MAX_RUNS = 256


class DecisionLink(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`arguments.decision` of a proposal: the step of an item that it carries out."""

    batch: str
    item: str
    step: str


class DecisionStanding(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The kernel's current view of a step, shown to voters; only the server fills it in."""

    batch: ShortText
    item: ShortText
    step: ShortText
    verdict: ShortText
    state: ShortText
    confidence: ShortText
    sha256: ShortText
    convergence: ShortText | None = None


class DecisionHold(msgspec.Struct, frozen=True):
    """Why a proposal has no gate yet, and what would release it."""

    batch: str
    item: str
    step: str
    why: str
    until: str

    @property
    def sentence(self) -> str:
        """For the error message of a vote on a held proposal."""
        return f"is held by the decision {self.batch}: {self.why} {self.until}"


class ToolDropped(Event, frozen=True, kw_only=True, gc=False):
    """A held proposal was dropped before its gate opened."""

    name = "tool.dropped"

    said: ToolReject


def decision_link_of(tool: ToolProposal) -> DecisionLink | None:
    """The step that a proposal carries out; None if it is not bound to a decision."""
    return parse_decision_link(tool.arguments)


def parse_decision_link(arguments: Mapping[str, Any]) -> DecisionLink | None:
    try:
        return msgspec.convert(arguments.get("decision"), DecisionLink)
    except msgspec.ValidationError:
        return None


def check_decision_link(arguments: Mapping[str, Any]) -> None:
    """Refuse a malformed binding: ignoring it would let the proposal bypass the decision."""
    if "decision" not in arguments:
        return
    try:
        msgspec.convert(arguments["decision"], DecisionLink)
    except msgspec.ValidationError as error:
        detail = "arguments.decision must name batch, item and step, each as text"
        raise Refused(Reason.MALFORMED, f"{detail}, or be left out: {error}") from error


def server_item_content(room: Room, fork: str | None, key: str) -> Mapping[str, Any] | None:
    """The content of an item of the server's own; None if there is none."""
    item = room.shelf.get(scope_of(fork), {}).get(key)
    if item is None or item.author != SYSTEM or not isinstance(item.content, dict):
        return None
    return item.content


def item_ruling_for(room: Room, fork: str | None, link: DecisionLink) -> ItemRuling:
    """The kernel's ruling on an item; raises Refused if there is none."""
    snapshot = server_item_content(room, fork, f"{DECISION_PREFIX}{link.batch}{SNAPSHOT_SUFFIX}")
    # A single judge's opinion is not the decision, so no step can be bound to it.
    if snapshot is None or not BATCH_NAME.fullmatch(link.batch):
        raise Refused(Reason.NOT_FOUND, f"There is no decision {link.batch} here")
    if link.item not in snapshot["items"]:
        raise Refused(Reason.NOT_FOUND, f"The decision {link.batch} has no item {link.item}")
    return msgspec.convert(snapshot["items"][link.item], ItemRuling)


def ruling_objection(room: Room, tool: ToolProposal) -> str | None:
    """Why the decision does not allow a bound proposal yet; None if it does."""
    link = decision_link_of(tool)
    if link is None:
        return None
    ruling = item_ruling_for(room, tool.fork, link)
    if link.item in disputed_items(room, tool.fork, link.batch):
        return f"Independent judgements of {link.item} differ too much; settle that first"
    return None if ruling.allowed == link.step else ruling.why


def hold_reason(room: Room, tool: ToolProposal) -> str | None:
    """Like `ruling_objection`; a decision that was removed holds its proposals, too."""
    try:
        return ruling_objection(room, tool)
    except Refused as refusal:
        return refusal.detail


def disputed_items(room: Room, fork: str | None, batch: str) -> frozenset[str]:
    """Items on which independent judgements differ too much for anything to run."""
    key = f"{DECISION_PREFIX}{batch}{CONVERGENCE_SUFFIX}"
    comparison = server_item_content(room, fork, key) or {"items": ()}
    return frozenset(row["item"] for row in comparison["items"] if row["holds"])


def standing_of(room: Room, tool: ToolProposal) -> DecisionStanding | None:
    """What the kernel says about a proposal's step now; None if it is not bound."""
    link = decision_link_of(tool)
    snapshot = (
        server_item_content(room, tool.fork, f"{DECISION_PREFIX}{link.batch}{SNAPSHOT_SUFFIX}")
        if link
        else None
    )
    if link is None or snapshot is None or link.item not in snapshot["items"]:
        return None
    ruling = item_ruling_for(room, tool.fork, link)
    return DecisionStanding(
        **msgspec.structs.asdict(link),
        verdict=ruling.verdict,
        state=ruling.state,
        confidence=ruling.confidence,
        sha256=snapshot["sha256"],
        convergence=agreement_kind(room, tool.fork, link),
    )


def agreement_kind(room: Room, fork: str | None, link: DecisionLink) -> str | None:
    """How far independent judgements of an item agree; None if there is only one."""
    key = f"{DECISION_PREFIX}{link.batch}{CONVERGENCE_SUFFIX}"
    comparison = server_item_content(room, fork, key)
    rows = comparison["items"] if comparison else ()
    return next((row["kind"] for row in rows if row["item"] == link.item), None)


def hold_of(room: Room, tool: ToolProposal) -> DecisionHold | None:
    """What holds a proposal back; None if nothing does, or if it has started."""
    link, objection = decision_link_of(tool), hold_reason(room, tool)
    if link is None or objection is None or tool.started:
        return None
    return DecisionHold(
        **msgspec.structs.asdict(link),
        why=objection.rstrip(".") + ".",
        until=release_condition(room, tool, link),
    )


def release_condition(room: Room, tool: ToolProposal, link: DecisionLink) -> str:
    """What would release a held proposal, as a sentence."""
    try:
        ruling = item_ruling_for(room, tool.fork, link)
    except Refused:
        key = f"{DECISION_PREFIX}{link.batch}"
        return f"Add {key} with {link.item} again, or reject the proposal."
    if link.item in disputed_items(room, tool.fork, link.batch):
        return f"The judges of {link.item} must agree, or a human must remove one judgement."
    first = f"; {ruling.next} comes first" if ruling.next not in ("", link.step) else ""
    return f"Its gate opens once the rules allow {link.step}{first}."


def held_proposals(room: Room) -> Iterable[ToolProposal]:
    """Proposals without a grant and without an open gate."""
    gated = {gate.action for gate in room.gates.values()}
    return (t for t in room.tools.values() if t.grant is None and t.id not in gated)


def drop_held_proposals(room: Room, agent: str, reason: str) -> Iterator[EventOrEffect]:
    """Drop the held proposals of a member who leaves or is stopped."""
    for tool in held_proposals(room):
        if tool.agent == agent:
            yield from drop_proposal(room, tool, reason)


def drop_proposal(room: Room, tool: ToolProposal, reason: str) -> Iterator[EventOrEffect]:
    """Drop a held proposal in the server's name, and tell the room."""
    rejection = ToolReject(tool_proposal=tool.id, rejector=SYSTEM, reason=reason)
    yield ToolDropped(said=rejection, ref=tool.id, fork=tool.fork)
    notice = Failure(Reason.GATE_FAILED, reason, tool.id)
    yield Relay(notice, None if tool.fork is None else room.members_in(tool.fork))


def on_dropped(room: Room, event: ToolDropped, record: Record) -> Room:
    return grants.close_proposals(room, "rejected", event.said.tool_proposal)


def guarded_by(ruling: Mapping[str, Any] | None) -> Categories:
    """The categories that a ruling guards."""
    return frozenset(map(Category, ruling.get("guards", ()))) if ruling else frozenset()


def update_guards(
    command: Command, before: Categories, wanted: tuple[Category, ...] | UnsetType
) -> Categories:
    """The categories that a decision guards from now on; only humans change them."""
    if wanted is UNSET or frozenset(wanted) == before:
        return before
    if command.actor.kind is Kind.AGENT:
        raise Refused(Reason.FORBIDDEN, "Only humans change what a decision guards")
    return frozenset(wanted)


def check_guards(room: Room, tool: ToolProposal, categories: Categories) -> None:
    """Refuse a proposal of a guarded category without a binding; forks inherit guards."""
    required = {
        key: covered
        for key, guarded in guards_in_scope(room, tool)
        if (covered := covered_categories(guarded, categories))
    }
    link = decision_link_of(tool)
    key = f"{DECISION_PREFIX}{link.batch}" if link else ""
    bound = covered_categories(
        guarded_by(server_item_content(room, tool.fork, key + SNAPSHOT_SUFFIX)), categories
    )
    missing = frozenset[Category]().union(*required.values()) - bound
    if missing:
        detail = f"Such proposals must be bound to {', '.join(sorted(required))}"
        raise Refused(
            Reason.WRONG_STATE, f"{detail}: name its batch, item and step in arguments.decision"
        )


def guards_in_scope(room: Room, tool: ToolProposal) -> Iterator[tuple[str, Categories]]:
    """The decisions of this fork and of its ancestors, with the categories they guard."""
    for fork in lineage(room, tool.fork):
        for key in room.shelf.get(scope_of(fork), {}):
            if key.startswith(DECISION_PREFIX) and key.endswith(SNAPSHOT_SUFFIX):
                yield (
                    key.removesuffix(SNAPSHOT_SUFFIX),
                    guarded_by(server_item_content(room, fork, key)),
                )


def covered_categories(guarded: Categories, categories: Categories) -> Categories:
    """Which of the categories are guarded; `all` on either side matches every one."""
    if Category.ALL in guarded:
        return categories
    return guarded if Category.ALL in categories else guarded & categories


def remember_run(room: Room, proposal: str) -> Room:
    """Remember a step that ran while the kernel allowed it, so that it can be cited as evidence."""
    tool = room.tools.get(proposal)
    link = decision_link_of(tool) if tool else None
    if tool is None or link is None or hold_reason(room, tool) is not None:
        return room
    tier = item_ruling_for(room, tool.fork, link).tier
    run = StepRun(tool.id, link.batch, link.item, link.step, tier, tool.fork)
    newest = list({**room.runs, tool.id: run}.items())[-MAX_RUNS:]
    return replace(room, runs=dict(newest))


def runs_of(room: Room, fork: str | None, batch: str) -> Iterator[StepRun]:
    """The runs for a decision in this fork that can still be cited."""
    return (run for run in room.runs.values() if (run.batch, run.fork) == (batch, fork))


def outdated_runs(room: Room, fork: str | None, batch: str, items: frozenset[str] | None) -> Ids:
    """Runs that no longer count because their items have changed since; `None` means all items."""
    runs = runs_of(room, fork, batch)
    return tuple(run.id for run in runs if items is None or run.item in items)


def without_runs(room: Room, ids: Ids) -> Room:
    return replace(room, runs=without_keys(room.runs, *ids)) if ids else room


EVOLVE: Evolvers = {ToolDropped: on_dropped}
