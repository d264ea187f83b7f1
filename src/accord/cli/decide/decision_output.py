"""Decisions and diagnostics as terminal text and as JSON."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from accord.cli.json_values import finding_for_json
from accord.show import style
from accord.show.gate_card import CONVERGENCE_MEASURES
from accord.show.text import one_line, wrap

if TYPE_CHECKING:
    from accord.core.docket import DecisionOutcome
    from accord.core.docket.convergence import PeerConvergence
    from accord.core.docket.model import DecisionItem

MAX_NEXT_STEPS = 5
INDENT = " " * 10
VERDICT_STYLES: dict[str, style.Style] = {
    "DO NOW": style.green,
    "DO LATER": style.yellow,
    "DISCARD": style.red,
}
# An item that is being probed has the verdict DO NOW, but only its trial may run yet.
PROBING, PROBE = "PROBING", "PROBE"
PROBE_EXPLANATION = "a trial comes first; its result decides whether the rest is done"
COMPARISON_COLUMNS = ("id", "class", "next_action", "VA", "GA", "SO", "CD")


def render_outcome(outcome: "DecisionOutcome") -> Iterator[str]:
    """The items with their reasons, and the next steps, for a terminal."""
    from accord.core.docket.rendering.snapshot_writer import executor_sort_key
    from accord.core.docket.rules.step_plan import has_executable_step

    yield style.dim(f"batch {one_line(outcome.batch_id)}")
    for item in outcome.items:
        yield ""
        yield from render_item(item)
    ready = sorted(
        (item for item in outcome.items if has_executable_step(item)), key=executor_sort_key
    )
    yield ""
    if ready:
        yield style.bold("Next")
        for item in ready[:MAX_NEXT_STEPS]:
            yield f"  {item.id}  {item.next_step.action if item.next_step else ''}"
    if outcome.question:
        yield f"{style.bold('Question')}  {one_line(outcome.question)}"
    yield style.dim("To continue later, save the snapshot: the same command with > FILE.")


def render_item(item: "DecisionItem") -> Iterator[str]:
    """The lines about one item."""
    from accord.core.docket.triggers import TRIGGER_TEXT

    title = f"  {one_line(item.title)}" if item.title != item.id else ""
    yield f"{styled_verdict(item)}  {style.bold(item.id)}{title}"
    sure = f"impact {item.impact}, confidence {item.confidence}, evidence {item.best_evidence_tier}"
    yield style.dim(f"{INDENT}{item.previous_state} → {item.state}; {sure}")
    if item.state == PROBING:
        yield from map(style.dim, wrap(PROBE_EXPLANATION, INDENT))
    if item.trigger != "NONE":
        yield f"{INDENT}{style.yellow(item.trigger)}"
        yield from map(style.dim, wrap(TRIGGER_TEXT[item.trigger], INDENT))
    for number, step in enumerate(item.planned_steps, 1):
        mark = (
            "→"
            if number == item.next_number
            else "✓"
            if step.is_complete
            else "✗"
            if step.has_failed
            else " "
        )
        minutes = style.dim(f"{step.minutes} min")
        yield f"        {mark} S{number} {one_line(step.action_and_output)}  {minutes}"


def styled_verdict(item: "DecisionItem") -> str:
    """The verdict in colour; green only if the whole item may be done."""
    if item.state == PROBING:
        return style.cyan(f"{PROBE:8}")
    return VERDICT_STYLES[item.verdict](f"{item.verdict:8}")


def print_comparison(peers: list["PeerConvergence"]) -> None:
    """Print the comparison table and the meaning of its columns."""
    from accord.show.output import print_table

    print_table(
        COMPARISON_COLUMNS,
        [(p.id, p.kind, p.next_action, str(p.va), str(p.ga), p.so, str(p.cd)) for p in peers],
    )
    print()
    for name, meaning in CONVERGENCE_MEASURES:
        print(style.dim(f"{name}  {meaning}"))


def outcome_for_json(outcome: "DecisionOutcome") -> dict[str, Any]:
    from accord.core.docket import snapshot_hash
    from accord.core.docket.rendering import snapshot_writer

    severity = "warning" if outcome.is_valid else "error"
    return {
        "valid": outcome.is_valid,
        "invalid_reason": outcome.invalid_reason or None,
        "batch_id": outcome.batch_id,
        "ask": outcome.question or None,
        "items": [_item_for_json(item) for item in outcome.items],
        "findings": [diagnostic_for_json(diag, severity) for diag in outcome.diagnostics],
        "snapshot": snapshot_writer.render_fenced(outcome),
        "sha256": snapshot_hash(outcome),
    }


def _item_for_json(item: "DecisionItem") -> dict[str, Any]:
    step = item.next_step
    return {
        "id": item.id,
        "title": item.title,
        "previous_state": item.previous_state,
        "state": item.state,
        "verdict": item.verdict,
        "impact": item.impact,
        "urgency": item.urgency,
        "score": float(item.score) if item.score.replace(".", "").isdigit() else None,
        "confidence": item.confidence,
        "evidence_tier": item.best_evidence_tier,
        "critical_driver": item.critical_driver,
        "trigger": item.trigger,
        "gate": item.dominant_gate,
        "falsification_debt": item.falsification_debt,
        "closure": item.closure_tier,
        "next": {"token": step.output, "step": step.render(item.next_number)} if step else None,
        "steps": [planned.render(number) for number, planned in enumerate(item.planned_steps, 1)],
    }


if TYPE_CHECKING:
    from accord.core.docket.diagnostics import Diagnostic
    from accord.core.docket.validation.snapshot_form import Flaw


def print_diagnostics(diags: list["Diagnostic"], name: str, text: str, skip: int = 0) -> None:
    """Print each diagnostic with its location, the quoted line and a hint."""
    lines = text.split("\n")
    for diag in diags:
        at = _line_to_quote(diag, lines, diag.line - skip)
        where = f"{one_line(name)}:{at}" if at > 0 else one_line(name)
        about = f" {diag.item}" if diag.item != "-" else ""
        colon = ":" if about and diag.detail else ""
        what = f"{diag.code}{about}{colon} {one_line(diag.detail)}".rstrip()
        print(f"{bold_on_stderr(where)}: {what}", file=sys.stderr)
        if 0 < at <= len(lines) and lines[at - 1].strip():
            print(f"    {at} | {one_line(lines[at - 1])[:100]}", file=sys.stderr)
        print(f"    {diag.hint}", file=sys.stderr)


def _line_to_quote(diag: "Diagnostic", lines: list[str], at: int) -> int:
    """The line to quote: for a step its own line, otherwise that of its item."""
    if not diag.code.startswith("STEP_") or at < 1:
        return at
    step = diag.detail.partition(": ")[2]
    below = (n for n in range(at, len(lines) + 1) if step and step in lines[n - 1])
    return next(below, at)


def bold_on_stderr(text: str) -> str:
    """Bold if standard error is a terminal."""
    return f"\x1b[1m{text}\x1b[0m" if style.supports_color(sys.stderr) else text


def diagnostic_for_json(diag: "Diagnostic | Flaw", severity: str = "error") -> dict[str, Any]:
    """A flaw of a batch, judgement or snapshot, for programs."""
    return finding_for_json(
        diag.detail,
        diag.hint,
        severity=severity,
        line=diag.line or None,
        code=diag.code,
        about=None if diag.item == "-" else diag.item,
    )
