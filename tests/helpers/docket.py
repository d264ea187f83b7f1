"""Batches for the decision kernel, as the rulebook's examples write them."""

import json
from typing import Any

from accord.core import docket
from accord.core.docket import emit
from accord.core.docket.model import Config, Item, Outcome

LEVELS = {"H": "HIGH", "M": "MED", "L": "LOW"}
DIMS = ("Benefit", "Cost", "Risk", "CostOfDelay")
SIGNATURE = "ENV=staging|SCALE=M|DATA=R|TIME=10m|CONSTRAINTS=flag_c,svc_b"
PLAN = "- act\nGoal state: it works\nHard constraint: no outage"
THIN = "just do it"


def ratings(
    text: str, driver: str = "drv", confidence: str = "MED", **more: Any
) -> dict[str, dict[str, Any]]:
    """`HLLM` as the binding of the four dimensions."""
    each = {"drivers": [driver], "confidence": confidence, "evidence_tier": "SIMULATED", **more}
    return {dim: {"rating": LEVELS[letter], **each} for dim, letter in zip(DIMS, text, strict=True)}


def ok(name: str, driver: str = "drv", **changes: Any) -> dict[str, Any]:
    """A judgement that nothing is wrong with; None takes a key away."""
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
    """A step's line."""
    return f"{verb} {what} -> {output} | timebox<={minutes}m | fail_if={fail}"


def probe(driver: str = "drv", **changes: Any) -> dict[str, Any]:
    """A probe that could prove the driver wrong."""
    return {
        "target_driver": driver,
        "decision_context_id": "ctx1",
        "decision_context_driver": driver,
        "decision_context_metric": "error_rate",
        "constraint_signature": SIGNATURE,
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
    """An item in its wrapper."""
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
    """New evidence."""
    return f"<<<NEW_EVIDENCE evidence_tier={tier}>>>\n{text}"


CHANGE = "<<<CHANGE>>>\n- the deadline moved"


def result(number: int, status: str = "COMPLETED", **attrs: str) -> str:
    """How a step ended."""
    more = " ".join(f"{key}={value}" for key, value in attrs.items())
    return f"<<<RESULT step=S{number} status={status} {more}>>>"


def previous(
    state: str,
    name: str = "A",
    *,
    steps: tuple[str, ...] = (),
    derived: str = "",
    log: str = "",
    **changes: str,
) -> str:
    """An item block as an earlier run left it."""
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


def decide(text: str, **config: Any) -> Outcome:
    """Run a text."""
    settings = Config(**config)
    return docket.run(docket.parse(text, settings), settings)


def only(outcome: Outcome) -> Item:
    """The one item there is."""
    (found,) = outcome.items
    return found


def named(outcome: Outcome, name: str) -> Item:
    """The first item of that name."""
    return next(each for each in outcome.items if each.id == name)


def codes(outcome: Outcome) -> set[str]:
    """What was remarked."""
    return {each.code for each in outcome.diags}


COMPLEX: dict[str, Any] = {"domain_type": "Complex"}


SHIP = step("Ship", "A", "A_shipped=YES/NO", 30, "ci_red")


def delta(prev: str, judgement: dict[str, Any] | None = None, more: str = "") -> str:
    """Item A going on from an earlier block."""
    return item("A", judgement, plan=None, prev=prev, more=more)


def tokens(outcome: Outcome, name: str = "A") -> list[str]:
    """What the steps of an item put out."""
    return [each.output for each in named(outcome, name).plan]


def goes_on(before: Outcome, *wrapped: str, **config: Any) -> Outcome:
    """The next run: the snapshot pasted back, with news."""
    return decide(emit.fenced(before) + "".join(wrapped), **config)
