"""How items close, stay closed, expire, are split, and go on."""

from datetime import date
from typing import Any

import pytest

from accord.core.docket import (
    emit,
)
from accord.core.docket.words import (
    TERMINAL,
)
from tests.helpers.docket import (
    CHANGE,
    codes,
    decide,
    delta,
    evidence,
    goes_on,
    item,
    named,
    ok,
    only,
    previous,
    probe,
    step,
)
from tests.spec import proves


@proves("PA-CLOSE-2", "PA-CLOSE-3", "PA-MODE-2", "OPEN-81")
def test_nothing_irreversible_closes_on_a_simulation() -> None:
    closing = ok("A", close_intent="YES")
    parked = only(decide(item("A", closing, attrs="reversibility=IRREVERSIBLE")))
    closed = only(decide(item("A", closing)))
    real = only(decide(item("A", closing, more=evidence())))
    late = only(
        decide(item("A", ok("A", close_intent="YES", steps=[step("Do", "x", minutes=130)])))
    )

    assert parked.trigger == "CLOSE_BLOCKED_REAL_ONLY"
    assert (closed.closure, real.closure) == ("SIM", "REAL")
    assert closed.pace == "OK"
    assert late.state == "ACTIVE"
    assert set(TERMINAL) == {"CLOSED", "EXPIRED", "DISCARDED"}
    expired = decide(
        item("B", None, plan=None, prev=previous("EXPIRED", "B"))
        + item("A", ok("A"), attrs="depends_on=B")
    )
    assert named(expired, "A").trigger == "DEPENDENCY_BLOCK"


@pytest.mark.parametrize(
    ("head", "attrs", "domain", "days"),
    [
        ("expire_days=30", "", "Chaotic", "30"),
        ("", "", "Chaotic", "1"),
        ("", "", None, "30"),
        ("keep_open=YES", "keep_open=NO", "Complex", "60"),
        ("keep_open=YES", "", "Complex", "NONE"),
        ("", "expire_days=5", "Complex", "5"),
    ],
)
def test_a_parked_item_waits_so_many_days(
    head: str, attrs: str, domain: str | None, days: str
) -> None:
    text = f"<<<B {head}>>>\n" + item(
        "A", ok("A", domain_type=domain, proposed_verdict="DO LATER"), attrs=attrs
    )

    first = decide(text, now=date(2026, 1, 1))
    second = goes_on(first, now=date(2026, 1, 1))

    assert only(first).expires == days
    assert only(second).expires == days
    late = goes_on(first, now=date(2028, 1, 1))
    assert only(late).state == ("STANDBY" if days == "NONE" else "EXPIRED")
    if days == "NONE":
        return
    revived = goes_on(
        late, item("A", {"proposed_verdict": "DO NOW"}, plan=None), now=date(2028, 1, 1)
    )
    assert only(revived).state in ("ACTIVE", "PROBING")
    third = goes_on(second)
    assert only(third).updated_at == "2026-01-01"


def test_without_a_known_day_nothing_expires() -> None:
    parked = previous("STANDBY")

    assert only(decide(delta(parked), now=date(2030, 1, 1))).state == "STANDBY"
    timeless = decide(item("A", ok("A", proposed_verdict="DO LATER")))
    assert only(goes_on(timeless, now=date(2030, 1, 1))).state == "STANDBY"


@proves("PA-REOPEN-2", "OPEN-88")
def test_what_is_settled_stays_settled_without_something_new() -> None:
    def state(
        prev: str, more: str = "", judgement: dict[str, Any] | None = None
    ) -> tuple[str, str]:
        it = only(decide(delta(prev, judgement, more)))
        return it.state, it.trigger

    real, sim = (previous("CLOSED", derived=f"closure_tier: {t}") for t in ("REAL", "SIMULATED"))
    gone = previous("DISCARDED")
    assert state(real) == ("CLOSED", "NONE")
    assert state(real, CHANGE) == ("CLOSED", "REOPEN_BLOCKED_NO_DELTA")
    assert state(sim, judgement={"why": "x"}) == ("CLOSED", "REOPEN_BLOCKED_NO_DELTA")
    assert state(gone) == ("DISCARDED", "NONE")
    assert state(gone, judgement={"why": "x"}) == ("DISCARDED", "REOPEN_BLOCKED_NO_DELTA")
    assert state(gone, CHANGE, ok("A"))[0] == "ACTIVE"
    assert state(previous("EXPIRED")) == ("EXPIRED", "NONE")


def test_a_delta_says_what_broke_and_what_it_refers_to() -> None:
    before = decide(
        item(
            "A",
            ok(
                "A",
                contested="YES",
                confidence="LOW",
                proposed_verdict="DO LATER",
                probe=probe(probe_id="P"),
            ),
        )
    )

    def trigger(*refs: str, more: str = "", **extra: Any) -> str:
        said = {"delta": {"break": "b", "patch": "p", "refs": list(refs)}, **extra}
        return only(goes_on(before, item("A", said, plan=None, more=more))).trigger

    assert trigger("driver:drv") != "INVALID_DELTA"
    assert trigger("probe:P") != "INVALID_DELTA"
    assert trigger("evidence:REAL", more=evidence()) != "INVALID_DELTA"
    assert trigger("relation:a->b", impact_graph=["a UP -> b DOWN"]) != "INVALID_DELTA"
    assert trigger("relation:x", "odd:x", "evidence:REAL", "probe:Q", "driver:z") == "INVALID_DELTA"
    after = goes_on(
        before, item("A", {"why": "x", "delta": {"patch": "p", "refs": ["driver:drv"]}}, plan=None)
    )
    assert "CONTEST_UNADDRESSED" in codes(after)
    assert "refs: driver:drv\n" in emit.block(after)
    bare = decide(emit.fenced(before), carry=False)
    assert "state.title" not in emit.block(bare)


def test_a_hedge_is_granted_only_when_harm_is_bounded() -> None:
    hedge = {"window_exceeded": "YES", "risk_cap": "5%", "risk_contained": "YES"}
    good = ok("A", ratings="HLLH", probe=probe(), hedge=hedge)
    before = decide(item("A", good))
    held = goes_on(before)
    known = probe(probe_id="A_PRB_01", status="VALIDATED", kill_switch_value="0.2")
    after = goes_on(before, item("A", {"probe_results": [known]}, plan=None))
    denied = decide(item("A", good | {"hedge": {"window_exceeded": "NO"}}))

    assert only(before).hedge
    assert only(before).state == "PROBING"
    assert only(held).hedge
    assert not only(after).hedge
    assert "HEDGE_DENIED" in codes(denied)


def test_a_decision_that_is_several_is_split() -> None:
    parts = [ok("x", "one", title="first"), ok("y", "two", split=[{}, {}]), ok("z", "three")]
    text = (
        item("A", {"split": parts}, attrs="depends_on=Z uses=R:1")
        + item("B", ok("B"), attrs="depends_on=A")
        + item("A_S2", ok("A_S2"))
    )
    outcome = decide(text)
    apart = [{"name": "a", "strength": "HIGH"}, {"name": "b", "strength": "HIGH"}]

    assert named(outcome, "A").split_into == ("A_S1", "A_S2x", "A_S3")
    assert named(outcome, "A").trigger == "MULTI_CRITICAL_DRIVER_SPLIT"
    assert named(outcome, "B").depends_on == ("A_S1", "A_S2x", "A_S3")
    assert named(outcome, "A_S1").depends_on == ("Z",)
    assert named(outcome, "A_S1").inp.split_from == "A"
    assert "SPLIT_NESTED" in codes(outcome)
    assert [each.id for each in outcome.items][:3] == ["A", "A_S1", "A_S2x"]
    assert "SPLIT_ADVISED" in codes(decide(item("A", ok("A", drivers=apart))))
    linked = ok("A", drivers=apart, impact_graph=["a -> c", "c UP -> b DOWN (LOW)", "?"])
    assert "SPLIT_ADVISED" not in codes(decide(item("A", linked)))
    one = decide(item("A", ok("A", drivers=apart, split=[ok("x")])))
    assert [each.id for each in one.items] == ["A", "A_S1"]
    again = goes_on(outcome, item("C", ok("C"), attrs="depends_on=A"))
    assert named(again, "C").depends_on == ("A_S1", "A_S2x", "A_S3")


@pytest.mark.parametrize(
    ("state", "trigger", "verdict"),
    [
        ("STANDBY", "EXTERNAL_DATA_REQUIRED", "DO NOW"),
        ("STANDBY", "SCORE_TRIAGE", "DO LATER"),
        ("STANDBY", "NONE", "DO LATER"),
        ("DRAFT", "FAIL_FAST_PLAN_SNR", "DO LATER"),
        ("DRAFT", "NONE", "DO LATER"),
        ("ACTIVE", "EXTERNAL_DATA_REQUIRED", "DO NOW"),
    ],
)
def test_without_a_word_on_it_only_an_imposed_wait_ends_by_itself(
    state: str, trigger: str, verdict: str
) -> None:
    unsaid = ok("A", proposed_verdict=None)

    assert only(decide(delta(previous(state, trigger=trigger), unsaid))).verdict == verdict
