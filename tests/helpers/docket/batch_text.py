"""Builds input text for the decision kernel in the rulebook's notation."""

import json
from typing import Any

from accord.core import docket
from accord.core.docket.model import DecisionItem, DecisionOutcome, KernelConfig
from accord.core.docket.parsing import snapshot_parser
from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.snapshot import DecisionSnapshot

LEVELS = {"H": "HIGH", "M": "MED", "L": "LOW"}
DIMENSIONS = ("Benefit", "Cost", "Risk", "CostOfDelay")
CONSTRAINT_SIGNATURE = "ENV=staging|SCALE=M|DATA=R|TIME=10m|CONSTRAINTS=flag_c,svc_b"
PLAN = "- act\nGoal state: it works\nHard constraint: no outage"
THIN_PLAN = "just do it"


def ratings(
    text: str, driver: str = "drv", confidence: str = "MED", **more: Any
) -> dict[str, dict[str, Any]]:
    """Ratings of the four dimensions from letters such as `HLLM`."""
    each = {"drivers": [driver], "confidence": confidence, "evidence_tier": "SIMULATED", **more}
    return {
        dim: {"rating": LEVELS[letter], **each}
        for dim, letter in zip(DIMENSIONS, text, strict=True)
    }


def valid_judgement(name: str, driver: str = "drv", **changes: Any) -> dict[str, Any]:
    """A valid judgement with these changes; None removes a key."""
    marks = changes.pop("ratings", "HLLM")
    confidence = changes.pop("confidence", "MED")
    judge: dict[str, Any] = {
        "domain_type": "Deterministic",
        "critical_driver": driver,
        "proposed_verdict": "DO NOW",
        "binding": ratings(marks, driver, confidence),
        "steps": [step("Ship", name, f"{name}_shipped=YES/NO", 30, "ci_red")],
    } | changes
    return {key: value for key, value in judge.items() if value is not None}


def step(
    verb: str, what: str, output: str = "a_ok=YES/NO", minutes: int = 10, fail: str = "bad"
) -> str:
    """The line of a step."""
    return f"{verb} {what} -> {output} | timebox<={minutes}m | fail_if={fail}"


def probe(driver: str = "drv", **changes: Any) -> dict[str, Any]:
    """A probe that could disprove the driver's assumption."""
    return {
        "target_driver": driver,
        "decision_context_id": "ctx1",
        "decision_context_driver": driver,
        "decision_context_metric": "error_rate",
        "constraint_signature": CONSTRAINT_SIGNATURE,
        "kill_switch_condition": "error_rate>1.0",
        "kill_switch_threshold": "1.0",
        "context_match": "YES",
        "representativeness": "HIGH",
        "evidence_tier": "SIMULATED",
        "status": "ACTIVE",
    } | changes


def item(
    name: str,
    judge: dict[str, Any] | None = None,
    *,
    attrs: str = "",
    plan: str | None = PLAN,
    prev: str = "",
    more: str = "",
) -> str:
    """An item with its wrapper."""
    parts = [f"<<<I id={name} {attrs}>>>"]
    if plan is not None:
        parts += ["<<<PLAN>>>", plan]
    if judge is not None:
        parts += ["<<<JUDGE>>>", json.dumps(judge)]
    if prev:
        parts += ["<<<PREV>>>", prev]
    if more:
        parts.append(more)
    return "\n".join([*parts, "<<<END>>>", ""])


def evidence(tier: str = "REAL", text: str = "seen in production") -> str:
    """A line of new evidence."""
    return f"<<<NEW_EVIDENCE evidence_tier={tier}>>>\n{text}"


CHANGE_BLOCK = "<<<CHANGE>>>\n- the deadline moved"


def result(number: int, status: str = "COMPLETED", **attrs: str) -> str:
    """The result line of a step."""
    more = " ".join(f"{key}={value}" for key, value in attrs.items())
    return f"<<<RESULT step=S{number} status={status} {more}>>>"


def previous_block(
    state: str,
    name: str = "A",
    *,
    steps: tuple[str, ...] = (),
    derived: str = "",
    log: str = "",
    **changes: str,
) -> str:
    """An item block as an earlier run printed it."""
    later = state in {"STANDBY", "DRAFT", "EXPIRED"}
    fields = {
        "id": name,
        "mode": "PLAN",
        "profile": "FULL",
        "domain_type": "Deterministic",
        "state": f"prev_state=DRAFT, new_state={state}",
        "verdict": "DO LATER" if later else "DISCARD" if state == "DISCARDED" else "DO NOW",
        "impact": "HIGH",
        "urgency": "MED",
        "score": "92.9",
        "missing_ratings": "NO",
        "critical_driver_confidence": "MED",
        "critical_driver": "drv",
        "trigger": "NONE",
    } | changes
    lines = [f"[ITEM id={name}]", "[ITEM_PANEL]", *(f"{k}: {v}" for k, v in fields.items())]
    lines += ["[DERIVED]", "best_evidence_tier: SIMULATED"]
    lines += [each for each in derived.split("\n") if each]
    lines += ["[STEPS]", *(f"S{n}: {each}" for n, each in enumerate(steps, 1))]
    lines += ["[PROBE_LOG]", log] if log else []
    return "\n".join(lines)


def run_batch(text: str, **config: Any) -> DecisionOutcome:
    """Run the kernel on a text."""
    settings = KernelConfig(**config)
    return docket.run(docket.parse_batch(text), settings)


def single_item(outcome: DecisionOutcome) -> DecisionItem:
    """The only item of an outcome."""
    (only_item,) = outcome.items
    return only_item


def item_named(outcome: DecisionOutcome, name: str) -> DecisionItem:
    """The first item with that name."""
    return next(each for each in outcome.items if each.id == name)


def diagnostic_codes(outcome: DecisionOutcome) -> set[str]:
    """The codes of all diagnostics."""
    return {each.code for each in outcome.diagnostics}


COMPLEX_DOMAIN: dict[str, Any] = {"domain_type": "Complex"}


SHIP_STEP = step("Ship", "A", "A_shipped=YES/NO", 30, "ci_red")


def delta_item(prev: str, judgement: dict[str, Any] | None = None, more: str = "") -> str:
    """Item A continued from an earlier block."""
    return item("A", judgement, plan=None, prev=prev, more=more)


def step_outputs(outcome: DecisionOutcome, name: str = "A") -> list[str]:
    """The outputs of an item's steps."""
    return [each.output for each in item_named(outcome, name).planned_steps]


def parsed_snapshot(outcome: DecisionOutcome) -> DecisionSnapshot:
    """The outcome as a reader of its text sees it."""
    return snapshot_parser.parse_snapshot(snapshot_writer.render_block(outcome).splitlines())


def run_next(before: DecisionOutcome, *wrapped: str, **config: Any) -> DecisionOutcome:
    """The next run: the previous snapshot plus new items."""
    return run_batch(snapshot_writer.render_fenced(before) + "".join(wrapped), **config)
