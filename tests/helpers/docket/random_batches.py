"""Random input for the decision kernel, reproducible from a seed."""

# ruff: noqa: E501 - a field is a line

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    CONSTRAINT_SIGNATURE,
    DIMENSIONS,
    PLAN,
    THIN_PLAN,
    evidence,
    item,
    result,
    step,
)

ITEM_NAMES = ("A", "B", "C", "D", "E1", "E10", "E2")
DRIVERS = ("cost", "load", "trust", "x->y", "über")
LEVELS = ("LOW", "MED", "HIGH")
CONFIDENCES = ("VERY LOW", "VERY_LOW", "LOW", "MED", "HIGH")
TIERS = ("SIMULATED", "DERIVED", "HISTORICAL", "REAL", "EXPERIMENT")
YES_NO = ("YES", "NO")
ODD_TEXTS = (
    *("", "-", "as usual", "a | b", "línea\nnueva", "\\u0041", "NONE", "```", "[STEPS]"),
    *("[ITEM id=Z]", "OutputValidity: INVALID", "STATE: DECISION.X", "<<<END>>>"),
)
VERBS = (
    *("Ship", "Run canary on", "Rollback", "Split", "Waive dependency", "Close dependency"),
    *("Collect", "Measure", "Analyze", "Fetch source", "Wait for resource", "Improve"),
)
OBJECTS = (*ITEM_NAMES, "all; then more", "the api", "ask the team", "this and that")
STEP_KINDS = ("PROBE", "MITIGATE", "ACQUIRE", "SPLIT", "DEP_RESOLVE", "NOPE")
EXTRA_BLOCKS = (
    *(evidence(), evidence("HISTORICAL"), evidence("DERIVED"), CHANGE_BLOCK, result(1), result(2)),
    *(result(1, "FAILED"), result(1, "FAILED_EXCEPTION", token="EXCEPTION_IO"), result(9)),
)
ATTRIBUTES = (
    *("uses=ENG:1", "uses=ENG:2,GPU:1", "uses=ODD:1", "reversibility=IRREVERSIBLE"),
    *("reversibility=REVERSIBLE", "ask_user=ALLOW", "keep_open=YES", "expire_days=3"),
)
HEADER_CHOICES = (
    ("", "exec_capability=RUNTIME_OK"),
    ("", "close_policy=REAL_ONLY"),
    ("", "ssot_scale=DEBUG", "ask_user=ALLOW"),
    ("", "resource_pool=ENG:1", "resource_pool=ENG:2,GPU:1"),
)

Factory = Callable[[], Any]


class BatchGenerator:
    """Generates random judgements, items and batches."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def choose(self, values: Sequence[Any]) -> Any:
        """One of the values."""
        return self.random.choice(values)

    def make_up_to(self, make: Factory, most: int) -> list[Any]:
        """A list of up to `most` generated values."""
        return [make() for _ in range(self.random.randint(0, most))]

    def some_fields(self, chance: float, **fields: Sequence[Any] | Factory) -> dict[str, Any]:
        """A random subset of these fields, each with a random value."""
        return {
            name.rstrip("_"): value() if callable(value) else self.choose(value)
            for name, value in fields.items()
            if self.random.random() < chance
        }

    def step_text(self) -> str:
        """The text of a step, valid or not."""
        output = self.choose(("ok=YES/NO", "p95<200", "done", "EXCEPTION_IO"))
        minutes = self.choose((0, 1, 5, 10, 30, 60, 130))
        return step(
            self.choose(VERBS), self.choose(OBJECTS), output, minutes, self.choose(("bad", "|"))
        )

    def step(self) -> Any:
        """A step as text, with its kind, or invalid."""
        return self.choose(
            (
                self.step_text(),
                self.step_text(),
                {"kind": self.choose(STEP_KINDS), "text": self.step_text()},
                "",
            )
        )

    def probe(self) -> dict[str, Any]:
        """A probe or its result."""
        return self.some_fields(
            0.8,
            probe_id=("P1", "P2", "P3"),
            target_driver=DRIVERS[:3],
            decision_context_id=("ctx", "ctx", "other", "PA_PVP"),
            decision_context_driver=DRIVERS,
            decision_context_metric=("m", "n"),
            constraint_signature=(
                CONSTRAINT_SIGNATURE,
                CONSTRAINT_SIGNATURE,
                CONSTRAINT_SIGNATURE.replace("=M", "=L"),
                "none",
            ),
            kill_switch_condition=("m>1.0", "m<=0", "it breaks"),
            kill_switch_triggered=("NO", "NO", "YES"),
            kill_switch_threshold=("1.0", "0", "much"),
            kill_switch_value=("0.95", "0.2", "2", "?"),
            context_match=("YES", "YES", "NO", "UNKNOWN"),
            representativeness=("HIGH", "HIGH", "MED", "LOW", "HIGH OVERRIDE_REPR(me)"),
            evidence_tier=TIERS,
            status=("ACTIVE", "INCONCLUSIVE", "VALIDATED", "FALSIFIED", "EXPIRED"),
            contested=("NO", "NO", "YES"),
            requires=lambda: self.make_up_to(lambda: self.choose(ITEM_NAMES), 2),
        )

    def rating(self) -> dict[str, Any]:
        """A random rating."""
        return self.some_fields(
            0.93,
            rating=LEVELS,
            drivers=lambda: [self.choose(DRIVERS[:3]), self.choose(DRIVERS)],
            confidence=CONFIDENCES,
            evidence_tier=TIERS,
            evidence_ref=ODD_TEXTS,
        )

    def judgement(self, *, split: bool = True) -> dict[str, Any]:
        """A judgement: usually with the required fields, sometimes with the others."""
        heart = self.some_fields(
            0.8,
            domain_type=("Deterministic", "Deterministic", "Probabilistic", "Complex", "Chaotic"),
            proposed_verdict=("DO NOW", "DO NOW", "DO NOW", "DO LATER", "DISCARD"),
            critical_driver=DRIVERS[:3],
            binding=lambda: {dim: self.rating() for dim in DIMENSIONS},
            steps=lambda: self.make_up_to(self.step, 6),
        )
        rest = self.some_fields(
            0.13,
            profile=("DIY", "FULL"),
            urgency=LEVELS,
            close_intent=("AUTO", "YES", "NO"),
            why=ODD_TEXTS,
            title=ODD_TEXTS,
            next_uncertainty=("how slow", "how dear"),
            friction=LEVELS,
            provable=YES_NO,
            test_ref=ODD_TEXTS,
            contested=YES_NO,
            probe=self.probe,
            probe_results=lambda: self.make_up_to(self.probe, 3),
            adopt=lambda: [self.choose(("P1", "P2"))],
            disadopt=lambda: [self.choose(("P1", "P2"))],
            waive=lambda: self.make_up_to(lambda: self.choose(ITEM_NAMES), 3),
            independent_probe=YES_NO,
            hedge=lambda: self.some_fields(0.8, window_exceeded=YES_NO, risk_cap=ODD_TEXTS),
            external=lambda: self.some_fields(
                0.8, kind=("BLOCKED", "DATA_REQUIRED"), internal_probe=YES_NO, ask=ODD_TEXTS
            ),
            missing_source=lambda: self.some_fields(0.8, what=ODD_TEXTS, identifiable=YES_NO, acquirable=YES_NO),
            redesignable=YES_NO,
            drivers=lambda: self.make_up_to(lambda: self.some_fields(0.9, name=DRIVERS, strength=LEVELS), 3),
            impact_graph=lambda: self.make_up_to(lambda: self.choose(("cost UP -> load DOWN (HIGH)", "?")), 2),
            delta=lambda: self.some_fields(
                0.7, break_=ODD_TEXTS, patch=ODD_TEXTS, refs=lambda: [self.choose(("driver:cost", "probe:P1", ""))]
            ),
        )  # fmt: skip
        if split and self.random.random() < 0.05:
            rest["split"] = self.make_up_to(lambda: self.judgement(split=False), 4)
        return heart | rest

    def item(self) -> str:
        """An item with its wrapper."""
        attrs = self.make_up_to(lambda: self.choose(ATTRIBUTES), 2)
        if self.random.random() < 0.4:
            attrs.append(
                f"depends_on={','.join(self.make_up_to(lambda: self.choose((*ITEM_NAMES, 'OUT')), 3))}"
            )
        if self.random.random() < 0.1:
            attrs.append(f"waive={self.choose(ITEM_NAMES)}")
        judge = self.judgement() if self.random.random() < 0.9 else None
        more = "\n".join(self.make_up_to(lambda: self.choose(EXTRA_BLOCKS), 2))
        plan = self.choose((PLAN, PLAN, PLAN, THIN_PLAN, None))
        return item(self.choose(ITEM_NAMES), judge, attrs=" ".join(attrs), plan=plan, more=more)

    def items(self) -> list[str]:
        """One to six items."""
        return [self.item(), *self.make_up_to(self.item, 5)]

    def header(self) -> str:
        """The header of a batch."""
        return f"<<<B {' '.join(map(self.choose, HEADER_CHOICES))}>>>\n"

    def batch(self) -> str:
        """A complete batch."""
        return self.header() + "".join(self.items())
