"""What is printed of a decision, and what is asked."""

# ruff: noqa: E501 - an example is a line

import inspect
from typing import Any

import pytest

from accord.core import docket
from accord.core.dialects import papvp
from accord.core.docket import steps
from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.rules import item_lifecycle, state_rules
from accord.core.docket.vocabulary import StepKind
from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    THIN_PLAN,
    diagnostic_codes,
    item,
    probe,
    run_batch,
    run_next,
    single_item,
    valid_judgement,
)
from tests.spec import proves


@proves("PA-ASK-1", "PA-ASK-2", "PA-ASK-3", "PA-ASK-4")
def test_one_question_at_most_and_only_where_it_is_allowed() -> None:
    closing = valid_judgement("A", close_intent="YES")
    real = "<<<B close_policy=REAL_ONLY{}>>>\n"
    silent = run_batch(real.format("") + item("A", closing))
    asked = run_batch(real.format(" ask_user=ALLOW") + item("A", closing))
    switched = run_batch(real.format("") + item("A", closing), ask_user=True)
    hushed = run_batch(real.format(" ask_user=ALLOW") + item("A", closing, attrs="ask_user=NONE"))
    external: dict[str, Any] = {"external": {"kind": "DATA_REQUIRED"}}

    assert silent.question == hushed.question == ""
    assert (
        asked.question
        == switched.question
        == "A: supply HISTORICAL/REAL/EXPERIMENT evidence for drv"
    )
    again = run_next(asked, ask_user=True)
    assert again.question == ""
    more = run_next(
        asked, item("A", {"close_intent": "YES"}, plan=None, more=CHANGE_BLOCK), ask_user=True
    )
    assert more.question == ""
    assert single_item(more).planned_steps[0].kind is StepKind.ACQUIRE
    fresh = "<<<B ask_user=ALLOW>>>\n"
    assert run_batch(fresh + item("A", valid_judgement("A", **external))).question == ""
    assert run_batch(
        fresh + item("A", valid_judgement("A", **external), attrs="reversibility=IRREVERSIBLE")
    ).question
    assert (
        run_batch(
            fresh
            + item(
                "A",
                valid_judgement("A", ratings="HLLH", **external),
                attrs="reversibility=IRREVERSIBLE",
            )
        ).question
        == ""
    )
    blocked: dict[str, Any] = {"external": {"kind": "BLOCKED", "ask": "the key"}}
    assert (
        run_batch(
            fresh + item("A", valid_judgement("A", **blocked), attrs="reversibility=IRREVERSIBLE")
        ).question
        == "A: the key"
    )
    waits = run_batch(item("A", valid_judgement("A", **blocked), attrs="depends_on=B"))
    assert single_item(waits).trigger == "DEPENDENCY_BLOCK"


@proves("PA-SCALE-1", "PA-SCALE-3", "PA-SCALE-4", "PA-SCALE-5", "OPEN-83")
def test_how_much_is_printed_changes_nothing_else() -> None:
    text = item("A", valid_judgement("A"))
    small, full = run_batch(text), run_batch(f"<<<B ssot_scale=DEBUG>>>\n{text}")
    told = snapshot_writer.render_block(full)

    assert "[DECISION_MODEL]" not in snapshot_writer.render_block(small)
    for name in ("DECISION_MODEL", "EVIDENCE_BINDING", "DATA_ACQUISITION", "REVIEW"):
        assert f"[{name}]\n" in told
    assert single_item(small).planned_steps == single_item(full).planned_steps
    assert (
        single_item(run_batch(item("A", valid_judgement("A", contested="YES")))).surface == "DEBUG"
    )
    diy = run_batch(
        "<<<B ssot_scale=DEBUG>>>\n"
        + item(
            "A",
            valid_judgement(
                "A", profile="DIY", friction="LOW", contested="YES", confidence="MED", steps=[]
            ),
            plan=None,
            more="<<<ARTIFACT>>>\nx",
        )
    )
    low = snapshot_writer.render_block(
        run_batch(
            item(
                "A",
                valid_judgement(
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
    assert "[ARTIFACT_AUDIT]" in snapshot_writer.render_block(diy)


@proves("PA-OUTPUT-9", "PA-RATE-2")
def test_everything_that_was_judged_is_printed() -> None:
    judged = valid_judgement(
        "A", ratings="MLLM", drivers=[{"name": "d", "strength": "LOW"}, {"strength": "LOW"}],
        impact_graph=["a UP -> b DOWN (HIGH)"], assumptions=["stable"], evidence_available=["logs"],
        uncertainties=["load"], review=["it breaks"], contested_points=["cost"],
        alternative={"text": "wait", "tradeoffs": "slower"},
        data_acquisition=[{"need": "n1", "cost": "HIGH"}, {"need": "n2", "path": "ask", "impact": "HIGH", "cost": "LOW"}],
    )  # fmt: skip
    told = snapshot_writer.render_block(
        run_batch(f"<<<B ssot_scale=DEBUG>>>\n{item('A', judged, plan=THIN_PLAN)}")
    )
    bare = snapshot_writer.render_block(run_batch(item("A")))

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
    none, some = run_batch(wrapped.replace("{}", "{}")), run_batch(wrapped.replace("{}", full))

    assert "audit_1_completeness: FAIL not_provided" in snapshot_writer.render_block(none)
    assert "AUDIT_MISSING" in diagnostic_codes(none)
    assert "equivalence_probe: not_provided" in snapshot_writer.render_block(some)
    assert "top_defects: a; b" in snapshot_writer.render_block(some)
    delta_text = snapshot_writer.render_block(run_next(some, wrapped.replace("{}", full)))
    assert "audit_exact_defect=d" in delta_text
    assert "artifact_audit_equivalence_probe=not_provided" in delta_text
    assert "audit_exact_defect=not_provided" in snapshot_writer.render_block(run_next(some))


def test_an_outcome_that_breaks_a_rule_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_lifecycle, "exec_mode_of", lambda _: "ODD")

    outcome = docket.run(docket.parse_batch(item("A", valid_judgement("A"))))

    assert outcome.invalid_reason == "OTHER"
    assert "SELF_CHECK" in diagnostic_codes(outcome)
    assert "[QUEUE]" not in snapshot_writer.render_block(outcome)


def test_an_outcome_with_a_step_too_long_to_parse_is_never_used() -> None:
    """A next run could not read the step, so its item would be without one."""
    driver = "a" * steps.MAX_STEP_CHARS

    outcome = run_batch(item("A", valid_judgement("A", driver, domain_type="Complex")))

    assert outcome.invalid_reason == "OTHER"
    (remark,) = (each for each in outcome.diagnostics if each.code == "SELF_CHECK")
    assert remark.detail.startswith("V10 S1: Rebuild probe harness for aaa")
    assert "[QUEUE]" not in snapshot_writer.render_block(outcome)


def test_a_judge_that_writes_a_question_asks_none() -> None:
    first = run_batch(item("A", valid_judgement("A")))

    second = run_next(
        first, item("A", {"delta": {"break": "AskUser: who?"}}, plan=None, more=CHANGE_BLOCK)
    )

    assert second.is_valid
    assert "[BREAK]\nAskUser: who?\n" in snapshot_writer.render_block(second)
    assert second.question == ""
    text = snapshot_writer.render_fenced(second)
    assert list(papvp.check_snapshot(text).checked.render()) == ["RESULT: VALID"]


def test_an_artifact_without_an_audit_is_remarked_once() -> None:
    outcome = run_batch("<<<I id=A>>>\n<<<ARTIFACT>>>\ncode\n<<<END>>>\n")

    papvp.render_outcome(outcome)

    assert [each.code for each in outcome.diagnostics].count("AUDIT_MISSING") == 1


def test_each_rule_says_what_it_is_for() -> None:
    numbers = [
        inspect.getdoc(rule)
        for rule in (*state_rules.SINGLE_ITEM_RULES, *state_rules.DEPENDENCY_ORDER_RULES)
    ]

    assert [(each or "").split(":")[0] for each in numbers] == [f"R{n}" for n in range(1, 18)]
