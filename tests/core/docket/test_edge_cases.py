"""The corners of the decision kernel: what is rare, foreign or broken."""

from typing import Any

import pytest

from accord.core import docket
from accord.core.dialects import papvp
from accord.core.docket import convergence, executor_contract, steps
from accord.core.docket.model import PreviousItem
from accord.core.docket.parsing import judgement_parser
from accord.core.docket.probes import (
    ProbeLogEntry,
    evaluate_kill_switch,
    normalize_new_entry,
    signature_by_context,
)
from accord.core.docket.rendering import reports, snapshot_writer
from accord.core.docket.rules import causal_references
from accord.core.docket.snapshot import DecisionSnapshot
from accord.core.docket.vocabulary import EvidenceTier, KernelPolicy, Level, StepStatus
from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    diagnostic_codes,
    evidence,
    item,
    item_named,
    previous_block,
    probe,
    result,
    run_batch,
    single_item,
    step,
    valid_judgement,
)


def test_the_first_line_says_what_is_wanted() -> None:
    told = papvp.render_outcome(run_batch(item("A", valid_judgement("A"))))

    assert papvp.is_command("\n REPORT \n")
    assert papvp.is_command("CHECK repair=YES")
    assert not papvp.is_command("<<<B>>>")
    assert papvp.respond(told).is_valid
    assert papvp.respond(
        f"COMPARE\n{told}{told}", docket.KernelConfig(policy=KernelPolicy.GUARDED)
    ).is_valid
    invalid = papvp.respond("nothing")
    assert "[HUMAN_TABLE]" not in invalid.text


def test_a_question_is_put_again_when_something_moved() -> None:
    head = "<<<B close_policy=REAL_ONLY ask_user=ALLOW>>>\n"
    first = run_batch(head + item("A", valid_judgement("A", close_intent="YES")))
    moved = run_batch(
        snapshot_writer.render_fenced(first)
        + head
        + item(
            "A",
            {
                "external": {
                    "kind": "BLOCKED",
                    "ask": "supply HISTORICAL/REAL/EXPERIMENT evidence for drv",
                }
            },
            plan=None,
            more=evidence(),
        )
    )

    assert first.question == moved.question


def test_ids_and_words_that_are_none_are_named() -> None:
    outcome = run_batch(item("A", valid_judgement("A"), attrs="depends_on=B,? expire_days=soon"))

    assert {each.detail for each in outcome.diagnostics} == {
        "depends_on=?; it takes ids with commas between",
        "expire_days=soon; it takes a whole number from 1",
    }


def test_hosts_that_share_nothing_and_disagree_need_evidence() -> None:
    now = docket.snapshot_of(
        run_batch(item("X", valid_judgement("X", steps=[step("Do", "a", "a")])))
    )
    later = docket.snapshot_of(
        run_batch(
            item(
                "X", valid_judgement("X", steps=[step("Do", "b", "b")], proposed_verdict="DO LATER")
            )
        )
    )
    (peer,) = convergence.compare_snapshots([now, later])

    assert peer.next_action == "ACQUIRE_EVIDENCE"
    silent = docket.snapshot_of(
        run_batch(item("X", valid_judgement("X", steps=[step("Do", "a", "a")])))
    )
    silent.items["X"].steps = ()
    silent.items["X"].next_step = None
    done = docket.snapshot_of(
        run_batch(
            item(
                "X",
                valid_judgement("X", close_intent="YES", steps=[step("Do", "a", "z")]),
                more=result(1),
            )
        )
    )
    (odd,) = convergence.compare_snapshots([silent, done])
    assert odd.next_action == "ACQUIRE_EVIDENCE"


def test_a_failed_waiver_is_none() -> None:
    failed = f"{step('Waive dependency', 'B', 'waived')} | status=FAILED"
    prev = previous_block("ACTIVE", steps=(failed,), depends_on="B")

    assert (
        single_item(run_batch(item("A", None, plan=None, prev=prev, more=CHANGE_BLOCK))).waived
        == ()
    )


def test_a_snapshot_without_items_is_no_state() -> None:
    text = snapshot_writer.render_block(run_batch(item("A", valid_judgement("A"))))
    bare = text[: text.index("[ITEM ")]

    lines = list(papvp.check_snapshot(bare).checked.render())

    assert lines[-1] == "RESULT: INVALID(BATCH_COVERAGE)"
    assert not run_batch(bare).is_valid
    assert papvp.check_snapshot(bare, mend=True).repaired
    recovered = snapshot_writer.render_block(
        run_batch(item("A", valid_judgement("A")), recovery=True)
    )
    assert list(papvp.check_snapshot(recovered).checked.render()) == ["RESULT: VALID"]
    assert (
        "RESULT: VALID"
        in list(papvp.check_snapshot(text.replace("counters:", "events:")).checked.render())[-1]
    )


def test_a_contested_result_counts_for_less() -> None:
    known = probe(probe_id="P", status="VALIDATED", kill_switch_value="0.2", contested="YES")
    it = single_item(
        run_batch(item("A", {"probe_results": [known]}, plan=None, prev=previous_block("PROBING")))
    )

    assert it.probe_log[0].status == "INCONCLUSIVE"


def test_two_items_may_name_their_probes_alike() -> None:
    mine = [
        item(n, valid_judgement(n, probe=probe(probe_id="P"), domain_type="Complex")) for n in "AC"
    ]
    first = run_batch("".join(mine) + item("B", valid_judgement("B", domain_type="Complex")))
    adopted = run_batch(
        snapshot_writer.render_fenced(first) + item("B", {"adopt": ["P"]}, plan=None)
    )
    known = probe(probe_id="P", status="VALIDATED", kill_switch_value="0.2")
    after = run_batch(
        snapshot_writer.render_fenced(adopted) + item("A", {"probe_results": [known]}, plan=None)
    )

    assert item_named(adopted, "B").probe_log[0].adopted == "C"
    assert item_named(after, "B").probe_log[0].status == "ACTIVE"


def test_probing_always_has_a_next_step() -> None:
    first = run_batch(
        item(
            "A",
            valid_judgement(
                "A", probe=probe(), steps=[step("Check", "it", "m=YES/NO")], domain_type="Complex"
            ),
        )
    )
    known = {"probe_results": [probe(probe_id="Q", representativeness="MED")]}
    after = run_batch(
        snapshot_writer.render_fenced(first) + item("A", known, plan=None, more=result(1))
    )
    rebuilt = run_batch(
        item(
            "A",
            valid_judgement(
                "A",
                steps=[{"kind": "HARNESS_REDESIGN", "text": step("Mend", "it")}],
                domain_type="Complex",
                step_results=[{"step": "1", "status": "COMPLETED"}],
            ),
        )
    )

    assert single_item(after).state == "PROBING"
    assert single_item(after).next_step
    assert single_item(rebuilt).planned_steps[-1].output == "harness_valid=YES/NO"
    many = [step("Do", f"x{n}", f"o{n}", 60) for n in range(3)]
    over = run_batch(
        item(
            "A",
            valid_judgement(
                "A",
                ratings="HMMM",
                steps=[
                    {"kind": "PLAN_REDESIGN", "text": step("Trim", "it")},
                    *many[:1],
                    step("Do", "y", "y", 1),
                ],
            ),
        )
    )
    assert [each.output for each in single_item(over).planned_steps] == ["a_ok=YES/NO"]
    loose = run_batch(
        item(
            "A",
            valid_judgement("A", ratings="HMMM", steps=[step("Do", "x", "x", 90)]),
            more=evidence(),
        )
    )
    assert single_item(loose).trigger == "REDESIGN_TRIGGER"
    empty = run_batch(item("A", attrs="depends_on=B uses=R:1"))
    assert single_item(empty).over_budget
    fits = run_batch(
        item(
            "A",
            valid_judgement(
                "A",
                ratings="HMMM",
                steps=[step("Do", "x", "x", 45)],
                missing_source={"identifiable": "YES", "acquirable": "YES"},
            ),
            more=evidence(),
            attrs="depends_on=Z",
        )
    )
    assert "STEP_DROPPED" in diagnostic_codes(fits)


def test_kill_switches_and_contexts_are_compared_where_they_can_be() -> None:
    full = ProbeLogEntry(
        "P", kill_switch_condition="m>1", kill_switch_threshold="2", kill_switch_value="?"
    )
    assert evaluate_kill_switch(full) == full
    words = ProbeLogEntry("P", kill_switch_condition="it breaks", kill_switch_value="1")
    assert evaluate_kill_switch(words).kill_switch_triggered == "NO"
    unsure = ProbeLogEntry("P", constraint_signature="none")
    assert normalize_new_entry(unsure, {}, "d", "b")[0].context_match == "UNKNOWN"
    signed = ProbeLogEntry(
        "P", decision_context_id="c", constraint_signature="ENV=dev|SCALE=M|DATA=R|TIME=1d"
    )
    other = ProbeLogEntry("Q", decision_context_id="c", decision_context_metric="x")
    odd = ProbeLogEntry("Q", decision_context_id="c", constraint_signature="?")
    assert normalize_new_entry(signed, signature_by_context([other, odd]), "d", "b")[1] is False
    vague = ProbeLogEntry(
        "P", representativeness="HIGH OVERRIDE_REPR(me)", decision_context_driver="-"
    )
    assert normalize_new_entry(vague, {}, "-", "b")[0].representativeness_level is Level.LOW
    plain: dict[str, Any] = {"probe_results": [{"probe_id": "P"}]}
    it = single_item(run_batch(item("A", plain, plan=None, prev=previous_block("PROBING"))))
    assert it.probe_log[0].target_driver == "-"


def test_percentages_fall_back_to_what_the_snapshot_says() -> None:
    it = PreviousItem("A")
    assert reports.metrics(it)["timebox_utilization_pct"] == "missing in snapshot"
    it.impact, it.critical_driver = Level.HIGH, "d"
    assert reports.metrics(it)["complexity_utilization_pct"] == "0.0"


def test_a_foreign_snapshot_is_read_as_far_as_it_goes() -> None:
    block = previous_block("ACTIVE", log="(empty)\nnonsense").replace(
        "[DERIVED]", "[EVIDENCE_BINDING]\nBenefit: rating=HIGH\nCost: ?\n[DERIVED]"
    )
    twice = previous_block("ACTIVE", log="- probe_id: P\n  status: ACTIVE\n- probe_id: Q")

    assert single_item(run_batch(item("A", None, plan=None, prev=block))).binding == {}
    assert [
        each.probe_id
        for each in single_item(run_batch(item("A", None, plan=None, prev=twice))).probe_log
    ] == [
        "P",
        "Q",
    ]
    strange = snapshot_writer.render_fenced(run_batch(item("A", valid_judgement("A")))).replace(
        "[ITEM id=A]", "[ITEM id=a b]"
    )
    assert not run_batch(strange).is_valid
    refused = run_batch(
        snapshot_writer.render_fenced(run_batch("")) + item("A", valid_judgement("A"))
    )
    assert "PREV_INVALID" in diagnostic_codes(refused)
    assert refused.is_valid


def test_results_are_printed_with_their_steps() -> None:
    found = steps.parse_step(
        f"S2: {step('Do', 'it')} | status=COMPLETED | evidence_tier=REAL | result=42 passed"
    )

    assert found
    assert found[0] == 2
    assert (found[1].status, found[1].tier, found[1].result) == (
        StepStatus.COMPLETED,
        EvidenceTier.REAL,
        "42 passed",
    )
    assert (
        found[1].render(2).endswith(" | status=COMPLETED | evidence_tier=REAL | result=42 passed")
    )


def test_every_row_has_its_place() -> None:
    text = (
        item("A", valid_judgement("A", proposed_verdict="DISCARD"))
        + item("B", valid_judgement("B", close_intent="YES"))
        + item(
            "C",
            valid_judgement(
                "C", "x", confidence="LOW", ratings="MMHM", proposed_verdict="DO LATER"
            ),
        )
    )
    snap = docket.snapshot_of(
        run_batch(
            text
            + "".join(
                item(
                    f"D{n}",
                    valid_judgement(f"D{n}", "x", confidence="LOW", proposed_verdict="DO LATER"),
                )
                for n in range(6)
            )
        )
    )

    told = "\n".join([*reports.render_ops_table(snap), *reports.render_risk_dashboard(snap)])

    assert "| CUT | A |" in told
    assert "| DONE | B |" in told
    assert "+2" in told
    snap.queue[0].verdict = "?"
    snap.queue[0].terminal = "N"
    snap.queue[0].impact = "?"
    assert "| - | A |" in "\n".join(reports.render_ops_table(snap))


def test_a_snapshot_that_names_an_item_only_in_its_queue() -> None:
    snap = docket.snapshot_of(run_batch(item("A", valid_judgement("A"))))
    snap.items.clear()

    assert "| P1 | A | DO NOW | - |" in "\n".join(reports.render_ops_table(snap))
    assert not executor_contract.allow_step(snap, "A", "x").allowed
    assert not DecisionSnapshot(1, []).is_usable


@pytest.mark.parametrize(
    "said", ["[STEPS]", "[ITEM id=Z]", "[HUMAN_TABLE]", "OutputValidity: INVALID", "- x", "```"]
)
def test_what_somebody_says_is_never_read_as_a_part_of_the_snapshot(said: str) -> None:
    first = run_batch(item("A", valid_judgement("A")))
    change = {"delta": {"break": said, "patch": said}}

    second = run_batch(
        snapshot_writer.render_fenced(first) + item("A", change, plan=None, more=CHANGE_BLOCK)
    )
    third = run_batch(snapshot_writer.render_fenced(second))

    assert second.is_valid, second.diagnostics
    assert third.is_valid, third.diagnostics
    assert [(each.id, each.previous_state, each.state) for each in third.items] == [
        ("A", "ACTIVE", "ACTIVE")
    ]


def test_an_action_has_two_words_behind_its_number() -> None:
    line = "S1: Ship -> ok=YES/NO | timebox<=5m | fail_if=x"

    assert steps.parse_step(line) is None
    assert steps.parse_step(line.replace("Ship", "Ship it")) is not None
    assert steps.parse_step(line.replace("Ship", "Ship it").replace("ok=YES/NO", "")) is None
    assert steps.parse_step(line.replace("Ship ->", "Ship it")) is None
    assert steps.parse_step(line.replace("Ship", "-> it -> on")) is not None
    assert steps.parse_step("S1:") is None
    assert steps.parse_step("S1: Ship | timebox<=5m | fail_if=x") is None
    assert steps.parse_step(line.removeprefix("S1: ")) is None
    assert steps.parse_step("Ship it -> ok | timebox<=0m | fail_if=x") is None
    assert steps.parse_step("Ship it -> ok | timebox<=5m | x") is None
    assert steps.parse_step("Ship it -> ok | timebox<=5m | fail_if= ") is None


def test_drivers_are_apart_where_no_arrow_leads_from_one_to_another() -> None:
    def apart(*arrows: str) -> list[str]:
        drivers = [{"name": name, "strength": "HIGH"} for name in "abc"]
        data = {"drivers": drivers, "impact_graph": [f"{a[0]} UP -> {a[1]} UP" for a in arrows]}
        return causal_references.independent_drivers(
            judgement_parser.judgement_of(data, lambda *_: None)
        )

    assert apart("ax", "bx", "cx", "xy", "yx", "aa") == ["a", "b", "c"]
    assert apart("ax", "xy", "yc") == []
    assert apart("ax", "xa", "bx") == []


def test_nobody_judges_deeper_than_that() -> None:
    judge: dict[str, Any] = {"why": "the innermost"}
    for _ in range(20):
        judge = {"split": [judge]}

    depth, found = 0, judgement_parser.judgement_of(judge, lambda *_: None)
    while found.split:
        depth, found = depth + 1, found.split[0]

    assert depth == 6
    assert found.why is None
