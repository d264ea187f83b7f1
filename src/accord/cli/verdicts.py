"""Decisions on a screen and as data: each item, and how far two opinions agree."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from accord.cli.remarks import remark
from accord.show import paint
from accord.show.cards import MEASURES
from accord.show.text import line, wrapped

if TYPE_CHECKING:
    from accord.core.docket import Outcome
    from accord.core.docket.convergence import Peer
    from accord.core.docket.model import Item

MOST_NEXT = 5
INDENT = " " * 10
COLOURS: dict[str, paint.Paint] = {
    "DO NOW": paint.green,
    "DO LATER": paint.yellow,
    "DISCARD": paint.red,
}
# The verdict of what is probed is DO NOW, but nothing more than the trial may be done yet.
PROBING, PROBE = "PROBING", "PROBE"
TRIAL = "a trial comes first: what it shows decides whether the rest is done"
HEADS = ("id", "class", "next_action", "VA", "GA", "SO", "CD")


def shown(outcome: "Outcome") -> Iterator[str]:
    """For a person at a screen: each item, why it stands there, and what comes next."""
    from accord.core.docket.panels import executor_order
    from accord.core.docket.plan import executable

    yield paint.dim(f"batch {line(outcome.batch_id)}")
    for item in outcome.items:
        yield ""
        yield from card(item)
    ready = sorted((each for each in outcome.items if executable(each)), key=executor_order)
    yield ""
    if ready:
        yield paint.bold("Next")
        for each in ready[:MOST_NEXT]:
            yield f"  {each.id}  {each.next_step.action if each.next_step else ''}"
    if outcome.ask:
        yield f"{paint.bold('Question')}  {line(outcome.ask)}"
    yield paint.dim("The snapshot to go on from: the same command with > FILE, or --text.")


def card(item: "Item") -> Iterator[str]:
    """One item in a few lines."""
    from accord.core.docket.meanings import MEANING

    title = f"  {line(item.title)}" if item.title != item.id else ""
    yield f"{verdict(item)}  {paint.bold(item.id)}{title}"
    sure = f"impact {item.impact}, confidence {item.confidence}, evidence {item.tier}"
    yield paint.dim(f"{INDENT}{item.before} → {item.state}; {sure}")
    if item.state == PROBING:
        yield from map(paint.dim, wrapped(TRIAL, INDENT))
    if item.trigger != "NONE":
        yield f"{INDENT}{paint.yellow(item.trigger)}"
        yield from map(paint.dim, wrapped(MEANING[item.trigger], INDENT))
    for number, step in enumerate(item.plan, 1):
        mark = "→" if number == item.next else "✓" if step.complete else "✗" if step.failed else " "
        yield f"        {mark} S{number} {line(step.short)}  {paint.dim(f'{step.minutes} min')}"


def verdict(item: "Item") -> str:
    """Green is for what may be done as a whole."""
    if item.state == PROBING:
        return paint.cyan(f"{PROBE:8}")
    return COLOURS[item.verdict](f"{item.verdict:8}")


def compared(peers: list["Peer"]) -> None:
    """For a person at a screen: the table, and what its short names mean."""
    from accord.show.output import table

    table(
        HEADS, [(p.id, p.kind, p.next_action, str(p.va), str(p.ga), p.so, str(p.cd)) for p in peers]
    )
    print()
    for name, meaning in MEASURES:
        print(paint.dim(f"{name}  {meaning}"))


def as_data(outcome: "Outcome") -> dict[str, Any]:
    """For programs."""
    from accord.core.docket import emit, snapshot_hash

    return {
        "valid": outcome.valid,
        "invalid_reason": outcome.invalid or None,
        "batch_id": outcome.batch_id,
        "ask": outcome.ask or None,
        "items": [_item(each) for each in outcome.items],
        "diagnostics": [remark(each) for each in outcome.diags],
        "snapshot": emit.fenced(outcome),
        "sha256": snapshot_hash(outcome),
    }


def _item(item: "Item") -> dict[str, Any]:
    step = item.next_step
    return {
        "id": item.id,
        "title": item.title,
        "previous_state": item.before,
        "state": item.state,
        "verdict": item.verdict,
        "impact": item.impact,
        "urgency": item.urgency,
        "score": float(item.score) if item.score.replace(".", "").isdigit() else None,
        "confidence": item.confidence,
        "evidence_tier": item.tier,
        "critical_driver": item.critical,
        "trigger": item.trigger,
        "gate": item.gate,
        "falsification_debt": item.debt,
        "closure": item.closure,
        "next": {"token": step.output, "step": step.line(item.next)} if step else None,
        "steps": [each.line(number) for number, each in enumerate(item.plan, 1)],
    }
