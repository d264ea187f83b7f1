"""An outcome as the one block of text that is state; the same outcome gives the same bytes."""

import hashlib
from collections.abc import Callable, Iterator

from accord.core.docket import blocks, panels
from accord.core.docket.model import Item, Outcome
from accord.core.docket.text import ascii_only, shown
from accord.core.docket.words import Surface

STATE_LINE = "STATE: DECISION.TEST.FINAL"
FENCE = "```"

Part = Callable[[Item, Outcome], Iterator[str]]


def block(outcome: Outcome) -> str:
    """The lines between the fences, each ended."""
    return "".join(f"{ascii_only(line.rstrip())}\n" for line in lines(outcome))


def fenced(outcome: Outcome) -> str:
    """The block as it is pasted."""
    return f"{FENCE}text\n{block(outcome)}{FENCE}\n"


def snapshot_hash(outcome: Outcome) -> str:
    """SHA-256 over the block; it is kept beside the block, never in it."""
    return hashlib.sha256(block(outcome).encode()).hexdigest()


def lines(outcome: Outcome) -> Iterator[str]:
    """Every line of the block."""
    yield STATE_LINE
    if not outcome.valid:
        yield from _invalid(outcome)
        return
    yield from panels.user_panel(outcome)
    yield from panels.panel(outcome)
    yield "[QUEUE]"
    yield from (panels.row(item) for item in outcome.items)
    if outcome.config.recovery:
        yield "[RECOVERY_INPUT]"
        yield from recovery(outcome)
    for item in outcome.items:
        yield from of_item(item, outcome)


def _invalid(outcome: Outcome) -> Iterator[str]:
    """What may be said of a run that must not be used."""
    verdict = ["OutputValidity: INVALID", f"InvalidReason: {outcome.invalid}"]
    yield from ["[USER_PANEL]", f"BatchID: {outcome.batch_id}", *verdict]
    yield from ["[PANEL]", "Protocol: PA_PVP", f"BatchID: {outcome.batch_id}", *verdict]
    if outcome.coverage:
        yield f"CoverageDiff: {outcome.coverage}"


# Which blocks an item shows, in this order, by how much of it is shown.
SURFACES: dict[Surface, tuple[Part, ...]] = {
    Surface.MIN_SURFACE: (
        *(blocks.panel, blocks.derived, blocks.steps, blocks.audit, blocks.small_log),
        blocks.next_step,
    ),
    Surface.MIN: (
        *(blocks.panel, blocks.derived, blocks.steps, blocks.audit, blocks.probe),
        *(blocks.log, blocks.next_step),
    ),
    Surface.DEBUG: (
        *(blocks.panel, blocks.derived, blocks.steps, blocks.audit, blocks.model),
        *(blocks.binding, blocks.acquisition, blocks.alternative, blocks.probe, blocks.log),
        *(blocks.review, blocks.next_step),
    ),
    Surface.DELTA: (
        *(blocks.derived, blocks.delta, blocks.verdict_update, blocks.steps, blocks.next_step),
    ),
}


def of_item(item: Item, outcome: Outcome) -> Iterator[str]:
    """The blocks of one item."""
    yield f"[ITEM id={item.id}]"
    for part in SURFACES[item.surface]:
        yield from part(item, outcome)


def recovery(outcome: Outcome) -> Iterator[str]:
    """The whole batch as input again."""
    pool = shown(outcome.pool) if outcome.pool else ""
    yield (
        f"<<<B exec_capability={outcome.runtime} close_policy={outcome.close_policy}"
        f" ssot_scale={outcome.scale} resource_pool={pool} batch_id={outcome.batch_id}>>>"
    )
    for item in outcome.items:
        yield f"<<<I id={item.id}>>>"
        yield "<<<PREV>>>"
        yield from of_item(item, outcome)
        yield "<<<END>>>"
