"""What ratings come to, and how sure one may be."""

from typing import Any

import pytest

from accord.core.docket import (
    causes,
    scoring,
    snapshot,
    text,
)
from accord.core.docket.model import Config, Ledger
from accord.core.docket.words import (
    GATES,
    Confidence,
    Dim,
    Flag,
    Gate,
    Level,
    Policy,
    Tier,
    Trigger,
)
from tests.helpers.docket import (
    CHANGE,
    COMPLEX,
    LEVELS,
    codes,
    decide,
    delta,
    evidence,
    item,
    ok,
    only,
    previous,
    ratings,
    step,
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
    levels = {dim: Level(LEVELS[m]) for dim, m in zip(Dim, marks, strict=True)}

    assert scoring.full(levels) == (raw, score, impact, fragile)


def test_small_things_are_scored_by_thumb() -> None:
    def rated(marks: str, friction: str) -> tuple[int, str, bool]:
        levels = {dim: Level(LEVELS[m]) for dim, m in zip(Dim, marks, strict=True)}
        found = scoring.diy(levels, Level(friction), Confidence.MED)
        return found.raw, found.impact, found.fragile

    assert rated("HLLL", "MED") == (4, "HIGH", True)
    assert rated("MLLL", "LOW") == (2, "MED", False)
    assert rated("LHHH", "LOW")[1] == "LOW"
    low = dict.fromkeys(Dim, Level.HIGH)
    assert scoring.diy(low, Level.LOW, Confidence.LOW).shown == "10.0"


@proves("PA-MODE-1", "PA-MODE-2")
def test_the_pace_follows_from_the_state() -> None:
    slow = only(decide(item("A", ok("A", **COMPLEX))))
    bypass = only(decide(item("A", ok("A", ratings="MMHM"))))

    assert [only(decide(item("A", ok("A")))).pace, slow.pace, bypass.pace] == [
        "OK",
        "SLOW",
        "NO_TOOL",
    ]


def test_confidence_is_capped_by_what_backs_it() -> None:
    def sure(judged: dict[str, Any], more: str = "") -> str:
        return only(decide(item("A", judged, more=more))).confidence

    high = ok("A", confidence="HIGH")
    assert sure(high | {"provable": "YES"}) == "MED"
    assert sure(high | {"provable": "YES", "test_ref": "ci/1"}) == "HIGH"
    assert sure(high, evidence()) == "HIGH"
    assert sure(high | {"domain_type": "Probabilistic"}, evidence("HISTORICAL")) == "MED"
    assert sure(high | COMPLEX, evidence()) == "HIGH"
    assert sure(high | {"critical_driver": "other"}) == "LOW"
    assert sure(ok("A", profile="DIY", confidence="HIGH")) == "LOW"
    claimed = ok("A", binding=ratings("HLLM", evidence_tier="REAL"))
    assert "TIER_UNBACKED" in codes(decide(item("A", claimed)))
    shown = ok("A", binding=ratings("HLLM", evidence_tier="REAL", evidence_ref="log 7"))
    assert only(decide(item("A", shown))).tier is Tier.REAL


def test_guarded_what_could_harm_is_never_unimportant() -> None:
    text = item(
        "A", ok("A", ratings="MMHM", steps=[step("Do", f"part {n}", "a", 60) for n in range(5)])
    )

    guarded = only(decide(text, policy=Policy.GUARDED))
    final = only(
        decide(
            item("A", ok("A", ratings="MMHM"), attrs="reversibility=IRREVERSIBLE"),
            policy=Policy.GUARDED,
        )
    )

    assert (guarded.impact, guarded.trigger) == ("MED", "REDESIGN_TRIGGER")
    assert guarded.plan[0].output == "plan_within_budget=YES/NO"
    assert final.impact == "HIGH"
    prev = previous("STANDBY", profile="DIY", trigger="FRAGILITY")
    assert only(decide(delta(prev, None, CHANGE))).fragile


@proves("OPEN-80")
def test_every_trigger_has_its_gate() -> None:
    assert set(GATES) == set(Trigger)
    assert set(GATES.values()) == set(Gate)
    ranked = [GATES[each] for each in Trigger if each.value in {gate.value for gate in Gate}]
    assert ranked == [each for each in Gate if each.value in {t.value for t in Trigger}]


def test_words_have_an_order_only_where_they_are_ranked() -> None:
    assert Level.LOW < Level.MED <= Level.HIGH
    assert Level.HIGH >= Level.MED > Level.LOW
    assert Confidence.read("very_low") is Confidence.VERY_LOW
    assert Level.read(3) is None
    assert Flag.read(True) is Flag.YES
    assert causes.relation("a") == ("", "a")
    assert snapshot.whole("x", 4) == 4
    assert text.resources("A:1,,b")[1] == ["b"]
    assert only(decide(item("A", ok("A")), ledger=Ledger(asked="x"))).state == "ACTIVE"
    assert Config().guarded is False
