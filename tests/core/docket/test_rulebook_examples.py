"""The rulebook's worked examples, value by value."""

# ruff: noqa: E501 - a row of the table is a line

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from accord.core.docket.model import DecisionItem
from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.vocabulary import ItemState
from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    THIN_PLAN,
    diagnostic_codes,
    evidence,
    item,
    previous_block,
    probe,
    result,
    run_batch,
    step,
    valid_judgement,
)
from tests.spec import proves

SHIP = step("Ship", "A", "A_shipped=YES/NO", 30, "ci_red")
FIVE = [
    step("Do", f"part {n}", "a_ok=YES/NO" if n == 1 else f"{n}_ok=YES/NO", 5) for n in range(1, 6)
]
LONG = [step("Do", f"part {n}", "a_ok=YES/NO", 60) for n in range(1, 6)]
TRIAL = {"probe_id": "P1", "evidence_tier": "EXPERIMENT"}
TWICE = [
    probe(probe_id="P1", status="VALIDATED", kill_switch_value="0.2", evidence_tier="EXPERIMENT"),
    probe(probe_id="P2", status="VALIDATED", kill_switch_value="0.3"),
]
PROBING = previous_block("PROBING", domain_type="Complex")
COMPLEX = {"domain_type": "Complex"}


class Case(NamedTuple):
    """A row of the table: what goes in, and a line for each item that comes out."""

    name: str
    text: str
    rows: list[str]
    diags: frozenset[str] = frozenset()
    ask: str = ""
    config: Mapping[str, Any] = MappingProxyType({})


def head(**attrs: str) -> str:
    return f"<<<B {' '.join(f'{k}={v}' for k, v in attrs.items())}>>>\n"


def delta(
    prev: str, judge: dict[str, Any] | None = None, more: str = "", plan: str | None = None
) -> str:
    return item("A", judge, plan=plan, prev=prev, more=more)


CASES = [
    Case("X01", item("A", valid_judgement("A")), [
        "A: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | A_shipped=YES/NO | tb=30/120 cx=1/7; MIN"]),
    Case("X02", item("A"), [
        "A: DRAFT->STANDBY | DO LATER | MED | SLOW | LOW | EXTERNAL_DATA_REQUIRED | EXTERNAL_BLOCK | ratings_complete=YES/NO | tb=10/60 cx=2/5; missing_ratings; DEBUG"]),
    Case("X03", item("A", valid_judgement("A", confidence="HIGH")), [
        "A: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | CONFIDENCE_CAP_APPLIED | CONFIDENCE_CAP | A_shipped=YES/NO | tb=30/120 cx=1/7; DEBUG"]),
    Case("X04", item("A", valid_judgement("A", probe=probe(), **COMPLEX)), [
        "A: DRAFT->PROBING | DO NOW | HIGH | SLOW | MED | NONE | NONE | A_PRB_01_pass=YES/NO | tb=40/120 cx=2/7; MIN"]),
    Case("X05", item("A", valid_judgement("A", **COMPLEX)), [
        "A: DRAFT->PROBING | DO NOW | HIGH | SLOW | MED | REDESIGN_TRIGGER | REDESIGN_TRIGGER | harness_valid=YES/NO | tb=40/120 cx=2/7; DEBUG"]),
    Case("X06", item("A", valid_judgement("A", ratings="HLML", probe=probe())), [
        "A: DRAFT->PROBING | DO NOW | MED | SLOW | MED | FRAGILITY | FRAGILITY | A_PRB_01_pass=YES/NO | tb=40/60 cx=2/5; DEBUG"]),
    Case("X07", item("A", valid_judgement("A", confidence="LOW", domain_type="Probabilistic", probe=probe(representativeness="MED"))), [
        "A: DRAFT->PROBING | DO NOW | HIGH | SLOW | LOW | NONE | NONE | A_PRB_01_pass=YES/NO | debt OPEN(drv); tb=40/120 cx=3/7; MIN"]),
    Case("X08", item("A", valid_judgement("A", confidence="LOW", domain_type="Probabilistic", proposed_verdict="DO LATER")), [
        "A: DRAFT->STANDBY | DO LATER | HIGH | SLOW | LOW | NONE | NONE | A_shipped=YES/NO | debt OPEN(drv); tb=30/120 cx=2/7; MIN"]),
    Case("X09", item("A", valid_judgement("A", proposed_verdict=None)), [
        "A: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | SCORE_TRIAGE | SCORE_TRIAGE | A_shipped=YES/NO | tb=30/120 cx=1/7; DEBUG"]),
    Case("X10", item("A", valid_judgement("A", close_intent="YES")), [
        "A: DRAFT->CLOSED | DO NOW | HIGH | OK | MED | NONE | NONE | - | ct SIM; tb=30/120 cx=1/7; MIN"]),
    Case("X11", item("A", valid_judgement("A", close_intent="YES"), attrs="reversibility=IRREVERSIBLE"), [
        "A: DRAFT->STANDBY | DO LATER | HIGH | SLOW | MED | CLOSE_BLOCKED_REAL_ONLY | EXTERNAL_BLOCK | real_evidence=RECEIVED | tb=40/120 cx=2/7; DEBUG"]),
    Case("X12", item("A", valid_judgement("A", close_intent="YES"), attrs="reversibility=IRREVERSIBLE", more=evidence()), [
        "A: DRAFT->CLOSED | DO NOW | HIGH | SLOW | MED | NONE | NONE | - | ct REAL; tb=30/120 cx=1/7; MIN"]),
    Case("X13", head(close_policy="REAL_ONLY", ask_user="ALLOW") + item("A", valid_judgement("A", close_intent="YES"))
         + item("C", valid_judgement("C", "drv2", close_intent="YES", urgency="HIGH")), [
        "A: DRAFT->STANDBY | DO LATER | HIGH | OK | MED | CLOSE_BLOCKED_REAL_ONLY | EXTERNAL_BLOCK | real_evidence=RECEIVED | tb=40/120 cx=2/7; DEBUG",
        "C: DRAFT->STANDBY | DO LATER | HIGH | OK | MED | CLOSE_BLOCKED_REAL_ONLY | EXTERNAL_BLOCK | real_evidence=RECEIVED | tb=40/120 cx=2/7; DEBUG"],
        ask="C: supply HISTORICAL/REAL/EXPERIMENT evidence for drv2"),
    Case("X14", item("A", valid_judgement("A", steps=[step("Do", "one", minutes=60), step("Do", "two", minutes=60), step("Do", "three", minutes=30)])), [
        "A: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | REDESIGN_TRIGGER | REDESIGN_TRIGGER | plan_within_budget=YES/NO | tb=70/120 cx=2/7; DEBUG"],
        diags=frozenset({"STEP_DROPPED"})),
    Case("X15", head(resource_pool="ENG:5") + item("A", valid_judgement("A", ratings="HMMM", steps=FIVE), attrs="uses=ENG:1"), [
        "A: DRAFT->STANDBY | DO LATER | MED | OK | MED | REDESIGN_TRIGGER | REDESIGN_TRIGGER | plan_within_budget=YES/NO | tb=25/60 cx=5/5; DEBUG"],
        diags=frozenset({"STEP_DROPPED"})),
    Case("X16", head(resource_pool="ENG:5") + item("A", valid_judgement("A", ratings="HMMM", steps=FIVE), attrs="uses=ENG:1", more=evidence("HISTORICAL")), [
        "A: DRAFT->ACTIVE | DO NOW | MED | OK | MED | NONE | NONE | a_ok=YES/NO | tb=25/60 cx=6/5; MIN"]),
    Case("X17", head(resource_pool="ENG:2,GPU:1") + item("A", valid_judgement("A"), attrs="uses=ENG:1")
         + item("C", valid_judgement("C", urgency="LOW"), attrs="uses=ENG:2") + item("D", valid_judgement("D", urgency="LOW"), attrs="uses=GPU:1")
         + item("E", valid_judgement("E", ratings="HMMM"), attrs="uses=ENG:1"), [
        "A: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | A_shipped=YES/NO | tb=30/120 cx=2/7; MIN",
        "C: DRAFT->STANDBY | DO LATER | HIGH | OK | MED | DEPENDENCY_BLOCK | DEPENDENCY_BLOCK | ENG_available=YES/NO | tb=40/120 cx=3/7; DEBUG",
        "D: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | D_shipped=YES/NO | tb=30/120 cx=2/7; MIN",
        "E: DRAFT->STANDBY | DO LATER | MED | OK | MED | DEPENDENCY_BLOCK | DEPENDENCY_BLOCK | ENG_available=YES/NO | tb=40/60 cx=3/5; DEBUG"]),
    Case("X18", item("A", valid_judgement("A"), attrs="depends_on=ZZZ"), [
        "A: DRAFT->STANDBY | DO LATER | HIGH | OK | MED | DEPENDENCY_BLOCK | DEPENDENCY_BLOCK | ZZZ_terminal=YES/NO | tb=40/120 cx=4/7; DEBUG"]),
    Case("X19", item("A", valid_judgement("A"), attrs="depends_on=UP") + item("UP", valid_judgement("UP", close_intent="YES")), [
        "A: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | A_shipped=YES/NO | tb=30/120 cx=1/7; MIN",
        "UP: DRAFT->CLOSED | DO NOW | HIGH | OK | MED | NONE | NONE | - | ct SIM; tb=30/120 cx=1/7; MIN"]),
    Case("X20", item("A", valid_judgement("A"), attrs="depends_on=A"), [
        "A: DRAFT->STANDBY | DO LATER | HIGH | OK | MED | CIRCULAR_DEPENDENCY | REDESIGN_TRIGGER | cycle_broken=YES/NO | tb=40/120 cx=4/7; DEBUG"]),
    Case("X21", item("A", valid_judgement("A", "alpha", confidence="LOW", steps=[])) + item("C", valid_judgement("C", "beta", confidence="LOW", ratings="HLLH", steps=[]))
         + item("D", valid_judgement("D", "gamma", confidence="VERY LOW", steps=[])) + item("E", valid_judgement("E", "beta", confidence="LOW", ratings="HLLL", steps=[])), [
        "A: DRAFT->STANDBY | DO LATER | HIGH | OK | LOW | DEBT_CEILING | DEBT_CEILING | debt_slot_free=YES/NO | tb=5/120 cx=1/7; DEBUG",
        "C: DRAFT->PROBING | DO NOW | HIGH | SLOW | LOW | REDESIGN_TRIGGER | REDESIGN_TRIGGER | harness_valid=YES/NO | debt OPEN(beta); tb=10/120 cx=2/7; DEBUG",
        "D: DRAFT->PROBING | DO NOW | HIGH | SLOW | VERY LOW | REDESIGN_TRIGGER | REDESIGN_TRIGGER | harness_valid=YES/NO | debt OPEN(gamma); tb=10/120 cx=2/7; DEBUG",
        "E: DRAFT->PROBING | DO NOW | HIGH | SLOW | LOW | REDESIGN_TRIGGER | REDESIGN_TRIGGER | harness_valid=YES/NO | debt OPEN(beta); tb=10/120 cx=2/7; DEBUG"]),
    Case("X22", item("A", valid_judgement("A"), prev=previous_block("CLOSED", derived="closure_tier: REAL")), [
        "A: CLOSED->CLOSED | DO NOW | HIGH | OK | MED | REOPEN_BLOCKED_NO_DELTA | DEPENDENCY_BLOCK | - | ct REAL; rb 1; tb=0/120 cx=0/7; DELTA"]),
    Case("X23", item("A", valid_judgement("A"), prev=previous_block("CLOSED", derived="closure_tier: REAL"), more=evidence()), [
        "A: CLOSED->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | mitigation_A=YES/NO | reopen_total 1; tb=60/120 cx=2/7; DELTA"]),
    Case("X24", item("A", valid_judgement("A"), prev=previous_block("CLOSED", derived="closure_tier: SIMULATED"), more=CHANGE_BLOCK), [
        "A: CLOSED->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | A_shipped=YES/NO | reopen_total 1; tb=30/120 cx=1/7; DELTA"]),
    Case("X25", item("A", valid_judgement("A"), prev=previous_block("CLOSED", derived="closure_tier: REAL\nreopen_total: 1\ncounters: tb=0/120 cx=0/7 rb=2"), more=evidence()), [
        "A: CLOSED->CLOSED | DO NOW | HIGH | OK | MED | REOPEN_BLOCKED_BUDGET | DEPENDENCY_BLOCK | - | ct REAL; reopen_total 1; rb 3; tb=0/120 cx=0/7; DELTA"]),
    Case("X26", delta(previous_block("CLOSED", derived="closure_tier: SIMULATED"), {"close_intent": "YES"}, evidence()), [
        "A: CLOSED->CLOSED | DO NOW | HIGH | OK | MED | NONE | NONE | - | ct REAL; tb=0/120 cx=0/7; DELTA"]),
    Case("X27", delta(PROBING, {"probe_results": [probe(status="FALSIFIED", kill_switch_triggered="YES", **TRIAL)]}), [
        "A: PROBING->DISCARDED | DISCARD | HIGH | NO_TOOL | MED | FALSIFICATION | FALSIFICATION | - | tb=0/120 cx=0/7; pc=1; DELTA"]),
    Case("X28", delta(PROBING, {"probe_results": [probe(status="FALSIFIED", kill_switch_triggered="YES", context_match="UNKNOWN", **TRIAL)]}), [
        "A: PROBING->PROBING | DO NOW | HIGH | SLOW | LOW | CONFIDENCE_CAP_APPLIED | CONFIDENCE_CAP | harness_valid=YES/NO | debt OPEN(drv); tb=10/120 cx=2/7; inc=1; DELTA"]),
    Case("X29", delta(PROBING, {"probe_results": [
            probe(probe_id="P1", status="VALIDATED", kill_switch_value="0.95"), probe(probe_id="P2", status="VALIDATED", kill_switch_value="0.92")]}), [
        "A: PROBING->PROBING | DO NOW | HIGH | SLOW | MED | REDESIGN_TRIGGER | REDESIGN_TRIGGER | harness_valid=YES/NO | tb=10/120 cx=1/7; nm=2 inc=2; DELTA"]),
    Case("X30", delta(previous_block("PROBING"), {"binding": valid_judgement("A", confidence="HIGH")["binding"], "probe_results": [
            probe(probe_id="P1", status="VALIDATED", kill_switch_value="0.95", evidence_tier="REAL")]}), [
        "A: PROBING->ACTIVE | DO NOW | HIGH | OK | MED | CONFIDENCE_CAP_APPLIED | CONFIDENCE_CAP | second_check_pass=YES/NO | tb=10/120 cx=1/7; pc=1 nm=1 nmd=1; DELTA"]),
    Case("X31", delta(PROBING, {"probe_results": TWICE}), [
        "A: PROBING->CLOSED | DO NOW | HIGH | OK | MED | NONE | NONE | - | ct SIM; tb=0/120 cx=0/7; pc=2; DELTA"]),
    Case("X32", delta(PROBING, {"probe_results": TWICE[:1], "steps": [SHIP]}), [
        "A: PROBING->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | A_shipped=YES/NO | tb=30/120 cx=1/7; pc=1; DELTA"]),
    Case("X33", head(exec_capability="RUNTIME_OK") + delta(previous_block("ACTIVE", steps=(SHIP,)), more=result(1, "FAILED_EXCEPTION", token="EXCEPTION_TIMEOUT")), [
        "A: ACTIVE->STANDBY | DO LATER | HIGH | OK | MED | BLOCKED_EXTERNAL | EXTERNAL_BLOCK | A_shipped=YES/NO | tb=60/120 cx=2/7; DELTA"]),
    Case("X34", delta(previous_block("ACTIVE", steps=(SHIP,)), more=result(1, "COMPLETED", evidence_tier="REAL")), [
        "A: ACTIVE->CLOSED | DO NOW | HIGH | OK | MED | NONE | NONE | - | ct SIM; tb=30/120 cx=1/7; DELTA"]),
    Case("X35", head(exec_capability="RUNTIME_OK") + delta(previous_block("ACTIVE", steps=(SHIP, step("Clean", "up"))), more=result(1, "FAILED")), [
        "A: ACTIVE->STANDBY | DO LATER | HIGH | OK | MED | REDESIGN_TRIGGER | REDESIGN_TRIGGER | reworked_step_ready=YES/NO | tb=50/120 cx=3/7; DELTA"]),
    Case("X36", delta(previous_block("ACTIVE", steps=(SHIP,)), plan="- act"), [
        "A: ACTIVE->ACTIVE | DO NOW | HIGH | OK | MED | INVALID_DELTA | REDESIGN_TRIGGER | causal_ref_logged=YES/NO | tb=40/120 cx=2/7; DELTA"]),
    Case("X37", item("A", valid_judgement("A", missing_source={"what": "the log", "identifiable": "YES", "acquirable": "YES"})), [
        "A: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | MISSING_SOURCE_INPUT | DEPENDENCY_BLOCK | source_obtained=YES/NO | tb=40/120 cx=2/7; DEBUG"]),
    Case("X38", item("A", valid_judgement("A", missing_source={"what": "the log", "identifiable": "NO"})), [
        "A: DRAFT->STANDBY | DO LATER | HIGH | OK | MED | MISSING_SOURCE_INPUT | DEPENDENCY_BLOCK | source_named=YES/NO | tb=35/120 cx=2/7; DEBUG"]),
    Case("X39", head(ask_user="ALLOW") + item("A", valid_judgement("A"), plan=THIN_PLAN), [
        "A: DRAFT->DRAFT | DO LATER | HIGH | OK | MED | FAIL_FAST_PLAN_SNR | FAIL_FAST_CUT | specs_complete=YES/NO | ffc 1; tb=5/120 cx=1/7; DEBUG"],
        ask="A: goal state; system boundary; hard constraint", config={"manual": True}),
    Case("X40", item("A", plan=THIN_PLAN, prev=previous_block("DRAFT", fail_fast_count="1")), [
        "A: DRAFT->DISCARDED | DISCARD | HIGH | NO_TOOL | MED | FAIL_FAST_CUT | FAIL_FAST_CUT | - | ffc 2; tb=0/120 cx=0/7; DELTA"]),
    Case("X41", item("A", valid_judgement("A", ratings="HLMH", probe=probe(), hedge={"window_exceeded": "YES", "risk_cap": "5% of traffic"}, **COMPLEX), attrs="reversibility=REVERSIBLE"), [
        "A: DRAFT->PROBING | DO NOW | HIGH | SLOW | MED | NONE | NONE | A_PRB_01_pass=YES/NO | debt OPEN(drv); tb=40/120 cx=4/7; MIN"]),
    Case("X42", head(ask_user="ALLOW") + delta(PROBING, {
            "external": {"kind": "DATA_REQUIRED", "internal_probe": "NO", "ask": "prod p95 for the last 7 days"},
            "probe_results": [probe(probe_id="P1", status="VALIDATED", kill_switch_value="0.2", representativeness="MED")]}), [
        "A: PROBING->STANDBY | DO LATER | HIGH | OK | MED | EXTERNAL_DATA_REQUIRED | EXTERNAL_BLOCK | external_data=RECEIVED | tb=10/120 cx=1/7; pc=1; DELTA"],
        ask="A: prod p95 for the last 7 days"),
    Case("X43", item("A", valid_judgement("A", ratings="HLLL", profile="DIY", friction="LOW")), [
        "A: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | A_shipped=YES/NO | tb=30/120 cx=1/7; MIN_SURFACE"]),
    Case("X44", item("A", valid_judgement("A", ratings="HMLL", profile="DIY", friction="LOW", probe=probe())), [
        "A: DRAFT->PROBING | DO NOW | HIGH | SLOW | MED | FRAGILITY | FRAGILITY | A_PRB_01_pass=YES/NO | tb=40/120 cx=2/7; DEBUG"]),
    Case("X45", item("UP", valid_judgement("UP")) + item("A", valid_judgement("A", waive=["UP"]), attrs="depends_on=UP"), [
        "UP: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | UP_shipped=YES/NO | tb=30/120 cx=1/7; MIN",
        "A: DRAFT->ACTIVE | DO NOW | HIGH | SLOW | LOW | NONE | NONE | waiver_UP=RECORDED | debt OPEN(drv); tb=45/120 cx=6/7; MIN"]),
    Case("X46", item("UP", valid_judgement("UP")) + item("A", valid_judgement("A", waive=["UP"], probe=probe(), **COMPLEX), attrs="depends_on=UP"), [
        "UP: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | UP_shipped=YES/NO | tb=30/120 cx=1/7; MIN",
        "A: DRAFT->PROBING | DO NOW | HIGH | SLOW | LOW | NONE | NONE | A_PRB_01_pass=YES/NO | debt OPEN(drv); tb=45/120 cx=6/7; MIN"]),
    Case("X47", head(expire_days="30") + item("A", plan=None, prev=previous_block("STANDBY", updated_at="2026-01-01")), [
        "A: STANDBY->EXPIRED | DO LATER | HIGH | OK | MED | NONE | NONE | - | tb=0/120 cx=0/7; DELTA"],
        config={"now": date(2026, 1, 31)}),
    Case("X48", item("A", valid_judgement("A")) + item("A", valid_judgement("A")) + "<<<I title=nameless>>>\n<<<PLAN>>>\n- x\n<<<END>>>\n", [
        "A: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | A_shipped=YES/NO | tb=30/120 cx=1/7; MIN",
        "A: DRAFT->DISCARDED | DISCARD | LOW | NO_TOOL | LOW | DUPLICATE_ID_REJECTED | DEPENDENCY_BLOCK | - | tb=0/20 cx=0/3; MIN_SURFACE"],
        diags=frozenset({"INVALID_ITEM"})),
    Case("X49", item("A", valid_judgement("A", steps=[step("Analyze", "logs"), step("Build", "it && ship"), "whatever", step("Run", "canary", "canary_ok=YES/NO")])), [
        "A: DRAFT->ACTIVE | DO NOW | HIGH | OK | MED | NONE | NONE | canary_ok=YES/NO | tb=10/120 cx=1/7; MIN"],
        diags=frozenset({"STEP_CHAIN", "STEP_GRAMMAR", "STEP_META_VERB"})),
    Case("X50", item("A", valid_judgement("A", steps=[])), [
        "A: DRAFT->STANDBY | DO LATER | HIGH | OK | MED | REDESIGN_TRIGGER | REDESIGN_TRIGGER | step_accepted=YES/NO | tb=10/120 cx=1/7; DEBUG"]),
    Case("X51", item("A", valid_judgement("A", ratings="MMHM", steps=LONG)), [
        "A: DRAFT->ACTIVE | DO NOW | LOW | NO_TOOL | MED | NONE | NONE | a_ok=YES/NO | tb=300/20 cx=5/3; MIN_SURFACE"]),
]  # fmt: skip


def shown(it: DecisionItem) -> str:
    """An item as the table shows it."""
    count = it.counters
    counters = {"pc": count.pc, "nm": count.nm, "nmd": count.nmd, "inc": count.inc}
    budget = {"LOW": "20", "MED": "60", "HIGH": "120"}[it.impact]
    tax = {"LOW": "3", "MED": "5", "HIGH": "7"}[it.impact]
    other = [
        f"ct {it.closure_tier}" if it.state is ItemState.CLOSED else "",
        f"ffc {it.fail_fast_count}" if it.fail_fast_count else "",
        f"reopen_total {it.reopen_total}" if it.reopen_total else "",
        f"rb {it.reopen_blocked_count}" if it.reopen_blocked_count else "",
        f"debt {it.falsification_debt}" if it.falsification_debt != "NONE" else "",
        f"tb={it.timebox_minutes}/{budget} cx={it.complexity_tax}/{tax}",
        " ".join(f"{name}={value}" for name, value in counters.items() if value),
        "missing_ratings" if it.missing_ratings else "",
        it.surface,
    ]
    token = "-" if snapshot_writer.next_token(it) == "(none)" else snapshot_writer.next_token(it)
    cells = (
        f"{it.id}: {it.previous_state}->{it.state}",
        *(it.verdict, it.impact, it.exec_mode, it.confidence, it.trigger, it.dominant_gate, token),
        "; ".join(filter(None, other)),
    )
    return " | ".join(cells)


@proves("OPEN-79", "OPEN-80", "PA-VALID-1")
@pytest.mark.parametrize("case", CASES, ids=[each.name for each in CASES])
def test_a_worked_example_comes_out_value_by_value(case: Case) -> None:
    outcome = run_batch(case.text, **case.config)

    assert outcome.is_valid
    assert [shown(each) for each in outcome.items] == case.rows
    assert case.diags <= diagnostic_codes(outcome)
    assert outcome.question == case.ask
