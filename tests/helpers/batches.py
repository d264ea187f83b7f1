"""Random batches for the decision kernel: a seed in, a text out, and quick about it."""

# ruff: noqa: E501 - a field is a line

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.helpers.docket import CHANGE, DIMS, PLAN, SIGNATURE, THIN, evidence, item, result, step

NAMES = ("A", "B", "C", "D", "E1", "E10", "E2")
DRIVERS = ("cost", "load", "trust", "x->y", "über")
LEVELS = ("LOW", "MED", "HIGH")
SURE = ("VERY LOW", "VERY_LOW", "LOW", "MED", "HIGH")
TIERS = ("SIMULATED", "DERIVED", "HISTORICAL", "REAL", "EXPERIMENT")
YES_NO = ("YES", "NO")
WORDS = (
    *("", "-", "as usual", "a | b", "línea\nnueva", "\\u0041", "NONE", "```", "[STEPS]"),
    *("[ITEM id=Z]", "OutputValidity: INVALID", "STATE: DECISION.X", "<<<END>>>"),
)
VERBS = (
    *("Ship", "Run canary on", "Rollback", "Split", "Waive dependency", "Close dependency"),
    *("Collect", "Measure", "Analyze", "Fetch source", "Wait for resource", "Improve"),
)
OBJECTS = (*NAMES, "all; then more", "the api", "ask the team", "this and that")
KINDS = ("PROBE", "MITIGATE", "ACQUIRE", "SPLIT", "DEP_RESOLVE", "NOPE")
EXTRAS = (
    *(evidence(), evidence("HISTORICAL"), evidence("DERIVED"), CHANGE, result(1), result(2)),
    *(result(1, "FAILED"), result(1, "FAILED_EXCEPTION", token="EXCEPTION_IO"), result(9)),
)
ATTRIBUTES = (
    *("uses=ENG:1", "uses=ENG:2,GPU:1", "uses=ODD:1", "reversibility=IRREVERSIBLE"),
    *("reversibility=REVERSIBLE", "ask_user=ALLOW", "keep_open=YES", "expire_days=3"),
)
HEADER = (
    ("", "exec_capability=RUNTIME_OK"),
    ("", "close_policy=REAL_ONLY"),
    ("", "ssot_scale=DEBUG", "ask_user=ALLOW"),
    ("", "resource_pool=ENG:1", "resource_pool=ENG:2,GPU:1"),
)

Pick = Callable[[], Any]


class Maker:
    """Makes judgements, items and batches by chance."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def one(self, values: Sequence[Any]) -> Any:
        """One of them."""
        return self.random.choice(values)

    def many(self, make: Pick, most: int) -> list[Any]:
        """Up to so many."""
        return [make() for _ in range(self.random.randint(0, most))]

    def some(self, chance: float, **fields: Sequence[Any] | Pick) -> dict[str, Any]:
        """Some of the keys, each with a value."""
        return {
            name.rstrip("_"): value() if callable(value) else self.one(value)
            for name, value in fields.items()
            if self.random.random() < chance
        }

    def line(self) -> str:
        """A step, good or bad."""
        output = self.one(("ok=YES/NO", "p95<200", "done", "EXCEPTION_IO"))
        minutes = self.one((0, 1, 5, 10, 30, 60, 130))
        return step(self.one(VERBS), self.one(OBJECTS), output, minutes, self.one(("bad", "|")))

    def step(self) -> Any:
        """A step as text, with its kind, or nonsense."""
        return self.one(
            (self.line(), self.line(), {"kind": self.one(KINDS), "text": self.line()}, "")
        )

    def trial(self) -> dict[str, Any]:
        """A probe or what it showed."""
        return self.some(
            0.8,
            probe_id=("P1", "P2", "P3"),
            target_driver=DRIVERS[:3],
            decision_context_id=("ctx", "ctx", "other", "PA_PVP"),
            decision_context_driver=DRIVERS,
            decision_context_metric=("m", "n"),
            constraint_signature=(SIGNATURE, SIGNATURE, SIGNATURE.replace("=M", "=L"), "none"),
            kill_switch_condition=("m>1.0", "m<=0", "it breaks"),
            kill_switch_triggered=("NO", "NO", "YES"),
            kill_switch_threshold=("1.0", "0", "much"),
            kill_switch_value=("0.95", "0.2", "2", "?"),
            context_match=("YES", "YES", "NO", "UNKNOWN"),
            representativeness=("HIGH", "HIGH", "MED", "LOW", "HIGH OVERRIDE_REPR(me)"),
            evidence_tier=TIERS,
            status=("ACTIVE", "INCONCLUSIVE", "VALIDATED", "FALSIFIED", "EXPIRED"),
            contested=("NO", "NO", "YES"),
            requires=lambda: self.many(lambda: self.one(NAMES), 2),
        )

    def bound(self) -> dict[str, Any]:
        """A rating."""
        return self.some(
            0.93,
            rating=LEVELS,
            drivers=lambda: [self.one(DRIVERS[:3]), self.one(DRIVERS)],
            confidence=SURE,
            evidence_tier=TIERS,
            evidence_ref=WORDS,
        )

    def judge(self, *, split: bool = True) -> dict[str, Any]:
        """A judgement: the heart of it mostly, the rest sometimes."""
        heart = self.some(
            0.8,
            domain_type=("Deterministic", "Deterministic", "Probabilistic", "Complex", "Chaotic"),
            proposed_verdict=("DO NOW", "DO NOW", "DO NOW", "DO LATER", "DISCARD"),
            critical_driver=DRIVERS[:3],
            binding=lambda: {dim: self.bound() for dim in DIMS},
            steps=lambda: self.many(self.step, 6),
        )
        rest = self.some(
            0.13,
            profile=("DIY", "FULL"),
            urgency=LEVELS,
            close_intent=("AUTO", "YES", "NO"),
            why=WORDS,
            title=WORDS,
            next_uncertainty=("how slow", "how dear"),
            friction=LEVELS,
            provable=YES_NO,
            test_ref=WORDS,
            contested=YES_NO,
            probe=self.trial,
            probe_results=lambda: self.many(self.trial, 3),
            adopt=lambda: [self.one(("P1", "P2"))],
            disadopt=lambda: [self.one(("P1", "P2"))],
            waive=lambda: self.many(lambda: self.one(NAMES), 3),
            independent_probe=YES_NO,
            hedge=lambda: self.some(0.8, window_exceeded=YES_NO, risk_cap=WORDS),
            external=lambda: self.some(
                0.8, kind=("BLOCKED", "DATA_REQUIRED"), internal_probe=YES_NO, ask=WORDS
            ),
            missing_source=lambda: self.some(0.8, what=WORDS, identifiable=YES_NO, acquirable=YES_NO),
            redesignable=YES_NO,
            drivers=lambda: self.many(lambda: self.some(0.9, name=DRIVERS, strength=LEVELS), 3),
            impact_graph=lambda: self.many(lambda: self.one(("cost UP -> load DOWN (HIGH)", "?")), 2),
            delta=lambda: self.some(
                0.7, break_=WORDS, patch=WORDS, refs=lambda: [self.one(("driver:cost", "probe:P1", ""))]
            ),
        )  # fmt: skip
        if split and self.random.random() < 0.05:
            rest["split"] = self.many(lambda: self.judge(split=False), 4)
        return heart | rest

    def item(self) -> str:
        """An item in its wrapper."""
        attrs = self.many(lambda: self.one(ATTRIBUTES), 2)
        if self.random.random() < 0.4:
            attrs.append(f"depends_on={','.join(self.many(lambda: self.one((*NAMES, 'OUT')), 3))}")
        if self.random.random() < 0.1:
            attrs.append(f"waive={self.one(NAMES)}")
        judge = self.judge() if self.random.random() < 0.9 else None
        more = "\n".join(self.many(lambda: self.one(EXTRAS), 2))
        plan = self.one((PLAN, PLAN, PLAN, THIN, None))
        return item(self.one(NAMES), judge, attrs=" ".join(attrs), plan=plan, more=more)

    def items(self) -> list[str]:
        """One to six items."""
        return [self.item(), *self.many(self.item, 5)]

    def header(self) -> str:
        """A batch header."""
        return f"<<<B {' '.join(map(self.one, HEADER))}>>>\n"

    def batch(self) -> str:
        """A whole batch."""
        return self.header() + "".join(self.items())
