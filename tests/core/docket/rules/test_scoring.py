"""What ratings come to, and how sure one may be."""

from typing import Any

import pytest

from accord.core.docket import text_values
from accord.core.docket.model import KernelConfig
from accord.core.docket.rules import causal_references
from accord.core.docket.rules import ratings as rating_rules
from accord.core.docket.triggers import GATE_OF_TRIGGER, DominantGate, Trigger
from accord.core.docket.vocabulary import (
    Confidence,
    Dimension,
    EvidenceTier,
    KernelPolicy,
    Level,
    YesNo,
)
from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    COMPLEX_DOMAIN,
    LEVELS,
    delta_item,
    diagnostic_codes,
    evidence,
    item,
    previous_block,
    ratings,
    run_batch,
    single_item,
    step,
    valid_judgement,
)
from tests.spec import proves


@proves("PA-RATE-1", "PA-BUDGET-1")
@pytest.mark.parametrize(
    ("marks", "raw", "score", "impact", "fragile"),
    [
        ("LLML", -17, "40.0", "MED", True),
        ("HHLM", 4, "70.0", "HIGH", True),
        ("MLLM", 10, "78.6", "HIGH", False),
        ("HMMM", 0, "64.3", "MED", False),
        ("MHMM", -18, "38.6", "LOW", True),
        ("HLLH", 25, "100.0", "HIGH", False),
        ("LHHL", -45, "0.0", "LOW", False),
    ],
)
def test_ratings_make_a_score_in_whole_numbers(
    marks: str, raw: int, score: str, impact: str, *, fragile: bool
) -> None:
    levels = {dim: Level(LEVELS[m]) for dim, m in zip(Dimension, marks, strict=True)}

    assert rating_rules.score_full_profile(levels) == (raw, score, impact, fragile)


def test_small_things_are_scored_by_thumb() -> None:
    def rated(marks: str, friction: str) -> tuple[int, str, bool]:
        levels = {dim: Level(LEVELS[m]) for dim, m in zip(Dimension, marks, strict=True)}
        found = rating_rules.score_diy_profile(levels, Level(friction), Confidence.MED)
        return found.raw, found.impact, found.is_fragile

    assert rated("HLLL", "MED") == (4, "HIGH", True)
    assert rated("MLLL", "LOW") == (2, "MED", False)
    assert rated("LHHH", "LOW")[1] == "LOW"
    low = dict.fromkeys(Dimension, Level.HIGH)
    assert rating_rules.score_diy_profile(low, Level.LOW, Confidence.LOW).text == "10.0"


@proves("PA-MODE-1", "PA-MODE-2")
def test_the_pace_follows_from_the_state() -> None:
    slow = single_item(run_batch(item("A", valid_judgement("A", **COMPLEX_DOMAIN))))
    bypass = single_item(run_batch(item("A", valid_judgement("A", ratings="MMHM"))))

    assert [
        single_item(run_batch(item("A", valid_judgement("A")))).exec_mode,
        slow.exec_mode,
        bypass.exec_mode,
    ] == [
        "OK",
        "SLOW",
        "NO_TOOL",
    ]


def test_confidence_is_capped_by_what_backs_it() -> None:
    def sure(judged: dict[str, Any], more: str = "") -> str:
        return single_item(run_batch(item("A", judged, more=more))).confidence

    high = valid_judgement("A", confidence="HIGH")
    assert sure(high | {"provable": "YES"}) == "MED"
    assert sure(high | {"provable": "YES", "test_ref": "ci/1"}) == "HIGH"
    assert sure(high, evidence()) == "HIGH"
    assert sure(high | {"domain_type": "Probabilistic"}, evidence("HISTORICAL")) == "MED"
    assert sure(high | COMPLEX_DOMAIN, evidence()) == "HIGH"
    assert sure(high | {"critical_driver": "other"}) == "LOW"
    assert sure(valid_judgement("A", profile="DIY", confidence="HIGH")) == "LOW"
    claimed = valid_judgement("A", binding=ratings("HLLM", evidence_tier="REAL"))
    assert "TIER_UNBACKED" in diagnostic_codes(run_batch(item("A", claimed)))
    shown = valid_judgement(
        "A", binding=ratings("HLLM", evidence_tier="REAL", evidence_ref="log 7")
    )
    assert single_item(run_batch(item("A", shown))).best_evidence_tier is EvidenceTier.REAL


def test_guarded_what_could_harm_is_never_unimportant() -> None:
    text = item(
        "A",
        valid_judgement(
            "A", ratings="MMHM", steps=[step("Do", f"part {n}", "a", 60) for n in range(5)]
        ),
    )

    guarded = single_item(run_batch(text, policy=KernelPolicy.GUARDED))
    final = single_item(
        run_batch(
            item("A", valid_judgement("A", ratings="MMHM"), attrs="reversibility=IRREVERSIBLE"),
            policy=KernelPolicy.GUARDED,
        )
    )

    assert (guarded.impact, guarded.trigger) == ("MED", "REDESIGN_TRIGGER")
    assert guarded.planned_steps[0].output == "plan_within_budget=YES/NO"
    assert final.impact == "HIGH"
    prev = previous_block("STANDBY", profile="DIY", trigger="FRAGILITY")
    assert single_item(run_batch(delta_item(prev, None, CHANGE_BLOCK))).fragile


@proves("OPEN-80")
def test_every_trigger_has_its_gate() -> None:
    assert set(GATE_OF_TRIGGER) == set(Trigger)
    assert set(GATE_OF_TRIGGER.values()) == set(DominantGate)
    ranked = [
        GATE_OF_TRIGGER[each]
        for each in Trigger
        if each.value in {gate.value for gate in DominantGate}
    ]
    assert ranked == [each for each in DominantGate if each.value in {t.value for t in Trigger}]


def test_words_have_an_order_only_where_they_are_ranked() -> None:
    assert Level.LOW < Level.MED <= Level.HIGH
    assert Level.HIGH >= Level.MED > Level.LOW
    assert Confidence.parse("very_low") is Confidence.VERY_LOW
    assert Level.parse(3) is None
    assert YesNo.parse(True) is YesNo.YES
    assert causal_references.parse_relation("a") == ("", "a")
    assert text_values.parse_count("x") is None
    assert text_values.parse_resources("A:1,,b")[1] == ["b"]
    assert not any(KernelConfig().policy.overrides)
    assert all(KernelPolicy.GUARDED.overrides)
