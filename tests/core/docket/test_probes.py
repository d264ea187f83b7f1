"""Probes: what they show, whom they protect, and when they are worn out."""

import re
from datetime import date
from typing import Any

import pytest

from accord.core.dialects import papvp
from accord.core.docket import (
    emit,
    probes,
)
from accord.core.docket.probes import Entry
from accord.core.docket.words import (
    Confidence,
    Margin,
    Tier,
)
from tests.helpers.docket import (
    CHANGE,
    COMPLEX,
    SHIP,
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
    result,
    tokens,
)
from tests.spec import proves


@pytest.mark.parametrize(
    ("threshold", "value", "margin"),
    [
        ("1.0", "0.9", Margin.PASS_NARROW),
        ("1.0", "0.89", Margin.PASS_WIDE),
        ("1.0", "1.1", Margin.PASS_NARROW),
        ("0", "0.1", Margin.PASS_NARROW),
        ("0", "0.11", Margin.PASS_WIDE),
        ("UNKNOWN", "1", Margin.UNKNOWN),
        ("NaN", "1", Margin.UNKNOWN),
        ("1", "1E+9999", Margin.UNKNOWN),
    ],
)
def test_a_near_miss_is_within_a_tenth(threshold: str, value: str, margin: Margin) -> None:
    it = Entry("P", kill_switch_threshold=threshold, kill_switch_value=value)

    assert probes.margin(it) is margin


def test_a_signature_is_written_in_one_way() -> None:
    base = "ENV=prod|SCALE=M|DATA=R|TIME=1d"

    assert probes.canonical(base)
    assert not probes.canonical(f"{base}|CONSTRAINTS=b,a")
    assert probes.canonical(f"{base}|CONSTRAINTS=a,b")
    assert not probes.canonical("SCALE=M|ENV=prod|DATA=R|TIME=1d")


@proves("PA-PROBE-7")
def test_a_failed_probe_step_fires_the_kill_switch() -> None:
    before = decide(item("A", ok("A", probe=probe(), **COMPLEX)))

    after = goes_on(before, item("A", None, plan=None, more=result(1, "FAILED")))

    assert only(after).trigger == "FALSIFICATION"
    assert only(after).log[0].status == "FALSIFIED"
    assert "PROBE_A_PRB_01_STATE_CHANGE" in only(after).events


@proves("PA-PROBE-2", "PA-PROBE-3", "PA-PROBE-4", "PA-PROBE-6")
def test_counters_come_from_the_log() -> None:
    trials = [
        probe(probe_id=f"P{n}", status="VALIDATED", kill_switch_value="0.95", evidence_tier="REAL")
        for n in range(9)
    ]
    it = only(decide(delta(previous("PROBING"), {"probe_results": trials})))
    block = emit.block(decide(delta(previous("PROBING"), {"probe_results": trials[:1]})))

    assert (it.counters.pc, it.counters.nm, it.counters.nmd) == (9, 9, 9)
    assert it.confidence <= Confidence.MED
    near = decide(delta(previous("PROBING"), {"probe_results": trials[:1]}))
    assert "second_check_pass=YES/NO" in tokens(near)
    assert " pc=1 nm=1 nmd=1 inc=0 ovr=0 rb=0" in block
    lost = block.replace(" pc=1 nm=1 nmd=1 inc=0", "").replace(
        "[DERIVED]\n", "[DERIVED]\nderived_version: v9.8.0\n"
    )
    assert only(decide(lost)).counters.pc == 1


@proves("PA-PROBE-5", "PA-PROBE-7", "PA-PROBE-8")
def test_probing_that_leads_nowhere_is_redesigned() -> None:
    lost = [probe(probe_id=f"P{n}", context_match="NO", status="VALIDATED") for n in (1, 2)]
    prev = previous("PROBING", domain_type="Complex")
    stuck, parked = (
        only(decide(delta(prev, {"probe_results": lost, "redesignable": can})))
        for can in ("YES", "NO")
    )
    dull = [probe(probe_id=f"P{n}", representativeness="LOW") for n in (1, 2)]
    worn = only(decide(delta(prev, {"probe_results": dull, "redesignable": "NO"})))
    lax = [
        probe(
            probe_id=f"P{n}",
            representativeness="HIGH OVERRIDE_REPR(me)",
            status="VALIDATED",
            kill_switch_value="0.1",
        )
        for n in (1, 2)
    ]
    over = only(decide(delta(prev, {"probe_results": lax})))
    again = only(
        decide(
            delta(
                previous("ACTIVE", next_uncertainty="how slow", steps=(SHIP,)),
                {"next_uncertainty": "how slow"},
                CHANGE,
            )
        )
    )
    bad = only(decide(item("A", ok("A", probe=probe(constraint_signature="none"), **COMPLEX))))

    assert (stuck.state, stuck.trigger) == ("PROBING", "PROBE_STALL_CONTEXT_MATCH")
    assert stuck.plan[0].output == "harness_valid=YES/NO"
    assert (parked.state, parked.trigger) == ("STANDBY", "PROBE_STALL_CONTEXT_MATCH")
    assert (worn.state, worn.trigger) == ("STANDBY", "REDESIGN_TRIGGER")
    assert over.redesign
    assert again.trigger == "REDESIGN_TRIGGER"
    assert bad.designed
    assert (bad.designed.status, bad.designed.base) == ("INCONCLUSIVE", "LOW")
    parked_block = emit.block(
        decide(item("A", ok("A", probe=probe(), proposed_verdict="DO LATER")))
    )
    assert "[PROBE]\n" not in parked_block


def test_a_redesign_must_change_something() -> None:
    near = [probe(probe_id=f"P{n}", status="VALIDATED", kill_switch_value="0.95") for n in (1, 2)]
    before = decide(delta(previous("PROBING", domain_type="Complex"), {"probe_results": near}))

    same = goes_on(before, item("A", {"probe": probe()}, plan=None))
    other = goes_on(before, item("A", {"probe": probe(kill_switch_threshold="2.0")}, plan=None))
    moved = goes_on(
        before,
        item(
            "A", {"probe": probe(constraint_signature="ENV=dev|SCALE=M|DATA=R|TIME=1d")}, plan=None
        ),
    )

    assert "REDESIGN_UNCHANGED" in codes(same)
    assert not only(same).harness
    assert only(other).harness
    assert "REDESIGN_SIGNATURE_TRAP" in codes(moved)
    one = decide(
        delta(
            previous("PROBING", domain_type="Complex", trigger="REDESIGN_TRIGGER"),
            {"probe": probe()},
        )
    )
    assert only(one).harness


def test_a_probe_is_weighed_by_what_it_stands_for() -> None:
    def designed(**changes: Any) -> Entry:
        found = only(
            decide(item("A", ok("A", probe=probe(**changes), **COMPLEX)), now=date(2026, 1, 1))
        ).designed
        assert found
        return found

    assert designed(repr_q=["YES", "YES", "YES"]).representativeness == "HIGH"
    assert designed(repr_q=["YES", "YES"]).representativeness == "MED"
    assert designed(contested="YES").status == "INCONCLUSIVE"
    assert designed().expires_at == "2026-04-01"
    assert designed(decision_context_metric=None).representativeness == "LOW"
    assert designed(kill_switch_threshold=None, kill_switch_value="2").status == "FALSIFIED"
    old = probes.entry(
        {"created_at": "9999-12-01", "representativeness": "?", "status": "ODD"}, "P"
    )
    assert probes.dated(old, None).expires_at == "UNKNOWN"


def test_a_probe_runs_out() -> None:
    before = decide(item("A", ok("A", probe=probe(), **COMPLEX)), now=date(2026, 1, 1))

    after = goes_on(before, now=date(2026, 4, 2))

    assert only(after).log[0].status == "EXPIRED"
    assert only(after).counters.pc == 1
    assert goes_on(after, now=date(2026, 4, 3)).items[0].log[0].status == "EXPIRED"


def test_a_probe_may_be_adopted_and_given_up() -> None:
    first = decide(
        item("A", ok("A", probe=probe(probe_id="P"), **COMPLEX)) + item("B", ok("B", **COMPLEX))
    )
    adopted = goes_on(first, item("B", {"adopt": ["P", "NONE"]}, plan=None))
    known = probe(probe_id="P", status="VALIDATED", kill_switch_value="0.2", evidence_tier="REAL")
    followed = goes_on(adopted, item("A", {"probe_results": [known]}, plan=None))
    ended = goes_on(adopted, item("B", {"disadopt": ["P", "Q"]}, plan=None))
    alone = goes_on(ended, item("A", {"probe_results": [known]}, plan=None))

    assert named(adopted, "B").log[0].adopted == "A"
    assert "ADOPT_UNKNOWN" in codes(adopted)
    assert named(followed, "B").log[0].status == "VALIDATED"
    assert named(ended, "B").log[0].adopted == "ENDED(A)"
    assert named(alone, "B").log[0].status == "ACTIVE"


def test_protection_pauses_the_clock() -> None:
    later = ok("A", probe=probe(), proposed_verdict="DO LATER", **COMPLEX)
    before = decide(item("A", later), now=date(2026, 1, 1))

    after = goes_on(before, now=date(2026, 3, 31))

    assert only(before).expires == "PAUSED"
    assert only(after).state == "STANDBY"


@proves("PA-MODEL-2")
def test_what_a_falsified_item_learned_counts_elsewhere_as_evidence() -> None:
    learned = decide(
        item(
            "B",
            ok("B", close_intent="YES"),
            more=evidence("EXPERIMENT", "A's probe: 0.2"),
            attrs="reversibility=IRREVERSIBLE",
        )
    )

    assert only(learned).closure == "REAL"
    assert only(learned).tier is Tier.EXPERIMENT


@proves("PA-PROBE-1")
@pytest.mark.parametrize("domain", ["Deterministic", "Probabilistic", "Complex"])
def test_each_counter_counts_what_it_says(domain: str) -> None:
    """Distinct ids for pc and nm, entries for inc and ovr, and only of the critical driver."""
    real = {"evidence_tier": "EXPERIMENT", "kill_switch_value": "0.2"}
    trials = [
        probe(probe_id="P1", status="VALIDATED", **real),
        probe(probe_id="P1", status="VALIDATED", **real),
        probe(probe_id="P2", status="VALIDATED", **real | {"kill_switch_value": "0.95"}),
        probe(probe_id="P3", status="EXPIRED", **real),
        probe(probe_id="P4", context_match="UNKNOWN", **real),
        probe(probe_id="P5", representativeness="LOW OVERRIDE_REPR(me)", **real),
        probe("other", probe_id="P6", status="VALIDATED", **real),
        probe(probe_id="P7", **real),
    ]
    prev = previous("PROBING", domain_type=domain)
    outcome = decide(delta(prev, {"probe_results": trials}))

    near = 1 if domain == "Deterministic" else 0
    counters = f" pc=3 nm=1 nmd={near} inc=2 ovr=1 rb=0\n"
    assert counters in emit.block(outcome)
    (line,) = re.findall(r"counters: tb=(\d+)/120 cx=(\d+)/7 ", emit.block(outcome))
    it = only(outcome)
    minutes, owing = sum(each.minutes for each in it.plan), it.debt != "NONE"
    assert line == (str(minutes), str(len(it.plan) + owing))


@proves("PA-PROBE-1")
def test_a_version_of_the_counters_is_read_and_not_written() -> None:
    block = emit.block(decide(item("A", ok("A"))))
    foreign = block.replace("[DERIVED]\n", "[DERIVED]\nderived_version: v9.8.0\n")

    assert "derived_version" not in block
    assert papvp.checked(foreign).checked.result == "VALID"
    assert only(decide(foreign)).state == "ACTIVE"


@proves("PA-SCALE-6")
@pytest.mark.parametrize("scale", ["MIN", "DEBUG"])
def test_a_harness_is_printed_while_it_probes_and_a_log_where_there_is_one(scale: str) -> None:
    """A log that exists is state and never dropped; one that does not is never made up."""
    tried = probe(probe_id="P1", status="VALIDATED", kill_switch_value="0.2", evidence_tier="REAL")
    cases = {
        "active": (ok("A"), "ACTIVE", False, False),
        "parked": (ok("A", proposed_verdict="DO LATER"), "STANDBY", False, False),
        "closed": (ok("A", close_intent="YES"), "CLOSED", False, False),
        "cut": (ok("A", proposed_verdict="DISCARD"), "DISCARDED", False, False),
        "small": (ok("A", ratings="MMHM"), "ACTIVE", False, False),
        "tried": (ok("A", probe_results=[tried]), "ACTIVE", False, True),
        "small and tried": (ok("A", ratings="MMHM", probe_results=[tried]), "ACTIVE", False, False),
        "probing": (ok("A", **COMPLEX, probe=probe()), "PROBING", True, True),
        "probing with nothing": (ok("A", **COMPLEX), "PROBING", True, True),
    }
    for name, (judge, state, harness, log) in cases.items():
        outcome = decide(f"<<<B ssot_scale={scale}>>>\n" + item("A", judge))
        lines = emit.block(outcome).split("\n")
        assert only(outcome).state == state, name
        assert ("[PROBE]" in lines, "[PROBE_LOG]" in lines) == (harness, log), name
    gone = emit.block(decide(item("A", ok("A", **COMPLEX)))).split("\n")
    assert gone[gone.index("[PROBE]") + 1].startswith("harness: INVALID missing=")
    assert gone[gone.index("[PROBE_LOG]") + 1] == "(empty)"


def test_a_near_miss_of_a_small_thing_is_no_remark() -> None:
    """Rulebook 3.6: only where the impact is not LOW."""
    near = probe(probe_id="P1", status="VALIDATED", kill_switch_value="0.95", evidence_tier="REAL")
    small, large = (
        only(
            decide(
                delta(
                    previous("PROBING", impact=impact), {"probe_results": [near], "steps": [SHIP]}
                )
            )
        )
        for impact in ("LOW", "HIGH")
    )

    assert (small.counters.nmd, small.trigger) == (1, "NONE")
    assert (large.counters.nmd, large.trigger) == (1, "CONFIDENCE_CAP_APPLIED")
