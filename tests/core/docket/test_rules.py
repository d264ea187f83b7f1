"""The rules of the decision kernel, clause by clause."""

# ruff: noqa: E501 - an example is a line

import inspect
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from accord.core import docket
from accord.core.docket import (
    causes,
    emit,
    finish,
    judge,
    plan,
    probes,
    rules,
    scoring,
    snapshot,
    steps,
    text,
)
from accord.core.docket.model import Config, Ledger, Outcome
from accord.core.docket.probes import Entry
from accord.core.docket.words import (
    GATES,
    TERMINAL,
    Confidence,
    Dim,
    Flag,
    Gate,
    Kind,
    Level,
    Margin,
    Policy,
    State,
    Tier,
    Trigger,
)
from tests.helpers.docket import (
    CHANGE,
    LEVELS,
    PLAN,
    THIN,
    codes,
    decide,
    evidence,
    item,
    named,
    ok,
    only,
    previous,
    probe,
    ratings,
    result,
    step,
)
from tests.spec import proves

COMPLEX: dict[str, Any] = {"domain_type": "Complex"}
SHIP = step("Ship", "A", "A_shipped=YES/NO", 30, "ci_red")


def delta(prev: str, judgement: dict[str, Any] | None = None, more: str = "") -> str:
    return item("A", judgement, plan=None, prev=prev, more=more)


def tokens(outcome: Outcome, name: str = "A") -> list[str]:
    return [each.output for each in named(outcome, name).plan]


def goes_on(before: Outcome, *wrapped: str, **config: Any) -> Outcome:
    return decide(emit.fenced(before) + "".join(wrapped), **config)


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


@proves("PA-INPUT-7", "PA-CLOSE-1", "PA-RES-1", "PA-INPUT-1")
def test_attributes_are_read_and_guards_fail_closed() -> None:
    head = (
        "<<<B keep_open=YES expire_days=0 exec_capability=RUN close_policy=SIMOK ssot_scale=BIG"
        ' resource_pool=ENG:1,odd ask_user=PERHAPS batch_id="a b" color=red>>>\n<<<B>>>\n'
    )
    attrs = (
        'title="a \\"b\\" c" reversibility=IRREVERSIBEL impact=HIGH profile=DIY id=A expire_days=9'
        " depends_on=[B,?] uses=ENG:1 keep_open=NO ask_user=ALLOW depends_on=B"
    )
    outcome = decide(head + item("A", ok("A"), attrs=attrs) + "<<<PLAN>>>\n" + head)
    it = only(outcome)

    assert it.title == 'a "b" c'
    assert it.reversibility == "IRREVERSIBLE"
    assert it.profile == "DIY"
    assert it.depends_on == ("B",)
    assert it.expires == "9"
    assert (outcome.close_policy, outcome.runtime, outcome.scale) == (
        "REAL_ONLY",
        "NO_RUNTIME",
        "MIN",
    )
    assert outcome.pool == {"ENG": 1}
    assert {"ATTR_VALUE", "ATTR_UNKNOWN", "ATTR_DERIVED", "ATTR_REPEATED", "B_DUPLICATE"} <= codes(
        outcome
    )
    assert "SECTION_OUTSIDE" in codes(outcome)
    plain = decide("<<<B resource_pool=>>>\n" + item("A", ok("A"), attrs="depends_on="))
    assert (plain.runtime, plain.close_policy, plain.pool) == ("NO_RUNTIME", "SIM_OK", None)
    assert decide("<<<B batch_id=b-1>>>\n" + item("A", ok("A"))).batch_id == "b-1"
    assert text.ids("[A, B ?]") == (("A", "B"), ["?"])


@proves("PA-INPUT-2", "PA-INPUT-3", "PA-INPUT-4", "PA-INPUT-6", "OPEN-86")
def test_an_item_has_exactly_one_mode_and_is_never_lost() -> None:
    def made(body: str) -> tuple[Any, ...]:
        it = only(decide(f"<<<I id=A>>>\n{body}\n<<<END>>>\n"))
        return it.mode, it.inp.ok, it.inp.missing, it.trigger, it.plan[0].output

    acquire, park = "source_obtained=YES/NO", "source_named=YES/NO"
    missing = "MISSING_SOURCE_INPUT"
    assert made("<<<TARGET>>>\nx\n<<<TOOL>>>\ny")[:3] == ("TARGET", True, [])
    assert made("<<<TOOL>>>\ny") == ("TARGET", False, ["target"], missing, acquire)
    assert made("<<<TOOL>>>\n<<<TARGET>>>\nx") == ("TARGET", False, ["tool_text"], missing, park)
    assert made("<<<ARTIFACT>>>") == ("ARTIFACT", False, ["artifact_text"], missing, park)
    assert made("<<<PLAN>>>\n- a\n<<<ARTIFACT>>>\nb") == (
        "PLAN",
        False,
        ["single_mode"],
        missing,
        park,
    )
    assert made("") == ("PLAN", False, ["mode"], missing, park)
    unended = decide(
        "<<<I id=A>>>\n<<<PLAN>>>\n\\<<<END>>>\n<<<I id=B>>>\n<<<PLAN>>>\n- x\n<<<PLAN>>>\n"
    )
    assert [each.inp.missing for each in unended.items] == [["END"], ["END"]]
    assert unended.items[0].inp.plan == "<<<END>>>"
    assert {"END_MISSING", "SECTION_REPEATED"} <= codes(unended)
    nameless = decide("<<<I>>>\n<<<PLAN>>>\n<<<END>>>\n" + item("A", ok("A")))
    assert nameless.inventory[-1][0] == "?"


@proves("PA-INPUT-6", "PA-INPUT-8")
def test_what_is_added_to_an_item_must_hold_something() -> None:
    more = (
        "<<<NEW_EVIDENCE evidence_tier=REAL>>>\n<<<NEW_EVIDENCE evidence_tier=DERIVED>>>\nx\n"
        "<<<CHANGE>>>\nno bullet\n<<<RESULT step=S1>>>\n<<<RESULT step=S7 status=FAILED>>>"
    )
    outcome = decide(item("A", ok("A"), more=more))

    assert {"EVIDENCE_REJECTED", "CHANGE_REJECTED", "RESULT_STATUS", "RESULT_NO_STEP"} <= codes(
        outcome
    )
    told = decide(delta(previous("CLOSED", derived="closure_tier: SIMULATED"), None, CHANGE))
    assert only(told).state is not State.CLOSED


def test_previous_state_is_that_of_the_same_item() -> None:
    other = previous("ACTIVE", "B")
    extra = f"words\n{previous('ACTIVE')}\n{other}"
    invalid = f"{previous('ACTIVE')}\nOutputValidity: INVALID"

    assert "PREV_MISMATCH" in codes(decide(delta(other)))
    assert "PREV_SCOPE" in codes(decide(delta(extra)))
    assert "PREV_INVALID" in codes(decide(delta(invalid)))
    whole = emit.block(decide(item("A", ok("A"))))
    assert only(decide(delta(whole))).before == "ACTIVE"


@proves("OPEN-87")
def test_only_one_snapshot_counts_and_others_are_carried_or_not() -> None:
    first = decide(item("A", ok("A")) + item("B", ok("B")))
    second = decide(item("C", ok("C")))
    pasted = emit.fenced(first) + emit.fenced(second) + item("B", None, plan=None)

    outcome = decide(pasted)
    alone = decide(pasted, carry_unaddressed=False)

    assert [each.id for each in outcome.items] == ["B", "A"]
    assert [each.id for each in alone.items] == ["B"]
    assert "SNAPSHOT_EXTRA" in codes(outcome)
    known = goes_on(first, item("B", ok("B"), attrs="depends_on=A"), carry_unaddressed=False)
    assert named(known, "B").inp.missing == []


@proves("PA-OUTPUT-8")
def test_steps_are_single_checkable_actions() -> None:
    def fault(asked: Any) -> list[str]:
        return steps.accept(asked)[1]

    assert fault(step("Deploy", "api", "ok", 0)) == ["STEP_GRAMMAR"]
    assert fault(step("Think", "hard")) == ["STEP_META_VERB"]
    assert (
        fault(judge.StepAsk(kind=Kind.PROBE, text=step("Evaluate", "it"), target_driver="d")) == []
    )
    assert fault(step("Build", "it then ship")) == ["STEP_CHAIN"]
    assert fault(step("Check with", "Bob")) == ["STEP_DELEGATION"]
    assert fault(judge.StepAsk(kind=Kind.ACQUIRE, text=step("Check with", "Bob"))) == []
    assert fault(judge.StepAsk(kind=Kind.PROBE, text=step("Try", "it", "done"))) == [
        "STEP_PROBE_OUTPUT"
    ]
    assert fault(step("Improve", "speed")) == ["STEP_VAGUE"]
    assert fault(judge.StepAsk()) == ["STEP_GRAMMAR"]
    assert steps.parse(f"{SHIP} | odd=1") is None
    assert steps.parse("x" * 5000) is None


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("Rollback the api", Kind.MITIGATE),
        ("Remove edge A to B", Kind.CYCLE_BREAK),
        ("Split it", Kind.SPLIT),
        ("Waive dependency B", Kind.DEP_WAIVE),
        ("Resolve dependency B", Kind.DEP_RESOLVE),
        ("Wait for resource ENG", Kind.RESOURCE_WAIT),
        ("Rebuild probe x", Kind.HARNESS_REDESIGN),
        ("Cut plan down", Kind.PLAN_REDESIGN),
        ("Fetch source x", Kind.SOURCE_ACQUIRE),
        ("Query logs", Kind.ACQUIRE),
        ("Measure it", Kind.PROBE),
        ("Run the new canary", Kind.PROBE),
        ("Testify now", Kind.EXEC),
    ],
)
def test_what_a_step_is_for_is_read_from_how_it_begins(action: str, kind: Kind) -> None:
    assert steps.kind_of(action) is kind


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


@proves("PA-MODE-1", "PA-MODE-2")
def test_the_pace_follows_from_the_state() -> None:
    slow = only(decide(item("A", ok("A", **COMPLEX))))
    bypass = only(decide(item("A", ok("A", ratings="MMHM"))))

    assert [only(decide(item("A", ok("A")))).pace, slow.pace, bypass.pace] == [
        "OK",
        "SLOW",
        "NO_TOOL",
    ]


@proves("PA-EXC-1", "PA-EXC-2", "PA-EXC-3")
@pytest.mark.parametrize(
    ("token", "trigger", "gate", "again"),
    [
        ("EXCEPTION_IO", "BLOCKED_EXTERNAL", "EXTERNAL_BLOCK", "A_shipped=YES/NO"),
        ("EXCEPTION_TIMEOUT", "BLOCKED_EXTERNAL", "EXTERNAL_BLOCK", "A_shipped=YES/NO"),
        ("EXCEPTION_AUTH", "BLOCKED_EXTERNAL", "EXTERNAL_BLOCK", "A_shipped=YES/NO"),
        ("EXCEPTION_DEPENDENCY", "DEPENDENCY_BLOCK", "DEPENDENCY_BLOCK", "A_shipped=YES/NO"),
        (
            "EXCEPTION_INVARIANT",
            "REDESIGN_TRIGGER",
            "REDESIGN_TRIGGER",
            "reworked_step_ready=YES/NO",
        ),
        ("EXCEPTION_ODD", "REDESIGN_TRIGGER", "REDESIGN_TRIGGER", "reworked_step_ready=YES/NO"),
    ],
)
def test_an_exception_says_who_is_to_blame(token: str, trigger: str, gate: str, again: str) -> None:
    text = delta(
        previous("ACTIVE", steps=(SHIP,)), None, result(1, "FAILED_EXCEPTION", token=token)
    )

    it = only(decide(f"<<<B exec_capability=RUNTIME_OK>>>\n{text}"))

    assert (it.trigger, it.gate) == (trigger, gate)
    assert it.plan[0].output == (token if token != "EXCEPTION_ODD" else "A_shipped=YES/NO")
    assert it.next_step
    assert it.next_step.output == again


def test_a_failed_step_is_followed_up_by_its_kind() -> None:
    def after(line: str, **more: Any) -> tuple[str, list[str]]:
        it = only(
            decide(delta(previous("ACTIVE", steps=(line,), **more), None, result(1, "FAILED")))
        )
        return it.trigger, [each.output for each in it.plan[1:]]

    assert after(step("Collect", "logs", "logs")) == ("EXTERNAL_DATA_REQUIRED", ["logs"])
    assert after(step("Fetch source", "x", "x")) == ("MISSING_SOURCE_INPUT", ["x"])
    assert after(step("Resolve dependency", "B", "b")) == ("DEPENDENCY_BLOCK", ["b"])
    assert after(step("Rollback", "it", "back")) == (
        "REDESIGN_TRIGGER",
        ["back", "reworked_step_ready=YES/NO"],
    )
    assert after(step("Measure", "it", "m=YES/NO"))[0] == "REDESIGN_TRIGGER"


@proves("PA-PROBE-7")
def test_a_failed_probe_step_fires_the_kill_switch() -> None:
    before = decide(item("A", ok("A", probe=probe(), **COMPLEX)))

    after = goes_on(before, item("A", None, plan=None, more=result(1, "FAILED")))

    assert only(after).trigger == "FALSIFICATION"
    assert only(after).log[0].status == "FALSIFIED"
    assert "PROBE_A_PRB_01_STATE_CHANGE" in only(after).events


@proves("PA-DEP-1", "PA-DEP-2", "PA-DEP-6", "OPEN-90", "PA-STEP1-2")
def test_a_dependency_is_waited_for_or_waived() -> None:
    waits = decide(item("A", ok("A"), attrs="depends_on=B") + item("B", ok("B")))
    gone = decide(
        item("A", ok("A"), attrs="depends_on=B") + item("B", ok("B", proposed_verdict="DISCARD"))
    )
    waived = decide(item("A", ok("A"), attrs="depends_on=B,OUT waive=B,OUT") + item("B", ok("B")))
    spoken = decide(
        item("A", ok("A"), attrs="depends_on=B", plan=f"{PLAN}\n- waive the dependency B.")
    )
    known = decide(
        item("A", ok("A"), attrs="depends_on=OUT"), ledger=Ledger(states={"OUT": State.CLOSED})
    )
    resolver = ok("A", steps=[step("Resolve dependency", "B"), SHIP])

    assert named(waits, "A").state == "STANDBY"
    assert named(gone, "A").state == "ACTIVE"
    it = named(waived, "A")
    assert (it.state, it.confidence, it.debt) == ("ACTIVE", "LOW", "OPEN(drv)")
    assert tokens(waived) == ["waiver_B=RECORDED", "drv_measured=YES/NO", "A_shipped=YES/NO"]
    assert only(spoken).waived == ("B",)
    assert only(known).state == "ACTIVE"
    assert only(decide(item("A", resolver, attrs="depends_on=B"))).state == "ACTIVE"
    unknown = decide(item("A", ok("A", critical_driver=None), attrs="depends_on=B waive=B"))
    assert "ratings_complete=YES/NO" in tokens(unknown)
    done = goes_on(waived, item("B", {"close_intent": "YES"}, plan=None, more=CHANGE))
    assert named(done, "A").waived == ("OUT",)


@proves("PA-DEP-3", "PA-DEP-4", "PA-DEP-5", "OPEN-90", "PA-STEP1-1")
def test_everyone_in_a_cycle_is_parked_until_an_edge_goes() -> None:
    loop = item("A", ok("A"), attrs="depends_on=B") + item("B", ok("B"), attrs="depends_on=A")
    behind = item("C", ok("C"), attrs="depends_on=A")

    outcome = decide(loop + behind)
    for name in "AB":
        it = named(outcome, name)
        assert (it.state, it.verdict, it.trigger) == ("STANDBY", "DO LATER", "CIRCULAR_DEPENDENCY")
        assert it.gate == "REDESIGN_TRIGGER"
        assert it.plan[0].output == "cycle_broken=YES/NO"
    assert named(outcome, "C").trigger == "DEPENDENCY_BLOCK"
    mended = goes_on(outcome, item("A", None, plan=None, attrs="depends_on=[]"))
    assert named(mended, "A").state == "ACTIVE"
    waived = decide(loop.replace("depends_on=B", "depends_on=B waive=B"))
    assert [each.state for each in waived.items] == ["ACTIVE", "STANDBY"]


@proves("OPEN-89", "PA-RES-1")
def test_a_resource_that_nobody_lists_is_free_unless_guarded() -> None:
    text = "<<<B resource_pool=ENG:1>>>\n" + item("A", ok("A"), attrs="uses=ODD:1")

    free, guarded = decide(text), decide(text, policy=Policy.GUARDED)

    assert only(free).state == "ACTIVE"
    assert only(free).inp.missing == ["uses:ODD"]
    assert only(guarded).state == "STANDBY"
    assert tokens(guarded)[0] == "ODD_available=YES/NO"


@proves("PA-STEP1-1", "PA-STEP1-2", "PA-STEP1-3", "PA-STEP1-4", "PA-STEP1-5")
def test_what_must_come_first_comes_in_a_fixed_order() -> None:
    order = [need.order for need in plan.NEEDS]
    blocked = ok("A", probe=probe(requires=["B"]), **COMPLEX)
    free = ok(
        "A",
        probe=probe(),
        steps=[step("Ship", "it", "shipped"), step("Check", "it", "m=YES/NO", 50)],
        **COMPLEX,
    )
    need = decide(item("A", blocked, attrs="depends_on=B"))
    probing = decide(item("A", free, attrs="depends_on=B"))

    assert order == sorted(order, key=lambda each: each[:2])
    assert (only(need).state, only(need).trigger) == ("STANDBY", "DEPENDENCY_BLOCK")
    assert only(need).log_out == []
    assert tokens(probing) == ["m=YES/NO", "B_terminal=YES/NO", "shipped"]
    asserted = decide(item("A", blocked | {"independent_probe": "YES"}, attrs="depends_on=B"))
    assert only(asserted).state == "PROBING"
    none = decide(item("A", ok("A", **COMPLEX), attrs="depends_on=B"))
    assert only(none).state == "STANDBY"


def test_harm_is_contained_although_a_dependency_blocks() -> None:
    closed = previous("CLOSED", derived="closure_tier: REAL", domain_type="Complex")
    text = item("A", ok("A", **COMPLEX), prev=closed, more=evidence(), attrs="depends_on=B")

    probing = only(decide(text))
    plain = only(decide(text.replace("Complex", "Deterministic")))

    for it in (probing, plain):
        assert (it.state, it.trigger) == ("ACTIVE", "DEPENDENCY_BLOCK")
        assert it.plan[0].output == "mitigation_A=YES/NO"


@proves("PA-BUDGET-2", "PA-BUDGET-3", "PA-BUDGET-4", "PA-BUDGET-1")
def test_the_tax_counts_what_takes_attention() -> None:
    judged = ok("A", confidence="LOW", contested="YES", ratings="HLLM")
    judged["binding"]["Cost"] = {"rating": "LOW"}
    it = only(decide(item("A", judged, attrs="depends_on=B uses=R:1")))

    assert it.debt == "OPEN(drv)"
    assert it.cx == len(it.plan) + 2 + 1 + 1 + 1 + 1
    assert Trigger.REDESIGN_TRIGGER in {each for each, _ in it.candidates}
    late = goes_on(
        decide(item("A", ok("A"))),
        item("A", {"steps": [step("Do", "x", minutes=200)]}, plan=None, more=CHANGE),
    )
    assert only(late).trigger == "REDESIGN_TRIGGER"


@proves("PA-PROBE-1", "PA-PROBE-2", "PA-PROBE-3", "PA-PROBE-4", "PA-PROBE-6")
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


@proves("PA-PROBE-5", "PA-PROBE-7", "PA-PROBE-8", "PA-SCALE-6")
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


@proves("PA-ASK-1", "PA-ASK-2", "PA-ASK-3", "PA-ASK-4")
def test_one_question_at_most_and_only_where_it_is_allowed() -> None:
    closing = ok("A", close_intent="YES")
    real = "<<<B close_policy=REAL_ONLY{}>>>\n"
    silent = decide(real.format("") + item("A", closing))
    asked = decide(real.format(" ask_user=ALLOW") + item("A", closing))
    switched = decide(real.format("") + item("A", closing), ask_user=True)
    hushed = decide(real.format(" ask_user=ALLOW") + item("A", closing, attrs="ask_user=NONE"))
    external: dict[str, Any] = {"external": {"kind": "DATA_REQUIRED"}}

    assert silent.ask == hushed.ask == ""
    assert asked.ask == switched.ask == "A: supply HISTORICAL/REAL/EXPERIMENT evidence for drv"
    again = goes_on(asked, ask_user=True)
    assert again.ask == ""
    more = goes_on(asked, item("A", {"close_intent": "YES"}, plan=None, more=CHANGE), ask_user=True)
    assert more.ask == ""
    assert only(more).plan[0].kind is Kind.ACQUIRE
    fresh = "<<<B ask_user=ALLOW>>>\n"
    assert decide(fresh + item("A", ok("A", **external))).ask == ""
    assert decide(fresh + item("A", ok("A", **external), attrs="reversibility=IRREVERSIBLE")).ask
    assert (
        decide(
            fresh
            + item("A", ok("A", ratings="HLLH", **external), attrs="reversibility=IRREVERSIBLE")
        ).ask
        == ""
    )
    blocked: dict[str, Any] = {"external": {"kind": "BLOCKED", "ask": "the key"}}
    assert (
        decide(fresh + item("A", ok("A", **blocked), attrs="reversibility=IRREVERSIBLE")).ask
        == "A: the key"
    )
    waits = decide(item("A", ok("A", **blocked), attrs="depends_on=B"))
    assert only(waits).trigger == "DEPENDENCY_BLOCK"


@proves("PA-SCALE-1", "PA-SCALE-3", "PA-SCALE-4", "PA-SCALE-5", "OPEN-83")
def test_how_much_is_printed_changes_nothing_else() -> None:
    text = item("A", ok("A"))
    small, full = decide(text), decide(f"<<<B ssot_scale=DEBUG>>>\n{text}")
    told = emit.block(full)

    assert "[DECISION_MODEL]" not in emit.block(small)
    for name in ("DECISION_MODEL", "EVIDENCE_BINDING", "DATA_ACQUISITION", "REVIEW"):
        assert f"[{name}]\n" in told
    assert only(small).plan == only(full).plan
    assert only(decide(item("A", ok("A", contested="YES")))).surface == "DEBUG"
    diy = decide(
        "<<<B ssot_scale=DEBUG>>>\n"
        + item(
            "A",
            ok("A", profile="DIY", friction="LOW", contested="YES", confidence="MED", steps=[]),
            plan=None,
            more="<<<ARTIFACT>>>\nx",
        )
    )
    low = emit.block(
        decide(
            item(
                "A",
                ok(
                    "A",
                    ratings="MMHM",
                    confidence="LOW",
                    proposed_verdict="DO LATER",
                    probe=probe(representativeness="MED"),
                ),
            )
        )
    )
    assert "[PROBE_LOG]" in low
    assert "[DECISION_MODEL]" not in low
    assert "[ARTIFACT_AUDIT]" in emit.block(diy)


@proves("PA-OUTPUT-9", "PA-RATE-2")
def test_everything_that_was_judged_is_printed() -> None:
    judged = ok(
        "A", ratings="MLLM", drivers=[{"name": "d", "strength": "LOW"}, {"strength": "LOW"}],
        impact_graph=["a UP -> b DOWN (HIGH)"], assumptions=["stable"], evidence_available=["logs"],
        uncertainties=["load"], review=["it breaks"], contested_points=["cost"],
        alternative={"text": "wait", "tradeoffs": "slower"},
        data_acquisition=[{"need": "n1", "cost": "HIGH"}, {"need": "n2", "path": "ask", "impact": "HIGH", "cost": "LOW"}],
    )  # fmt: skip
    told = emit.block(decide(f"<<<B ssot_scale=DEBUG>>>\n{item('A', judged, plan=THIN)}"))
    bare = emit.block(decide(item("A")))

    for line in (
        *("drivers: d(LOW)", "impact_graph: a UP -> b DOWN (HIGH)", "1. it breaks"),
        *("contested: cost", "text: wait", "1. n2 | ask | impact=HIGH | cost=LOW"),
        *("2. n1 | - | impact=MED | cost=HIGH", "evidence_available: logs"),
    ):
        assert f"{line}\n" in told
    assert "SIMULATED goal=A" in told
    assert (
        "Benefit: rating=MED; confidence=LOW; evidence_tier=SIMULATED; drivers=MISSING_INFO" in bare
    )
    assert "1. missing ratings | rate all four dimensions" in bare
    assert "status: REQUIRED_NOT_PROVIDED" in bare


def test_an_artifact_is_audited_or_said_not_to_be() -> None:
    wrapped = "<<<I id=A>>>\n<<<ARTIFACT>>>\ncode\n<<<JUDGE>>>\n{}\n<<<END>>>\n"
    full = '{"audit": {"artifact_type": "PROTOCOL", "completeness": "PASS x", "coherence": "PASS", "operationality": "PASS", "defect": "d", "patch": "p", "step": "s", "top_defects": ["a", "b"]}}'
    none, some = decide(wrapped.replace("{}", "{}")), decide(wrapped.replace("{}", full))

    assert "audit_1_completeness: FAIL not_provided" in emit.block(none)
    assert "AUDIT_MISSING" in codes(none)
    assert "equivalence_probe: not_provided" in emit.block(some)
    assert "top_defects: a; b" in emit.block(some)
    delta_text = emit.block(goes_on(some, wrapped.replace("{}", full)))
    assert "audit_exact_defect=d" in delta_text
    assert "artifact_audit_equivalence_probe=not_provided" in delta_text
    assert "audit_exact_defect=not_provided" in emit.block(goes_on(some))


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


def test_debt_is_limited_across_batches_too() -> None:
    unsure = item("A", ok("A", confidence="LOW"))

    outcome = decide(unsure, ledger=Ledger(debt=frozenset({"x", "y"})))

    assert only(outcome).trigger == "DEBT_CEILING"
    assert "Recheck debt slot held by x" in only(outcome).plan[0].action
    held = decide(
        "".join(
            item(n, ok(n, f"d{n}", confidence="LOW", proposed_verdict="DO LATER")) for n in "AB"
        )
    )
    third = goes_on(
        held,
        item("C", ok("C", "dA", confidence="LOW"))
        + item("D", ok("D", "dD", confidence="LOW"))
        + item("E", ok("E", "dD", confidence="LOW")),
    )
    assert named(third, "B").trigger == "DEBT_CEILING"
    assert named(third, "B").plan[0].output == "debt_slot_free=YES/NO"


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


@proves("PA-LAYER-2", "PA-USE-1", "PA-MODEL-1")
def test_items_do_not_discard_each_other() -> None:
    pair = decide(item("A", ok("A")) + item("B", ok("B", proposed_verdict="DISCARD")))

    assert named(pair, "A").state == "ACTIVE"
    page = Path(__file__).parents[3] / "docs" / "explanation" / "docket.md"
    told = page.read_text("utf-8")
    for fact in ("PA_PVP_full_v9.8.0_canonical.txt", "CC BY-SA 4.0", "brainstorming", "trade-offs"):
        assert fact in told


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


def test_more_than_five_steps_lose_the_oldest_that_are_done() -> None:
    many = tuple(step("Do", f"x{n}", f"o{n}", 1) for n in range(1, 6))
    before = previous("ACTIVE", steps=many)
    new = [step("Do", f"y{n}", f"p{n}", 1) for n in range(4)]

    after = decide(delta(before, {"steps": new}, f"{result(1)}\n{result(2)}"))

    assert tokens(after) == ["o2", "p0", "p1", "p2", "p3"]
    assert "STEP_OVERFLOW" in codes(after)


def test_a_batch_can_be_printed_as_input_again() -> None:
    text = (
        "<<<B resource_pool=R:1>>>\n"
        + item("A", ok("A"), attrs="depends_on=B")
        + item("B", ok("B"))
    )
    with_input = decide(text, recovery=True)
    block = emit.block(with_input)
    again = block[
        block.index("<<<B ") : block.index("[ITEM id=A]\n[ITEM_PANEL]", block.rindex("<<<END>>>"))
    ]

    assert [each.state for each in decide(block).items] == ["STANDBY", "ACTIVE"]
    assert [each.before for each in decide(again).items] == ["STANDBY", "ACTIVE"]
    assert decide(again).pool == {"R": 1}
    assert "ResourcePool" not in emit.block(decide(item("A", ok("A")), recovery=True))


def test_letters_of_every_script_survive() -> None:
    odd = "é 漢 🎉 \\u0041 \x07"
    outcome = decide(item("A", ok("A", title=odd, why="a ``` b")))

    block = emit.block(outcome)

    assert block.isascii()
    assert docket.snapshot_of(outcome).items["A"].title == odd
    assert "```" not in block
    assert text.unescaped("\\ud800") == "\ufffd"


def test_an_outcome_that_breaks_a_rule_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "pace", lambda _: "ODD")

    outcome = docket.run(docket.parse(item("A", ok("A"))))

    assert outcome.invalid == "OTHER"
    assert "SELF_CHECK" in codes(outcome)
    assert "[QUEUE]" not in emit.block(outcome)


def test_the_date_of_a_batch_moves_on() -> None:
    first = decide(item("A", ok("A")), now=date(2026, 1, 1))
    custom = decide("<<<B batch_id=mine>>>\n" + item("A", ok("A")))

    assert first.batch_id.startswith("20260101-")
    assert goes_on(first, now=date(2026, 2, 2)).batch_id.startswith("20260202-")
    assert goes_on(first).batch_id == first.batch_id
    assert goes_on(custom, now=date(2026, 2, 2)).batch_id == "mine"


def test_the_schema_lists_every_field_of_a_judgement() -> None:
    made = judge.schema()

    assert set(made["$defs"]["Judge"]["properties"]) == set(judge.Judge.__struct_fields__)
    assert "break" in made["$defs"]["Delta"]["properties"]


def test_each_rule_says_what_it_is_for() -> None:
    numbers = [inspect.getdoc(rule) for rule in (*rules.ALONE, *rules.AMONG)]

    assert [(each or "").split(":")[0] for each in numbers] == [f"R{n}" for n in range(1, 18)]


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
