"""Steps: which are taken, what they are for, and which comes first."""

from typing import Any

import pytest

from accord.core.docket import judgement, steps
from accord.core.docket.rules import step_plan
from accord.core.docket.triggers import Trigger
from accord.core.docket.vocabulary import StepKind
from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    COMPLEX_DOMAIN,
    SHIP_STEP,
    delta_item,
    diagnostic_codes,
    item,
    previous_block,
    probe,
    result,
    run_batch,
    run_next,
    single_item,
    step,
    step_outputs,
    valid_judgement,
)
from tests.spec import proves


@proves("PA-OUTPUT-8")
def test_steps_are_single_checkable_actions() -> None:
    def fault(asked: Any) -> list[str]:
        return steps.accept_proposed(asked)[1]

    assert fault(step("Deploy", "api", "ok", 0)) == ["STEP_GRAMMAR"]
    assert fault(step("Think", "hard")) == ["STEP_META_VERB"]
    assert (
        fault(
            judgement.ProposedStep(
                kind=StepKind.PROBE, text=step("Evaluate", "it"), target_driver="d"
            )
        )
        == []
    )
    assert fault(step("Build", "it then ship")) == ["STEP_CHAIN"]
    assert fault(step("Check with", "Bob")) == ["STEP_DELEGATION"]
    assert (
        fault(judgement.ProposedStep(kind=StepKind.ACQUIRE, text=step("Check with", "Bob"))) == []
    )
    assert fault(judgement.ProposedStep(kind=StepKind.PROBE, text=step("Try", "it", "done"))) == [
        "STEP_PROBE_OUTPUT"
    ]
    assert fault(step("Improve", "speed")) == ["STEP_VAGUE"]
    assert fault(judgement.ProposedStep()) == ["STEP_GRAMMAR"]
    assert steps.parse_step(f"{SHIP_STEP} | odd=1") is None
    assert steps.parse_step("x" * 5000) is None


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("Rollback the api", StepKind.MITIGATE),
        ("Remove edge A to B", StepKind.CYCLE_BREAK),
        ("Split it", StepKind.SPLIT),
        ("Waive dependency B", StepKind.DEP_WAIVE),
        ("Resolve dependency B", StepKind.DEP_RESOLVE),
        ("Wait for resource ENG", StepKind.RESOURCE_WAIT),
        ("Rebuild probe x", StepKind.HARNESS_REDESIGN),
        ("Cut plan down", StepKind.PLAN_REDESIGN),
        ("Fetch source x", StepKind.SOURCE_ACQUIRE),
        ("Query logs", StepKind.ACQUIRE),
        ("Measure it", StepKind.PROBE),
        ("Run the new canary", StepKind.PROBE),
        ("Testify now", StepKind.EXEC),
    ],
)
def test_what_a_step_is_for_is_read_from_how_it_begins(action: str, kind: StepKind) -> None:
    assert steps.kind_of(action) is kind


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
    text = delta_item(
        previous_block("ACTIVE", steps=(SHIP_STEP,)),
        None,
        result(1, "FAILED_EXCEPTION", token=token),
    )

    it = single_item(run_batch(f"<<<B exec_capability=RUNTIME_OK>>>\n{text}"))

    assert (it.trigger, it.dominant_gate) == (trigger, gate)
    assert it.planned_steps[0].output == (token if token != "EXCEPTION_ODD" else "A_shipped=YES/NO")
    assert it.next_step
    assert it.next_step.output == again


def test_a_failed_step_is_followed_up_by_its_kind() -> None:
    def after(line: str, **more: Any) -> tuple[str, list[str]]:
        it = single_item(
            run_batch(
                delta_item(
                    previous_block("ACTIVE", steps=(line,), **more), None, result(1, "FAILED")
                )
            )
        )
        return it.trigger, [each.output for each in it.planned_steps[1:]]

    assert after(step("Collect", "logs", "logs")) == ("EXTERNAL_DATA_REQUIRED", ["logs"])
    assert after(step("Fetch source", "x", "x")) == ("MISSING_SOURCE_INPUT", ["x"])
    assert after(step("Resolve dependency", "B", "b")) == ("DEPENDENCY_BLOCK", ["b"])
    assert after(step("Rollback", "it", "back")) == (
        "REDESIGN_TRIGGER",
        ["back", "reworked_step_ready=YES/NO"],
    )
    assert after(step("Measure", "it", "m=YES/NO"))[0] == "REDESIGN_TRIGGER"


@proves("PA-STEP1-1", "PA-STEP1-2", "PA-STEP1-3", "PA-STEP1-4", "PA-STEP1-5")
def test_what_must_come_first_comes_in_a_fixed_order() -> None:
    order = [need.priority for need in step_plan.REQUIRED_STEPS]
    blocked = valid_judgement("A", probe=probe(requires=["B"]), **COMPLEX_DOMAIN)
    free = valid_judgement(
        "A",
        probe=probe(),
        steps=[step("Ship", "it", "shipped"), step("Check", "it", "m=YES/NO", 50)],
        **COMPLEX_DOMAIN,
    )
    need = run_batch(item("A", blocked, attrs="depends_on=B"))
    probing = run_batch(item("A", free, attrs="depends_on=B"))

    assert order == sorted(order, key=lambda each: each[:2])
    assert (single_item(need).state, single_item(need).trigger) == ("STANDBY", "DEPENDENCY_BLOCK")
    assert single_item(need).full_probe_log == []
    assert step_outputs(probing) == ["m=YES/NO", "B_terminal=YES/NO", "shipped"]
    asserted = run_batch(item("A", blocked | {"independent_probe": "YES"}, attrs="depends_on=B"))
    assert single_item(asserted).state == "PROBING"
    none = run_batch(item("A", valid_judgement("A", **COMPLEX_DOMAIN), attrs="depends_on=B"))
    assert single_item(none).state == "STANDBY"


@proves("PA-BUDGET-2", "PA-BUDGET-3", "PA-BUDGET-4", "PA-BUDGET-1")
def test_the_tax_counts_what_takes_attention() -> None:
    judged = valid_judgement("A", confidence="LOW", contested="YES", ratings="HLLM")
    judged["binding"]["Cost"] = {"rating": "LOW"}
    it = single_item(run_batch(item("A", judged, attrs="depends_on=B uses=R:1")))

    assert it.falsification_debt == "OPEN(drv)"
    assert it.complexity_tax == len(it.planned_steps) + 2 + 1 + 1 + 1 + 1
    assert Trigger.REDESIGN_TRIGGER in {each for each, _ in it.candidates}
    late = run_next(
        run_batch(item("A", valid_judgement("A"))),
        item("A", {"steps": [step("Do", "x", minutes=200)]}, plan=None, more=CHANGE_BLOCK),
    )
    assert single_item(late).trigger == "REDESIGN_TRIGGER"


def test_more_than_five_steps_lose_the_oldest_that_are_done() -> None:
    many = tuple(step("Do", f"x{n}", f"o{n}", 1) for n in range(1, 6))
    before = previous_block("ACTIVE", steps=many)
    new = [step("Do", f"y{n}", f"p{n}", 1) for n in range(4)]

    after = run_batch(delta_item(before, {"steps": new}, f"{result(1)}\n{result(2)}"))

    assert step_outputs(after) == ["o2", "p0", "p1", "p2", "p3"]
    assert "STEP_OVERFLOW" in diagnostic_codes(after)
