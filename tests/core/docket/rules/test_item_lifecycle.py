"""How items close, stay closed, expire, are split, and go on."""

from datetime import date
from typing import Any

import pytest

from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.vocabulary import TERMINAL_STATES
from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    delta_item,
    diagnostic_codes,
    evidence,
    item,
    item_named,
    previous_block,
    probe,
    run_batch,
    run_next,
    single_item,
    step,
    valid_judgement,
)
from tests.spec import proves


@proves("PA-CLOSE-2", "PA-CLOSE-3", "PA-MODE-2", "OPEN-81")
def test_nothing_irreversible_closes_on_a_simulation() -> None:
    closing = valid_judgement("A", close_intent="YES")
    parked = single_item(run_batch(item("A", closing, attrs="reversibility=IRREVERSIBLE")))
    closed = single_item(run_batch(item("A", closing)))
    real = single_item(run_batch(item("A", closing, more=evidence())))
    late = single_item(
        run_batch(
            item(
                "A", valid_judgement("A", close_intent="YES", steps=[step("Do", "x", minutes=130)])
            )
        )
    )

    assert parked.trigger == "CLOSE_BLOCKED_REAL_ONLY"
    assert (closed.closure_tier, real.closure_tier) == ("SIM", "REAL")
    assert closed.exec_mode == "OK"
    assert late.state == "ACTIVE"
    assert set(TERMINAL_STATES) == {"CLOSED", "EXPIRED", "DISCARDED"}
    expired = run_batch(
        item("B", None, plan=None, prev=previous_block("EXPIRED", "B"))
        + item("A", valid_judgement("A"), attrs="depends_on=B")
    )
    assert item_named(expired, "A").trigger == "DEPENDENCY_BLOCK"


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
        "A", valid_judgement("A", domain_type=domain, proposed_verdict="DO LATER"), attrs=attrs
    )

    first = run_batch(text, now=date(2026, 1, 1))
    second = run_next(first, now=date(2026, 1, 1))

    assert single_item(first).effective_expire_days == days
    assert single_item(second).effective_expire_days == days
    late = run_next(first, now=date(2028, 1, 1))
    assert single_item(late).state == ("STANDBY" if days == "NONE" else "EXPIRED")
    if days == "NONE":
        return
    revived = run_next(
        late, item("A", {"proposed_verdict": "DO NOW"}, plan=None), now=date(2028, 1, 1)
    )
    assert single_item(revived).state in ("ACTIVE", "PROBING")
    third = run_next(second)
    assert single_item(third).updated_at == "2026-01-01"


def test_without_a_known_day_nothing_expires() -> None:
    parked = previous_block("STANDBY")

    assert single_item(run_batch(delta_item(parked), now=date(2030, 1, 1))).state == "STANDBY"
    timeless = run_batch(item("A", valid_judgement("A", proposed_verdict="DO LATER")))
    assert single_item(run_next(timeless, now=date(2030, 1, 1))).state == "STANDBY"


@proves("PA-REOPEN-2", "OPEN-88")
def test_what_is_settled_stays_settled_without_something_new() -> None:
    def state(
        prev: str, more: str = "", judgement: dict[str, Any] | None = None
    ) -> tuple[str, str]:
        it = single_item(run_batch(delta_item(prev, judgement, more)))
        return it.state, it.trigger

    real, sim = (
        previous_block("CLOSED", derived=f"closure_tier: {t}") for t in ("REAL", "SIMULATED")
    )
    gone = previous_block("DISCARDED")
    assert state(real) == ("CLOSED", "NONE")
    assert state(real, CHANGE_BLOCK) == ("CLOSED", "REOPEN_BLOCKED_NO_DELTA")
    assert state(sim, judgement={"why": "x"}) == ("CLOSED", "REOPEN_BLOCKED_NO_DELTA")
    assert state(gone) == ("DISCARDED", "NONE")
    assert state(gone, judgement={"why": "x"}) == ("DISCARDED", "REOPEN_BLOCKED_NO_DELTA")
    assert state(gone, CHANGE_BLOCK, valid_judgement("A"))[0] == "ACTIVE"
    assert state(previous_block("EXPIRED")) == ("EXPIRED", "NONE")


@proves("PA-REOPEN-2", "OPEN-88")
def test_a_refused_reopening_keeps_new_evidence_and_its_event() -> None:
    """Rulebook 3.0: the evidence (3.4) is taken before a reopening is refused (3.8)."""
    closed = previous_block("CLOSED", derived="closure_tier: SIMULATED\nreopen_total: 1")

    refused = run_batch(delta_item(closed, {"confidence": "HIGH", "why": "x"}, evidence()))

    it = single_item(refused)
    assert (it.state, it.trigger) == ("CLOSED", "REOPEN_BLOCKED_BUDGET")
    assert (it.closure_tier, it.confidence, it.why) == ("SIM", "MED", "-")
    assert it.best_evidence_tier == "REAL"
    assert it.events == ["TRIGGER_REOPEN_BLOCKED_BUDGET", "EVIDENCE_TIER_UPGRADE"]
    assert "best_evidence_tier: REAL\n" in snapshot_writer.render_block(refused)
    resumed = single_item(run_next(refused))
    assert (resumed.best_evidence_tier, resumed.events) == ("REAL", [])
    weaker = single_item(run_next(refused, item("A", None, plan=None, more=evidence("HISTORICAL"))))
    assert (weaker.best_evidence_tier, weaker.events) == (
        "REAL",
        ["TRIGGER_REOPEN_BLOCKED_BUDGET"],
    )
    unsupported = run_batch(delta_item(closed, more=evidence("DERIVED") + f"\n{CHANGE_BLOCK}"))
    assert single_item(unsupported).best_evidence_tier == "SIMULATED"
    assert single_item(unsupported).events == ["TRIGGER_REOPEN_BLOCKED_BUDGET"]


def test_a_delta_says_what_broke_and_what_it_refers_to() -> None:
    before = run_batch(
        item(
            "A",
            valid_judgement(
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
        return single_item(run_next(before, item("A", said, plan=None, more=more))).trigger

    assert trigger("driver:drv") != "INVALID_DELTA"
    assert trigger("probe:P") != "INVALID_DELTA"
    assert trigger("evidence:REAL", more=evidence()) != "INVALID_DELTA"
    assert trigger("relation:a->b", impact_graph=["a UP -> b DOWN"]) != "INVALID_DELTA"
    assert trigger("relation:x", "odd:x", "evidence:REAL", "probe:Q", "driver:z") == "INVALID_DELTA"
    after = run_next(
        before, item("A", {"why": "x", "delta": {"patch": "p", "refs": ["driver:drv"]}}, plan=None)
    )
    assert "CONTEST_UNADDRESSED" in diagnostic_codes(after)
    assert "refs: driver:drv\n" in snapshot_writer.render_block(after)


def test_a_hedge_is_granted_only_when_harm_is_bounded() -> None:
    hedge = {"window_exceeded": "YES", "risk_cap": "5%", "risk_contained": "YES"}
    good = valid_judgement("A", ratings="HLLH", probe=probe(), hedge=hedge)
    before = run_batch(item("A", good))
    held = run_next(before)
    known = probe(probe_id="A_PRB_01", status="VALIDATED", kill_switch_value="0.2")
    after = run_next(before, item("A", {"probe_results": [known]}, plan=None))
    denied = run_batch(item("A", good | {"hedge": {"window_exceeded": "NO"}}))

    assert single_item(before).hedge_active
    assert single_item(before).state == "PROBING"
    assert single_item(held).hedge_active
    assert not single_item(after).hedge_active
    assert "HEDGE_DENIED" in diagnostic_codes(denied)


def test_a_decision_that_is_several_is_split() -> None:
    parts = [
        valid_judgement("x", "one", title="first"),
        valid_judgement("y", "two", split=[{}, {}]),
        valid_judgement("z", "three"),
    ]
    text = (
        item("A", {"split": parts}, attrs="depends_on=Z uses=R:1")
        + item("B", valid_judgement("B"), attrs="depends_on=A")
        + item("A_S2", valid_judgement("A_S2"))
    )
    outcome = run_batch(text)
    apart = [{"name": "a", "strength": "HIGH"}, {"name": "b", "strength": "HIGH"}]

    assert item_named(outcome, "A").split_into == ("A_S1", "A_S2x", "A_S3")
    assert item_named(outcome, "A").trigger == "MULTI_CRITICAL_DRIVER_SPLIT"
    assert item_named(outcome, "B").depends_on == ("A_S1", "A_S2x", "A_S3")
    assert item_named(outcome, "A_S1").depends_on == ("Z",)
    assert item_named(outcome, "A_S1").input.split_from == "A"
    assert "SPLIT_NESTED" in diagnostic_codes(outcome)
    assert [each.id for each in outcome.items][:3] == ["A", "A_S1", "A_S2x"]
    assert "SPLIT_ADVISED" in diagnostic_codes(
        run_batch(item("A", valid_judgement("A", drivers=apart)))
    )
    linked = valid_judgement(
        "A", drivers=apart, impact_graph=["a -> c", "c UP -> b DOWN (LOW)", "?"]
    )
    assert "SPLIT_ADVISED" not in diagnostic_codes(run_batch(item("A", linked)))
    one = run_batch(item("A", valid_judgement("A", drivers=apart, split=[valid_judgement("x")])))
    assert [each.id for each in one.items] == ["A", "A_S1"]
    again = run_next(outcome, item("C", valid_judgement("C"), attrs="depends_on=A"))
    assert item_named(again, "C").depends_on == ("A_S1", "A_S2x", "A_S3")


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
    unsaid = valid_judgement("A", proposed_verdict=None)

    assert (
        single_item(run_batch(delta_item(previous_block(state, trigger=trigger), unsaid))).verdict
        == verdict
    )
