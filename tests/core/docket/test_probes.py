"""Probes: what they show, whom they protect, and when they are worn out."""

import re
from datetime import date
from typing import Any

import pytest

from accord.core.dialects import papvp
from accord.core.docket import probes
from accord.core.docket.probes import ProbeLogEntry
from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.vocabulary import Confidence, EvidenceTier, KillSwitchMargin
from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    COMPLEX_DOMAIN,
    SHIP_STEP,
    delta_item,
    diagnostic_codes,
    evidence,
    item,
    item_named,
    previous_block,
    probe,
    result,
    run_batch,
    run_next,
    single_item,
    step_outputs,
    valid_judgement,
)
from tests.spec import proves


@pytest.mark.parametrize(
    ("threshold", "value", "margin"),
    [
        ("1.0", "0.9", KillSwitchMargin.PASS_NARROW),
        ("1.0", "0.89", KillSwitchMargin.PASS_WIDE),
        ("1.0", "1.1", KillSwitchMargin.PASS_NARROW),
        ("0", "0.1", KillSwitchMargin.PASS_NARROW),
        ("0", "0.11", KillSwitchMargin.PASS_WIDE),
        ("UNKNOWN", "1", KillSwitchMargin.UNKNOWN),
        ("NaN", "1", KillSwitchMargin.UNKNOWN),
        ("1", "1E+9999", KillSwitchMargin.UNKNOWN),
    ],
)
def test_a_near_miss_is_within_a_tenth(
    threshold: str, value: str, margin: KillSwitchMargin
) -> None:
    it = ProbeLogEntry("P", kill_switch_threshold=threshold, kill_switch_value=value)

    assert probes.kill_switch_margin(it) is margin


def test_a_signature_is_written_in_one_way() -> None:
    base = "ENV=prod|SCALE=M|DATA=R|TIME=1d"

    assert probes.is_canonical_signature(base)
    assert not probes.is_canonical_signature(f"{base}|CONSTRAINTS=b,a")
    assert probes.is_canonical_signature(f"{base}|CONSTRAINTS=a,b")
    assert not probes.is_canonical_signature("SCALE=M|ENV=prod|DATA=R|TIME=1d")


@proves("PA-PROBE-7")
def test_a_failed_probe_step_fires_the_kill_switch() -> None:
    before = run_batch(item("A", valid_judgement("A", probe=probe(), **COMPLEX_DOMAIN)))

    after = run_next(before, item("A", None, plan=None, more=result(1, "FAILED")))

    assert single_item(after).trigger == "FALSIFICATION"
    assert single_item(after).probe_log[0].status == "FALSIFIED"
    assert "PROBE_A_PRB_01_STATE_CHANGE" in single_item(after).events


@proves("PA-PROBE-2", "PA-PROBE-3", "PA-PROBE-4", "PA-PROBE-6")
def test_counters_come_from_the_log() -> None:
    trials = [
        probe(probe_id=f"P{n}", status="VALIDATED", kill_switch_value="0.95", evidence_tier="REAL")
        for n in range(9)
    ]
    it = single_item(run_batch(delta_item(previous_block("PROBING"), {"probe_results": trials})))
    block = snapshot_writer.render_block(
        run_batch(delta_item(previous_block("PROBING"), {"probe_results": trials[:1]}))
    )

    assert (it.counters.pc, it.counters.nm, it.counters.nmd) == (9, 9, 9)
    assert it.confidence <= Confidence.MED
    near = run_batch(delta_item(previous_block("PROBING"), {"probe_results": trials[:1]}))
    assert "second_check_pass=YES/NO" in step_outputs(near)
    assert " pc=1 nm=1 nmd=1 inc=0 ovr=0 rb=0" in block
    lost = block.replace(" pc=1 nm=1 nmd=1 inc=0", "").replace(
        "[DERIVED]\n", "[DERIVED]\nderived_version: v9.8.0\n"
    )
    assert single_item(run_batch(lost)).counters.pc == 1


@proves("PA-PROBE-5", "PA-PROBE-7", "PA-PROBE-8")
def test_probing_that_leads_nowhere_is_redesigned() -> None:
    lost = [probe(probe_id=f"P{n}", context_match="NO", status="VALIDATED") for n in (1, 2)]
    prev = previous_block("PROBING", domain_type="Complex")
    stuck, parked = (
        single_item(run_batch(delta_item(prev, {"probe_results": lost, "redesignable": can})))
        for can in ("YES", "NO")
    )
    dull = [probe(probe_id=f"P{n}", representativeness="LOW") for n in (1, 2)]
    worn = single_item(run_batch(delta_item(prev, {"probe_results": dull, "redesignable": "NO"})))
    lax = [
        probe(
            probe_id=f"P{n}",
            representativeness="HIGH OVERRIDE_REPR(me)",
            status="VALIDATED",
            kill_switch_value="0.1",
        )
        for n in (1, 2)
    ]
    over = single_item(run_batch(delta_item(prev, {"probe_results": lax})))
    again = single_item(
        run_batch(
            delta_item(
                previous_block("ACTIVE", next_uncertainty="how slow", steps=(SHIP_STEP,)),
                {"next_uncertainty": "how slow"},
                CHANGE_BLOCK,
            )
        )
    )
    bad = single_item(
        run_batch(
            item(
                "A",
                valid_judgement("A", probe=probe(constraint_signature="none"), **COMPLEX_DOMAIN),
            )
        )
    )

    assert (stuck.state, stuck.trigger) == ("PROBING", "PROBE_STALL_CONTEXT_MATCH")
    assert stuck.planned_steps[0].output == "harness_valid=YES/NO"
    assert (parked.state, parked.trigger) == ("STANDBY", "PROBE_STALL_CONTEXT_MATCH")
    assert (worn.state, worn.trigger) == ("STANDBY", "REDESIGN_TRIGGER")
    assert over.needs_probe_redesign
    assert again.trigger == "REDESIGN_TRIGGER"
    assert bad.designed_probe
    assert (bad.designed_probe.status, bad.designed_probe.representativeness_level) == (
        "INCONCLUSIVE",
        "LOW",
    )
    parked_block = snapshot_writer.render_block(
        run_batch(item("A", valid_judgement("A", probe=probe(), proposed_verdict="DO LATER")))
    )
    assert "[PROBE]\n" not in parked_block


def test_a_redesign_must_change_something() -> None:
    near = [probe(probe_id=f"P{n}", status="VALIDATED", kill_switch_value="0.95") for n in (1, 2)]
    before = run_batch(
        delta_item(previous_block("PROBING", domain_type="Complex"), {"probe_results": near})
    )

    same = run_next(before, item("A", {"probe": probe()}, plan=None))
    other = run_next(before, item("A", {"probe": probe(kill_switch_threshold="2.0")}, plan=None))
    moved = run_next(
        before,
        item(
            "A", {"probe": probe(constraint_signature="ENV=dev|SCALE=M|DATA=R|TIME=1d")}, plan=None
        ),
    )

    assert "REDESIGN_UNCHANGED" in diagnostic_codes(same)
    assert not single_item(same).harness_valid
    assert single_item(other).harness_valid
    assert "REDESIGN_SIGNATURE_TRAP" in diagnostic_codes(moved)
    one = run_batch(
        delta_item(
            previous_block("PROBING", domain_type="Complex", trigger="REDESIGN_TRIGGER"),
            {"probe": probe()},
        )
    )
    assert single_item(one).harness_valid


def test_a_probe_is_weighed_by_what_it_stands_for() -> None:
    def designed(**changes: Any) -> ProbeLogEntry:
        found = single_item(
            run_batch(
                item("A", valid_judgement("A", probe=probe(**changes), **COMPLEX_DOMAIN)),
                now=date(2026, 1, 1),
            )
        ).designed_probe
        assert found
        return found

    assert designed(repr_q=["YES", "YES", "YES"]).representativeness == "HIGH"
    assert designed(repr_q=["YES", "YES"]).representativeness == "MED"
    assert designed(contested="YES").status == "INCONCLUSIVE"
    assert designed().expires_at == "2026-04-01"
    assert designed(decision_context_metric=None).representativeness == "LOW"
    assert designed(kill_switch_threshold=None, kill_switch_value="2").status == "FALSIFIED"
    old = probes.parse_entry(
        {"created_at": "9999-12-01", "representativeness": "?", "status": "ODD"}, "P"
    )
    assert probes.fill_dates(old, None).expires_at == "UNKNOWN"


def test_a_probe_runs_out() -> None:
    before = run_batch(
        item("A", valid_judgement("A", probe=probe(), **COMPLEX_DOMAIN)), now=date(2026, 1, 1)
    )

    after = run_next(before, now=date(2026, 4, 2))

    assert single_item(after).probe_log[0].status == "EXPIRED"
    assert single_item(after).counters.pc == 1
    assert run_next(after, now=date(2026, 4, 3)).items[0].probe_log[0].status == "EXPIRED"


def test_a_probe_may_be_adopted_and_given_up() -> None:
    first = run_batch(
        item("A", valid_judgement("A", probe=probe(probe_id="P"), **COMPLEX_DOMAIN))
        + item("B", valid_judgement("B", **COMPLEX_DOMAIN))
    )
    adopted = run_next(first, item("B", {"adopt": ["P", "NONE"]}, plan=None))
    known = probe(probe_id="P", status="VALIDATED", kill_switch_value="0.2", evidence_tier="REAL")
    followed = run_next(adopted, item("A", {"probe_results": [known]}, plan=None))
    ended = run_next(adopted, item("B", {"disadopt": ["P", "Q"]}, plan=None))
    alone = run_next(ended, item("A", {"probe_results": [known]}, plan=None))

    assert item_named(adopted, "B").probe_log[0].adopted == "A"
    assert "ADOPT_UNKNOWN" in diagnostic_codes(adopted)
    assert item_named(followed, "B").probe_log[0].status == "VALIDATED"
    assert item_named(ended, "B").probe_log[0].adopted == "ENDED(A)"
    assert item_named(alone, "B").probe_log[0].status == "ACTIVE"


def test_protection_pauses_the_clock() -> None:
    later = valid_judgement("A", probe=probe(), proposed_verdict="DO LATER", **COMPLEX_DOMAIN)
    before = run_batch(item("A", later), now=date(2026, 1, 1))

    after = run_next(before, now=date(2026, 3, 31))

    assert single_item(before).effective_expire_days == "PAUSED"
    assert single_item(after).state == "STANDBY"


@proves("PA-MODEL-2")
def test_what_a_falsified_item_learned_counts_elsewhere_as_evidence() -> None:
    learned = run_batch(
        item(
            "B",
            valid_judgement("B", close_intent="YES"),
            more=evidence("EXPERIMENT", "A's probe: 0.2"),
            attrs="reversibility=IRREVERSIBLE",
        )
    )

    assert single_item(learned).closure_tier == "REAL"
    assert single_item(learned).best_evidence_tier is EvidenceTier.EXPERIMENT


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
    prev = previous_block("PROBING", domain_type=domain)
    outcome = run_batch(delta_item(prev, {"probe_results": trials}))

    near = 1 if domain == "Deterministic" else 0
    counters = f" pc=3 nm=1 nmd={near} inc=2 ovr=1 rb=0\n"
    assert counters in snapshot_writer.render_block(outcome)
    (line,) = re.findall(
        r"counters: tb=(\d+)/120 cx=(\d+)/7 ", snapshot_writer.render_block(outcome)
    )
    it = single_item(outcome)
    minutes, owing = sum(each.minutes for each in it.planned_steps), it.falsification_debt != "NONE"
    assert line == (str(minutes), str(len(it.planned_steps) + owing))


@proves("PA-PROBE-1")
def test_a_version_of_the_counters_is_read_and_not_written() -> None:
    block = snapshot_writer.render_block(run_batch(item("A", valid_judgement("A"))))
    foreign = block.replace("[DERIVED]\n", "[DERIVED]\nderived_version: v9.8.0\n")

    assert "derived_version" not in block
    assert papvp.check_snapshot(foreign).checked.summary == "VALID"
    assert single_item(run_batch(foreign)).state == "ACTIVE"


@proves("PA-SCALE-6")
@pytest.mark.parametrize("scale", ["MIN", "DEBUG"])
def test_a_harness_is_printed_while_it_probes_and_a_log_where_there_is_one(scale: str) -> None:
    """A log that exists is state and never dropped; one that does not is never made up."""
    tried = probe(probe_id="P1", status="VALIDATED", kill_switch_value="0.2", evidence_tier="REAL")
    cases = {
        "active": (valid_judgement("A"), "ACTIVE", False, False),
        "parked": (valid_judgement("A", proposed_verdict="DO LATER"), "STANDBY", False, False),
        "closed": (valid_judgement("A", close_intent="YES"), "CLOSED", False, False),
        "cut": (valid_judgement("A", proposed_verdict="DISCARD"), "DISCARDED", False, False),
        "small": (valid_judgement("A", ratings="MMHM"), "ACTIVE", False, False),
        "tried": (valid_judgement("A", probe_results=[tried]), "ACTIVE", False, True),
        "small and tried": (
            valid_judgement("A", ratings="MMHM", probe_results=[tried]),
            "ACTIVE",
            False,
            False,
        ),
        "probing": (valid_judgement("A", **COMPLEX_DOMAIN, probe=probe()), "PROBING", True, True),
        "probing with nothing": (valid_judgement("A", **COMPLEX_DOMAIN), "PROBING", True, True),
    }
    for name, (judge, state, harness, log) in cases.items():
        outcome = run_batch(f"<<<B ssot_scale={scale}>>>\n" + item("A", judge))
        lines = snapshot_writer.render_block(outcome).split("\n")
        assert single_item(outcome).state == state, name
        assert ("[PROBE]" in lines, "[PROBE_LOG]" in lines) == (harness, log), name
    gone = snapshot_writer.render_block(
        run_batch(item("A", valid_judgement("A", **COMPLEX_DOMAIN)))
    ).split("\n")
    assert gone[gone.index("[PROBE]") + 1].startswith("harness: INVALID missing=")
    assert gone[gone.index("[PROBE_LOG]") + 1] == "(empty)"


def test_a_near_miss_of_a_small_thing_is_no_remark() -> None:
    """Rulebook 3.6: only where the impact is not LOW."""
    near = probe(probe_id="P1", status="VALIDATED", kill_switch_value="0.95", evidence_tier="REAL")
    small, large = (
        single_item(
            run_batch(
                delta_item(
                    previous_block("PROBING", impact=impact),
                    {"probe_results": [near], "steps": [SHIP_STEP]},
                )
            )
        )
        for impact in ("LOW", "HIGH")
    )

    assert (small.counters.nmd, small.trigger) == (1, "NONE")
    assert (large.counters.nmd, large.trigger) == (1, "CONFIDENCE_CAP_APPLIED")
