"""What is made from snapshots: tables, reports, comparisons, checks, and leave to act."""

# ruff: noqa: E501 - as it is printed

import re
from typing import Any

import pytest

from accord.core import docket
from accord.core.dialects import papvp
from accord.core.docket import convergence, executor_contract
from accord.core.docket.convergence import PeerConvergence
from accord.core.docket.model import DecisionOutcome, KernelConfig
from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.snapshot import DecisionSnapshot
from accord.core.docket.vocabulary import KernelPolicy
from tests.helpers.docket.batch_text import (
    evidence,
    item,
    item_named,
    parsed_snapshot,
    probe,
    result,
    run_batch,
    step,
    valid_judgement,
)
from tests.spec import proves

HEAD = "<<<B expire_days=30 resource_pool=ENG:1>>>\n"
GOLDEN = (
    HEAD
    + item("UP", valid_judgement("UP", "u"), attrs="uses=ENG:1")
    + item("A", valid_judgement("A"), attrs="depends_on=UP")
    + item("R", valid_judgement("R", "r", urgency="LOW"), attrs="uses=ENG:1")
    + item(
        "P",
        valid_judgement(
            *("P", "lat"),
            domain_type="Complex",
            urgency="HIGH",
            confidence="LOW",
            probe=probe("lat", representativeness="MED"),
        ),
    )
)
QUEUE = """\
UP | DRAFT->ACTIVE | DO NOW | HIGH | MED | ds:OK | term:N | ct:- | pp:OPEN | exp:30 | gate:NONE | S1: Ship UP -> UP_shipped=YES/NO
A | DRAFT->STANDBY | DO LATER | HIGH | MED | ds:OK | term:N | ct:- | pp:OPEN | exp:30 | gate:DEPENDENCY_BLOCK | S1: Close dependency UP -> UP_terminal=YES/NO
R | DRAFT->STANDBY | DO LATER | HIGH | LOW | ds:OK | term:N | ct:- | pp:OPEN | exp:30 | gate:DEPENDENCY_BLOCK | S1: Wait for resource ENG -> ENG_available=YES/NO
P | DRAFT->PROBING | DO NOW | HIGH | HIGH | ds:SLOW | term:N | ct:- | pp:OPEN | exp:30 | gate:NONE | S1: Run probe P_PRB_01 on lat -> P_PRB_01_pass=YES/NO
"""
OPS = """\
| P2 | UP | DO NOW | u | NONE | - | SIMULATED | MED | - | pc0 nm0 inc0 (-) | tb=30/120 cx=2/7 | UP_shipped=YES/NO |
| LATER | A | DO LATER | drv | DEPENDENCY_BLOCK | - | SIMULATED | MED | - | pc0 nm0 inc0 (-) | tb=40/120 cx=4/7 | UP_terminal=YES/NO |
| LATER | R | DO LATER | r | DEPENDENCY_BLOCK | - | SIMULATED | MED | - | pc0 nm0 inc0 (-) | tb=40/120 cx=3/7 | ENG_available=YES/NO |
| P1 | P | DO NOW | lat | NONE | - | SIMULATED | LOW | OPEN(lat) | pc0 nm0 inc0 (A) | tb=40/120 cx=3/7 | P_PRB_01_pass=YES/NO |

ACTIONS: P P_PRB_01_pass=YES/NO; UP UP_shipped=YES/NO
WATCH: (none)
WAITING: (none)
"""
RISK = "| lat | 1 | 3 | P | OPEN | - |\n"


def snap(text: str, **config: Any) -> DecisionSnapshot:
    return parsed_snapshot(run_batch(text, **config))


@proves("PA-OUTPUT-4", "PA-OUTPUT-5", "PA-OUTPUT-7", "PA-QUEUE-1", "PA-QUEUE-2")
@proves("PA-TABLE-1", "PA-TABLE-2", "PA-TABLE-3", "PA-SCALE-2")
def test_the_golden_sample_is_printed_letter_by_letter() -> None:
    text = papvp.render_outcome(run_batch(GOLDEN))

    assert f"[QUEUE]\n{QUEUE}[ITEM id=UP]\n[ITEM_PANEL]\n" in text
    assert OPS in text
    assert RISK in text
    assert "TopGates: A=DEPENDENCY_BLOCK, R=DEPENDENCY_BLOCK\n" in text
    assert text.count("```") == 2
    assert text.index("[HUMAN_TABLE]") > text.rindex("```")
    assert "| UP | DO NOW | HIGH | MED | OK | N | - | NONE | DRAFT->ACTIVE | 30 |" in text


@proves("PA-TABLE-4", "PA-INPUT-5", "OPEN-87")
def test_a_pasted_answer_goes_on_and_its_tables_are_ignored() -> None:
    text = papvp.render_outcome(run_batch(GOLDEN)).replace("| UP | DO NOW", "| UP | DISCARD")

    bare = run_batch(text)
    after = run_batch(text + item("UP", None, plan=None, more=result(1)))

    assert [each.state for each in bare.items] == ["ACTIVE", "STANDBY", "STANDBY", "PROBING"]
    assert [each.state for each in after.items] == ["CLOSED", "ACTIVE", "ACTIVE", "PROBING"]
    assert item_named(after, "UP").closure_tier == "SIM"
    assert all(each.surface == "DELTA" for each in after.items)


@proves("PA-REPORT-1", "PA-REPORT-2", "PA-REPORT-6", "PA-REPORT-7", "PA-REPORT-8")
@proves("PA-REPORT-9", "PA-REPORT-10", "PA-REPORT-11", "PA-REPORT-12", "PA-REPORT-13")
@proves("PA-REPORT-14", "PA-REPORT-15", "PA-REPORT-3", "OPEN-91", "PA-LAYER-1")
def test_a_report_tells_the_snapshot_and_adds_four_percentages() -> None:
    text = papvp.render_outcome(run_batch(GOLDEN))

    lite, full = papvp.respond(f"REPORT LITE\n{text}").text, papvp.respond(f"REPORT\n{text}").text

    assert lite.startswith("PA_PVP REPORT LITE\nBatchID: 00000000-")
    assert "States: DRAFT=0 ACTIVE=1 STANDBY=2 PROBING=1 CLOSED=0" in lite
    assert "DO NOW: UP, P\nBlocked: A=DEPENDENCY_BLOCK, R=DEPENDENCY_BLOCK\n" in lite
    assert "- P: gate=NONE; trigger=NONE; driver=lat; conf=LOW; next=P_PRB_01_pass=YES/NO" in lite
    assert lite.endswith(
        "- P: execute P_PRB_01_pass=YES/NO\n- UP: execute UP_shipped=YES/NO\n"
        "- A: planned UP_terminal=YES/NO\n- R: planned ENG_available=YES/NO\n"
    )
    assert "```" not in full
    assert "[QUEUE]" not in full
    a, p = (re.search(rf"\n{name}\n(.*?)probe_res.*?\n", full, re.DOTALL) for name in "AP")
    assert a
    assert p
    for line in ("timebox_utilization_pct: 33.3", "complexity_utilization_pct: 57.1"):
        assert line in a[0]
    assert "probe_resolution_pct: missing in snapshot" in a[0]
    assert "complexity_utilization_pct: 42.9" in p[0]
    assert "probe_resolution_pct: 0.0" in p[0]
    assert "    S1 [PENDING] Close dependency UP -> UP_terminal=YES/NO\n" in a[0]
    assert full.endswith("Terminal items:\n- (none)\n")


@proves("PA-REPORT-4", "PA-REPORT-5", "PA-INVALID-1")
def test_a_report_without_its_one_snapshot_is_one_line() -> None:
    text = papvp.render_outcome(run_batch(GOLDEN))
    invalid = snapshot_writer.render_fenced(run_batch("nothing here"))
    told = papvp.respond(f"REPORT\n{text}").text

    for bad in ("", text + text, invalid, told):
        assert papvp.respond(f"REPORT LITE\n{bad}").text == "ERROR: missing or invalid snapshot\n"
    assert "[QUEUE]" not in invalid
    assert "OutputValidity: INVALID\nInvalidReason: OTHER\n" in invalid
    assert not run_batch(told).is_valid


def test_a_snapshot_that_says_little_is_reported_as_such() -> None:
    thin = (
        "STATE: DECISION.X\n[PANEL]\nProtocol: PA_PVP\n[QUEUE]\n"
        "- A | DRAFT->ACTIVE | DO NOW | HIGH | MED | ds:OK | term:N | ct:? | pp:OPEN | exp:30"
        " | gate:NONE | S1: Do it -> done\n"
        "B | DRAFT->CLOSED | DO NOW | LOW | MED | ds:OK | term:Y | ct:SIM | pp:CLOSED | exp:30"
        " | gate:NONE | (none)\nC | DRAFT\n[ITEM id=A]\n[STEPS]\n- S1: Do it -> done | timebox<=5m"
        " | fail_if=bad\n[DERIVED]\ncounters: tb=?/1\n[ITEM id=C]\n[ITEM_PANEL]\ncritical_driver: d\n"
        "impact: LOW\n[ITEM id=a]b]\n"
    )

    text = papvp.respond(f"REPORT\n{thin}").text

    assert "BatchID: missing in snapshot" in text
    assert "driver=missing in snapshot; conf=missing in snapshot; next=(none)" in text
    assert "timebox_utilization_pct: 4.2" in text
    assert "complexity_utilization_pct: missing in snapshot" in text
    assert "- B: CLOSED verdict=DO NOW ct=SIM gate=NONE" in text
    assert "What to do next:\n- (none)" in text


SMOKE = step("Run", "smoke", "smoke", 10)
LOAD, SHIP = step("Run", "load", "load", 20), step("Push", "it", "deploy", 30)


def host(*steps: str, **changes: Any) -> DecisionSnapshot:
    return snap(item("X", valid_judgement("X", steps=list(steps), **changes)))


FIRST = (SMOKE, LOAD, SHIP)
PAIRS = [
    (host(*FIRST), host(step("Run", "smoke", "smoke", 5), step("Push", "it", "deploy", 20)),
     "1 1 0.67 0 CONVERGED", "EXECUTE smoke"),
    (host(*FIRST), host(step("Run", "lint", "lint", 5), SMOKE, step("Run", "unit", "unit", 3), step("Do", "z", "zzz", 1)),
     "1 1 0.20 0 CONVERGED", "EXECUTE smoke"),
    (host(*FIRST), host(step("Do", "other", "other", 5)), "1 1 0.00 0 SOFT_DIVERGENCE", "EXECUTE other"),
    (host(*FIRST), host(SMOKE, proposed_verdict="DO LATER"), "0 1 0.33 0 HARD_DIVERGENCE", "EXECUTE smoke"),
    (host(*FIRST), host(proposed_verdict="DISCARD"), "0 1 0.00 0 HARD_DIVERGENCE", "ACQUIRE_EVIDENCE"),
    (host(proposed_verdict="DISCARD"), host(proposed_verdict="DISCARD"), "1 1 1.00 0 CONVERGED", "NONE"),
    (host(*FIRST), host(SMOKE, ratings="HLML", probe=probe()), "1 0 0.25 0 SOFT_DIVERGENCE", "EXECUTE smoke"),
    (host(SMOKE, proposed_verdict="DO LATER"), host(SMOKE, proposed_verdict="DO LATER"),
     "1 1 1.00 0 CONVERGED", "HOLD smoke"),
]  # fmt: skip


def told(peer: PeerConvergence) -> tuple[str, str]:
    return f"{peer.va} {peer.ga} {peer.so} {peer.cd} {peer.kind}", peer.next_action


@proves("PA-CONV-1", "PA-CONV-1b", "PA-CONV-2", "PA-CONV-3", "PA-CONV-4", "PA-CONV-5")
@proves("PA-CONV-6", "PA-CONV-7", "PA-CONV-8", "PA-CONV-9")
@pytest.mark.parametrize(("a", "b", "measures", "action"), PAIRS)
def test_two_hosts_are_compared_by_fixed_measures(
    a: DecisionSnapshot, b: DecisionSnapshot, measures: str, action: str
) -> None:
    (peer,) = convergence.compare_snapshots([a, b])

    assert told(peer) == (measures, action)


@proves("OPEN-92", "OPEN-93")
def test_guarded_hosts_that_disagree_execute_nothing() -> None:
    (hard,) = convergence.compare_snapshots(PAIRS[3][:2], KernelPolicy.GUARDED)
    (empty,) = convergence.compare_snapshots(PAIRS[5][:2], KernelPolicy.GUARDED)
    other = snap(item("Y", valid_judgement("Y")))
    alone = convergence.compare_snapshots([PAIRS[0][0], other])

    assert hard.next_action == "HOLD smoke"
    assert told(empty) == ("1 1 0.00 0 SOFT_DIVERGENCE", "NONE")
    assert [told(each) for each in alone] == [
        ("0 0 0.00 3 HARD_DIVERGENCE", "ACQUIRE_EVIDENCE")
    ] * 2


@proves("OPEN-94", "PA-CONV-11", "PA-CONV-10")
def test_many_hosts_need_a_majority() -> None:
    now, cut = host(*FIRST), host(proposed_verdict="DISCARD")
    late = host(SMOKE, proposed_verdict="DO LATER")
    lone = host(step("Do", "other", "other", 5))

    def action(*hosts: DecisionSnapshot) -> str:
        return convergence.compare_snapshots(list(hosts))[0].next_action

    assert action(now, now, late) == "EXECUTE smoke"
    assert action(now, now, cut) == "HOLD smoke"
    assert action(now, cut, late) == "ACQUIRE_EVIDENCE"
    assert action(cut, cut, now) == "DISCARD"
    assert action(cut, cut, cut) == "DISCARD"
    assert action(lone, host(SMOKE), host(LOAD)) == "EXECUTE other"
    text = "\n".join(f"```\n{chr(10).join(each.lines)}\n```" for each in (now, now, late))
    answer = papvp.respond(f"COMPARE\n{text}")
    assert answer.text == (
        "[PEER_CONVERGENCE]\n| id | VA | GA | SO | CD | class | next_action | votes |\n"
        "|---|---|---|---|---|---|---|---|\n"
        "| X | 0 | 1 | 0.33 | 0 | SOFT_DIVERGENCE | EXECUTE smoke | 2/3 |\n"
    )
    assert not papvp.respond("COMPARE\nnothing").is_valid


def test_hosts_without_panels_or_steps_still_compare() -> None:
    bare = PAIRS[0][0]
    thin = DecisionSnapshot(
        1, bare.lines, block_heads=bare.block_heads, queue=bare.queue, row_by_id=bare.row_by_id
    )
    empty = host(proposed_verdict="DISCARD")
    row = empty.queue[0]
    row.verdict = "DO NOW"

    (peer,) = convergence.compare_snapshots([bare, thin])

    assert told(peer) == ("1 1 0.00 3 SOFT_DIVERGENCE", "EXECUTE smoke")
    (nothing,) = convergence.compare_snapshots([thin, thin, thin], KernelPolicy.GUARDED)
    assert nothing.next_action == "NONE"
    (steps,) = convergence.compare_snapshots([thin, empty, bare])
    assert steps.next_action == "HOLD smoke"


GATE = (
    "<<<B exec_capability=RUNTIME_OK close_policy=REAL_ONLY resource_pool=PROD:1>>>\n"
    + item("TESTS", valid_judgement("TESTS", "suite_green", steps=[
        step("Run", "unit test suite", "suite_green=YES/NO", 20, "any_test_red")]))
    + item("DEPLOY", valid_judgement("DEPLOY", "error_rate", domain_type="Complex", urgency="HIGH", ratings="HLLH",
        confidence="HIGH", probe=probe("error_rate", probe_id="DEPLOY_PRB_01"), steps=[
            step("Run", "canary on 5pct traffic", "canary_ok=YES/NO", 10, "error_rate>1.0"),
            step("Deploy", "api v42", "deployed=YES/NO", 20, "error_rate>1.0")]),
        attrs="depends_on=TESTS uses=PROD:1 reversibility=COSTLY_REVERSIBLE")
)  # fmt: skip


def line(outcome: DecisionOutcome) -> str:
    tests, deploy = item_named(outcome, "TESTS"), item_named(outcome, "DEPLOY")
    token = deploy.next_step.output if deploy.next_step else "-"
    states = f"{tests.previous_state}->{tests.state} {deploy.previous_state}->{deploy.state}"
    return f"{states} {deploy.closure_tier} {deploy.trigger} {token} {deploy.reopen_total}"


def allowed(outcome: DecisionOutcome, name: str, token: str) -> bool:
    snapshot = docket.snapshot_of(outcome)
    return executor_contract.allow_step(snapshot, name, token, KernelPolicy.GUARDED).allowed


@proves("PA-CLOSE-2", "PA-CLOSE-4", "PA-REOPEN-1", "PA-REOPEN-2", "PA-ORCH-1", "OPEN-88")
def test_a_deploy_is_gated_from_the_first_proposal_to_the_second_incident() -> None:
    def goes_on(before: DecisionOutcome, name: str, more: str, **judge: Any) -> DecisionOutcome:
        return run_batch(
            snapshot_writer.render_fenced(before) + item(name, judge or None, plan=None, more=more)
        )

    validated = probe(
        *("error_rate",), probe_id="DEPLOY_PRB_01", status="VALIDATED", kill_switch_value="0.2",
        evidence_tier="EXPERIMENT",
    )  # fmt: skip
    one = run_batch(GATE)
    two = goes_on(one, "TESTS", f"{result(1)}\n{evidence()}")
    three = goes_on(two, "DEPLOY", result(1), probe_results=[validated])
    blocked = goes_on(three, "DEPLOY", result(2))
    four = goes_on(three, "DEPLOY", f"{result(2)}\n{evidence()}")
    five = goes_on(four, "DEPLOY", evidence(), steps=[step("Fix", "it")], proposed_verdict="DO NOW")
    six = goes_on(five, "DEPLOY", f"{result(1)}\n{result(2)}\n{evidence()}")
    seven = goes_on(six, "DEPLOY", evidence())

    assert [line(each) for each in (one, two, three, blocked, four, five, six, seven)] == [
        "DRAFT->ACTIVE DRAFT->PROBING - DEPENDENCY_BLOCK canary_ok=YES/NO 0",
        "ACTIVE->CLOSED PROBING->PROBING - NONE canary_ok=YES/NO 0",
        "CLOSED->CLOSED PROBING->ACTIVE - NONE deployed=YES/NO 0",
        "CLOSED->CLOSED ACTIVE->STANDBY - CLOSE_BLOCKED_REAL_ONLY real_evidence=RECEIVED 0",
        "CLOSED->CLOSED ACTIVE->CLOSED REAL NONE - 0",
        "CLOSED->CLOSED CLOSED->ACTIVE - NONE mitigation_DEPLOY=YES/NO 1",
        "CLOSED->CLOSED ACTIVE->CLOSED REAL NONE - 1",
        "CLOSED->CLOSED CLOSED->CLOSED REAL REOPEN_BLOCKED_BUDGET - 1",
    ]
    assert item_named(seven, "DEPLOY").reopen_blocked_count == 1
    assert (
        item_named(one, "DEPLOY").timebox_minutes,
        item_named(one, "DEPLOY").complexity_tax,
    ) == (40, 6)
    assert (
        item_named(two, "DEPLOY").timebox_minutes,
        item_named(two, "DEPLOY").complexity_tax,
    ) == (30, 3)
    assert allowed(one, "DEPLOY", "canary_ok=YES/NO")
    assert not allowed(two, "DEPLOY", "deployed=YES/NO")
    assert allowed(three, "DEPLOY", "deployed=YES/NO")
    assert not allowed(four, "DEPLOY", "deployed=YES/NO")


def test_leave_to_act_is_given_for_the_next_step_alone() -> None:
    told = snap(GATE)

    def why(
        item_id: str,
        token: str,
        s: DecisionSnapshot = told,
        p: KernelPolicy = KernelPolicy.UPSTREAM,
    ) -> str:
        said = executor_contract.allow_step(s, item_id, token, p)
        assert not said.allowed
        return said.reason

    assert why("TESTS", "other") == "The next step of TESTS is suite_green=YES/NO, not other."
    assert "no item X" in why("X", "a")
    assert "not valid" in why("X", "a", DecisionSnapshot(1, []))
    late = snap(
        item("A", valid_judgement("A"), attrs="depends_on=B") + item("B", valid_judgement("B"))
    )
    assert "STANDBY (DO LATER), trigger DEPENDENCY_BLOCK" in why("A", "A_shipped=YES/NO", late)
    (late.items["A"].next_step,) = (
        each for each in late.items["A"].steps if each.action == "Ship A"
    )
    late.row_by_id["A"].state, late.row_by_id["A"].verdict = "ACTIVE", "DO NOW"
    assert why("A", "A_shipped=YES/NO", late) == "A waits for B first."
    late.row_by_id["A"].gate = "EXTERNAL_BLOCK"
    assert "behind EXTERNAL_BLOCK" in why("A", "A_shipped=YES/NO", late)
    done = run_batch(
        GATE.replace("depends_on=TESTS", "").replace("<<<END>>>", f"{result(1)}\n<<<END>>>")
    )
    assert item_named(done, "DEPLOY").state == "PROBING"
    guarded = docket.snapshot_of(done)
    assert executor_contract.allow_step(guarded, "DEPLOY", "deployed=YES/NO").allowed
    assert "still being probed" in why("DEPLOY", "deployed=YES/NO", guarded, KernelPolicy.GUARDED)


def test_what_a_snapshot_does_not_say_is_missing_in_its_report() -> None:
    """Rulebook 6.1: nothing is filled in."""
    text = snapshot_writer.render_fenced(run_batch(item("A", valid_judgement("A"))))
    bare = text.replace("best_evidence_tier: SIMULATED\n", "").replace(
        "falsification_debt: NONE\n", ""
    )
    resumed = snapshot_writer.render_fenced(run_batch(text))

    for told in (text, resumed):
        lines = papvp.report(told, lite=False).text.split("\n")
        assert "  best_evidence_tier: SIMULATED" in lines
        assert "  falsification_debt: NONE" in lines
    lines = papvp.report(bare, lite=False).text.split("\n")
    assert "  best_evidence_tier: missing in snapshot" in lines
    assert "  falsification_debt: missing in snapshot" in lines


def test_a_host_without_a_line_of_the_queue_is_read_from_its_panel() -> None:
    """Rulebook 6.2: the verdict of the queue, else of the panel."""
    whole, bare = host(*FIRST), host(*FIRST)
    bare.queue, bare.row_by_id = [], {}
    (peer,) = convergence.compare_snapshots([whole, bare])
    assert told(peer) == ("1 1 1.00 0 CONVERGED", "EXECUTE smoke")

    bare.items["X"].verdict = None
    (gone,) = convergence.compare_snapshots([whole, bare])
    assert told(gone) == ("0 0 0.00 3 HARD_DIVERGENCE", "ACQUIRE_EVIDENCE")
    assert convergence.compare_snapshots([bare, bare]) == []


@proves("PA-INTEG-1", "OPEN-78")
def test_the_hash_is_over_the_block_and_outside_of_it() -> None:
    outcome = run_batch(GOLDEN)
    digest = docket.snapshot_hash(outcome)

    assert len(digest) == 64
    assert digest not in snapshot_writer.render_block(outcome)
    assert digest == docket.snapshot_hash(run_batch(GOLDEN))


def checked(text: str, **options: Any) -> list[str]:
    return list(papvp.check_snapshot(text, **options).checked.render())


def test_a_check_knows_what_a_batch_may_not_do() -> None:
    closed = item("A", valid_judgement("A", close_intent="YES"), attrs="depends_on=B") + item(
        "B", valid_judgement("B"), attrs="uses=ENG:2"
    )
    text = snapshot_writer.render_fenced(run_batch(closed.replace("depends_on=B", "")))
    for old, new, what in (
        ("ClosePolicy: SIM_OK", "ClosePolicy: REAL_ONLY", "closed on a simulation"),
        ("depends_on: -", "depends_on: B", ""),
        ("[ITEM id=B]", "[ITEM id=A]", "missing={B}"),
    ):
        assert what in "\n".join(checked(text.replace(old, new, 1)))
    loops = snapshot_writer.render_fenced(
        run_batch(item("A", valid_judgement("A")) + item("B", valid_judgement("B")))
    )
    loops = loops.replace("depends_on: -", "depends_on: B", 1).replace(
        "depends_on: -", "depends_on: A", 1
    )
    assert "it waits for itself and cannot run" in "\n".join(checked(loops))
    debts = snapshot_writer.render_fenced(
        run_batch("".join(item(n, valid_judgement(n)) for n in "ABC"))
    )
    for name in "xyz":
        debts = debts.replace("falsification_debt: NONE", f"falsification_debt: OPEN({name})", 1)
    assert "3 drivers in debt" in "\n".join(checked(debts))
    fine = snapshot_writer.render_fenced(run_batch(GOLDEN))
    assert checked(fine) == ["RESULT: VALID"]
    assert checked(fine, expected=("UP",))[-1] == "RESULT: INVALID(BATCH_COVERAGE)"
    assert checked(f"{fine}\n```\nmore\n```")[-1] == "RESULT: INVALID(CODE_BLOCK_PURITY)"
    assert checked("nothing")[-1] == "RESULT: INVALID(OTHER)"
    assert "no [NEXT]" in "\n".join(checked(re.sub(r"\[NEXT\]\n.*\n", "", fine)))
    dead = fine.replace("DRAFT->ACTIVE | DO NOW", "DRAFT->DISCARDED | DISCARD", 1)
    assert "DISCARDED has no next step" in "\n".join(checked(dead))


def test_a_model_that_lies_is_put_right() -> None:
    honest = run_batch(
        item(
            "A",
            valid_judgement("A", confidence="LOW", domain_type="Complex", probe=probe(), why="so"),
        )
        + item("B", valid_judgement("B", contested="YES"))
        + item(
            "C", valid_judgement("C", close_intent="YES", steps=[step("Do", "it")]), more=result(1)
        )
    )
    lie = snapshot_writer.render_fenced(honest).replace("DRAFT->PROBING", "DRAFT->ACTIVE")

    answer = papvp.respond(f"CHECK repair=YES\n{lie}")
    missing = papvp.check_snapshot(lie, ("A", "Z"), KernelConfig(), mend=True)

    assert not answer.is_valid
    assert "V12 A" in answer.text
    assert "A | DRAFT->PROBING | DO NOW" in answer.text
    assert missing.repaired
    assert missing.repaired.invalid_reason == "BATCH_COVERAGE"
    assert "CoverageDiff: missing={Z}; extra={B,C}" in snapshot_writer.render_block(
        missing.repaired
    )
    assert papvp.respond(f"CHECK\n{snapshot_writer.render_fenced(honest)}").is_valid


def test_a_judgement_alone_is_checked_field_by_field() -> None:
    flaws = papvp.judgement_errors(
        '{"urgency": "SOON", "x": 1, "probe": 3, "why": [], "binding": 1, "steps": ["a", {}], '
        '"hedge": {"window_exceeded": true, "risk_cap": false}, "drivers": null, '
        '"delta": {"refs": ["x", {}]}, "split": [{"binding": {"Odd": {}, "Cost": 2}}]}'
    )

    assert [each.detail for each in flaws] == [
        "there is no x",
        "urgency is 'SOON'; it takes LOW, MED, HIGH",
        "why should be a text, not []",
        "binding should be an object, not 1",
        "probe should be an object, not 3",
        "split[0].binding.Odd is 'Odd'; it takes Benefit, Cost, Risk, CostOfDelay",
        "split[0].binding.Cost should be an object, not 2",
        "delta.refs[1] should be a text, not {}",
        "step 1: a",
        "step 2: ",
    ]
    assert all(each.hint for each in flaws)
    assert papvp.judgement_errors("[" * 9999)[0].code == "JUDGE_SYNTAX"
    assert papvp.judgement_errors("[1]")[0].detail == "it is not an object"
