"""The corners of the decision kernel: what is rare, foreign or broken."""

from typing import Any

import pytest

from accord.core import docket
from accord.core.dialects import papvp
from accord.core.docket import causes, convergence, emit, executor, reading, report, steps, tables
from accord.core.docket.model import Previous
from accord.core.docket.probes import Entry, contexts, fresh, switched
from accord.core.docket.snapshot import Snapshot
from accord.core.docket.words import Done, Level, Policy, Tier
from tests.helpers.docket import (
    CHANGE,
    codes,
    decide,
    evidence,
    item,
    named,
    ok,
    only,
    previous,
    probe,
    result,
    step,
)


def test_the_first_line_says_what_is_wanted() -> None:
    told = papvp.message(decide(item("A", ok("A"))))

    assert papvp.routed("\n REPORT \n")
    assert papvp.routed("CHECK repair=YES")
    assert not papvp.routed("<<<B>>>")
    assert papvp.answer(told).good
    assert papvp.answer(f"COMPARE\n{told}{told}", docket.Config(policy=Policy.GUARDED)).good
    invalid = papvp.answer("nothing", ui=papvp.Ui(diag=True))
    assert "[KERNEL_DIAG]\n- NO_ITEMS" in invalid.text
    assert "[HUMAN_TABLE]" not in invalid.text


def test_a_question_is_put_again_when_something_moved() -> None:
    head = "<<<B close_policy=REAL_ONLY ask_user=ALLOW>>>\n"
    first = decide(head + item("A", ok("A", close_intent="YES")))
    moved = decide(
        emit.fenced(first)
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

    assert first.ask == moved.ask


def test_ids_and_words_that_are_none_are_named() -> None:
    outcome = decide(item("A", ok("A"), attrs="depends_on=B,? expire_days=soon"))

    assert {each.detail for each in outcome.diags} == {
        "depends_on=?; it takes ids with commas between",
        "expire_days=soon; it takes a whole number from 1",
    }


def test_hosts_that_share_nothing_and_disagree_need_evidence() -> None:
    now = docket.snapshot_of(decide(item("X", ok("X", steps=[step("Do", "a", "a")]))))
    later = docket.snapshot_of(
        decide(item("X", ok("X", steps=[step("Do", "b", "b")], proposed_verdict="DO LATER")))
    )
    (peer,) = convergence.compare([now, later])

    assert peer.next_action == "ACQUIRE_EVIDENCE"
    silent = docket.snapshot_of(decide(item("X", ok("X", steps=[step("Do", "a", "a")]))))
    silent.items["X"].steps = ()
    silent.items["X"].next = None
    done = docket.snapshot_of(
        decide(item("X", ok("X", close_intent="YES", steps=[step("Do", "a", "z")]), more=result(1)))
    )
    (odd,) = convergence.compare([silent, done])
    assert odd.next_action == "ACQUIRE_EVIDENCE"


def test_a_failed_waiver_is_none() -> None:
    failed = f"{step('Waive dependency', 'B', 'waived')} | status=FAILED"
    prev = previous("ACTIVE", steps=(failed,), depends_on="B")

    assert only(decide(item("A", None, plan=None, prev=prev, more=CHANGE))).waived == ()


def test_a_snapshot_without_items_is_no_state() -> None:
    text = emit.block(decide(item("A", ok("A"))))
    bare = text[: text.index("[ITEM ")]

    lines = list(papvp.checked(bare).checked.lines())

    assert lines[-1] == "RESULT: INVALID(BATCH_COVERAGE)"
    assert not decide(bare).valid
    assert papvp.checked(bare, mend=True).repaired
    recovered = emit.block(decide(item("A", ok("A")), recovery=True))
    assert list(papvp.checked(recovered).checked.lines()) == ["RESULT: VALID"]
    assert (
        "RESULT: VALID"
        in list(papvp.checked(text.replace("counters:", "events:")).checked.lines())[-1]
    )


def test_a_contested_result_counts_for_less() -> None:
    known = probe(probe_id="P", status="VALIDATED", kill_switch_value="0.2", contested="YES")
    it = only(decide(item("A", {"probe_results": [known]}, plan=None, prev=previous("PROBING"))))

    assert it.log[0].status == "INCONCLUSIVE"


def test_two_items_may_name_their_probes_alike() -> None:
    mine = [item(n, ok(n, probe=probe(probe_id="P"), domain_type="Complex")) for n in "AC"]
    first = decide("".join(mine) + item("B", ok("B", domain_type="Complex")))
    adopted = decide(emit.fenced(first) + item("B", {"adopt": ["P"]}, plan=None))
    known = probe(probe_id="P", status="VALIDATED", kill_switch_value="0.2")
    after = decide(emit.fenced(adopted) + item("A", {"probe_results": [known]}, plan=None))

    assert named(adopted, "B").log[0].adopted == "C"
    assert named(after, "B").log[0].status == "ACTIVE"


def test_probing_always_has_a_next_step() -> None:
    first = decide(
        item(
            "A",
            ok("A", probe=probe(), steps=[step("Check", "it", "m=YES/NO")], domain_type="Complex"),
        )
    )
    known = {"probe_results": [probe(probe_id="Q", representativeness="MED")]}
    after = decide(emit.fenced(first) + item("A", known, plan=None, more=result(1)))
    rebuilt = decide(
        item(
            "A",
            ok(
                "A",
                steps=[{"kind": "HARNESS_REDESIGN", "text": step("Mend", "it")}],
                domain_type="Complex",
                step_results=[{"step": "1", "status": "COMPLETED"}],
            ),
        )
    )

    assert only(after).state == "PROBING"
    assert only(after).next_step
    assert only(rebuilt).plan[-1].output == "harness_valid=YES/NO"
    many = [step("Do", f"x{n}", f"o{n}", 60) for n in range(3)]
    over = decide(
        item(
            "A",
            ok(
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
    assert [each.output for each in only(over).plan] == ["a_ok=YES/NO"]
    loose = decide(
        item("A", ok("A", ratings="HMMM", steps=[step("Do", "x", "x", 90)]), more=evidence())
    )
    assert only(loose).trigger == "REDESIGN_TRIGGER"
    empty = decide(item("A", attrs="depends_on=B uses=R:1"))
    assert only(empty).over
    fits = decide(
        item(
            "A",
            ok(
                "A",
                ratings="HMMM",
                steps=[step("Do", "x", "x", 45)],
                missing_source={"identifiable": "YES", "acquirable": "YES"},
            ),
            more=evidence(),
            attrs="depends_on=Z",
        )
    )
    assert "STEP_DROPPED" in codes(fits)


def test_kill_switches_and_contexts_are_compared_where_they_can_be() -> None:
    full = Entry("P", kill_switch_condition="m>1", kill_switch_threshold="2", kill_switch_value="?")
    assert switched(full) == full
    words = Entry("P", kill_switch_condition="it breaks", kill_switch_value="1")
    assert switched(words).kill_switch_triggered == "NO"
    unsure = Entry("P", constraint_signature="none")
    assert fresh(unsure, {}, "d", "b")[0].context_match == "UNKNOWN"
    signed = Entry(
        "P", decision_context_id="c", constraint_signature="ENV=dev|SCALE=M|DATA=R|TIME=1d"
    )
    other = Entry("Q", decision_context_id="c", decision_context_metric="x")
    odd = Entry("Q", decision_context_id="c", constraint_signature="?")
    assert fresh(signed, contexts([other, odd]), "d", "b")[1] is False
    vague = Entry("P", representativeness="HIGH OVERRIDE_REPR(me)", decision_context_driver="-")
    assert fresh(vague, {}, "-", "b")[0].base is Level.LOW
    plain: dict[str, Any] = {"probe_results": [{"probe_id": "P"}]}
    it = only(decide(item("A", plain, plan=None, prev=previous("PROBING"))))
    assert it.log[0].target_driver == "-"


def test_percentages_fall_back_to_what_the_snapshot_says() -> None:
    it = Previous("A")
    assert report.metrics(it)["timebox_utilization_pct"] == "missing in snapshot"
    it.impact, it.critical = Level.HIGH, "d"
    assert report.metrics(it)["complexity_utilization_pct"] == "0.0"


def test_a_foreign_snapshot_is_read_as_far_as_it_goes() -> None:
    block = previous("ACTIVE", log="(empty)\nnonsense").replace(
        "[DERIVED]", "[EVIDENCE_BINDING]\nBenefit: rating=HIGH\nCost: ?\n[DERIVED]"
    )
    twice = previous("ACTIVE", log="- probe_id: P\n  status: ACTIVE\n- probe_id: Q")

    assert only(decide(item("A", None, plan=None, prev=block))).binding == {}
    assert [each.probe_id for each in only(decide(item("A", None, plan=None, prev=twice))).log] == [
        "P",
        "Q",
    ]
    strange = emit.fenced(decide(item("A", ok("A")))).replace("[ITEM id=A]", "[ITEM id=a b]")
    assert not decide(strange).valid
    refused = decide(emit.fenced(decide("")) + item("A", ok("A")))
    assert "PREV_INVALID" in codes(refused)
    assert refused.valid


def test_results_are_printed_with_their_steps() -> None:
    found = steps.parse(
        f"S2: {step('Do', 'it')} | status=COMPLETED | evidence_tier=REAL | result=42 passed"
    )

    assert found
    assert found[0] == 2
    assert (found[1].status, found[1].tier, found[1].result) == (
        Done.COMPLETED,
        Tier.REAL,
        "42 passed",
    )
    assert found[1].line(2).endswith(" | status=COMPLETED | evidence_tier=REAL | result=42 passed")


def test_every_row_has_its_place() -> None:
    text = (
        item("A", ok("A", proposed_verdict="DISCARD"))
        + item("B", ok("B", close_intent="YES"))
        + item("C", ok("C", "x", confidence="LOW", ratings="MMHM", proposed_verdict="DO LATER"))
    )
    snap = docket.snapshot_of(
        decide(
            text
            + "".join(
                item(f"D{n}", ok(f"D{n}", "x", confidence="LOW", proposed_verdict="DO LATER"))
                for n in range(6)
            )
        )
    )

    told = "\n".join([*tables.ops(snap), *tables.risk(snap)])

    assert "| CUT | A |" in told
    assert "| DONE | B |" in told
    assert "+2" in told
    snap.queue[0].verdict = "?"
    snap.queue[0].term = "N"
    snap.queue[0].impact = "?"
    assert "| - | A |" in "\n".join(tables.ops(snap))


def test_a_snapshot_that_names_an_item_only_in_its_queue() -> None:
    snap = docket.snapshot_of(decide(item("A", ok("A"))))
    snap.items.clear()

    assert "| P1 | A | DO NOW | - |" in "\n".join(tables.ops(snap))
    assert not executor.allow(snap, "A", "x").allowed
    assert not Snapshot(1, []).usable


@pytest.mark.parametrize(
    "said", ["[STEPS]", "[ITEM id=Z]", "[HUMAN_TABLE]", "OutputValidity: INVALID", "- x", "```"]
)
def test_what_somebody_says_is_never_read_as_a_part_of_the_snapshot(said: str) -> None:
    first = decide(item("A", ok("A")))
    change = {"delta": {"break": said, "patch": said}}

    second = decide(emit.fenced(first) + item("A", change, plan=None, more=CHANGE))
    third = decide(emit.fenced(second))

    assert second.valid, second.diags
    assert third.valid, third.diags
    assert [(each.id, each.before, each.state) for each in third.items] == [
        ("A", "ACTIVE", "ACTIVE")
    ]


def test_an_action_has_two_words_behind_its_number() -> None:
    line = "S1: Ship -> ok=YES/NO | timebox<=5m | fail_if=x"

    assert steps.parse(line) is None
    assert steps.parse(line.replace("Ship", "Ship it")) is not None
    assert steps.parse(line.replace("Ship", "Ship it").replace("ok=YES/NO", "")) is None
    assert steps.parse(line.replace("Ship ->", "Ship it")) is None
    assert steps.parse(line.replace("Ship", "-> it -> on")) is not None
    assert steps.parse("S1:") is None
    assert steps.parse("S1: Ship | timebox<=5m | fail_if=x") is None
    assert steps.parse(line.removeprefix("S1: ")) is None
    assert steps.parse("Ship it -> ok | timebox<=0m | fail_if=x") is None
    assert steps.parse("Ship it -> ok | timebox<=5m | x") is None
    assert steps.parse("Ship it -> ok | timebox<=5m | fail_if= ") is None


def test_drivers_are_apart_where_no_arrow_leads_from_one_to_another() -> None:
    def apart(*arrows: str) -> list[str]:
        drivers = [{"name": name, "strength": "HIGH"} for name in "abc"]
        data = {"drivers": drivers, "impact_graph": [f"{a[0]} UP -> {a[1]} UP" for a in arrows]}
        return causes.independent(reading.judge(data, lambda *_: None))

    assert apart("ax", "bx", "cx", "xy", "yx", "aa") == ["a", "b", "c"]
    assert apart("ax", "xy", "yc") == []
    assert apart("ax", "xa", "bx") == []


def test_nobody_judges_deeper_than_that() -> None:
    judge: dict[str, Any] = {"why": "the innermost"}
    for _ in range(20):
        judge = {"split": [judge]}

    depth, found = 0, reading.judge(judge, lambda *_: None)
    while found.split:
        depth, found = depth + 1, found.split[0]

    assert depth == 6
    assert found.why is None
