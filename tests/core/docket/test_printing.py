"""What is printed of a decision, and what is asked."""

# ruff: noqa: E501 - an example is a line

import inspect
from typing import Any

import pytest

from accord.core import docket
from accord.core.docket import (
    emit,
    finish,
    rules,
)
from accord.core.docket.words import (
    Kind,
)
from tests.helpers.docket import (
    CHANGE,
    THIN,
    codes,
    decide,
    goes_on,
    item,
    ok,
    only,
    probe,
)
from tests.spec import proves


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


def test_an_outcome_that_breaks_a_rule_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "pace", lambda _: "ODD")

    outcome = docket.run(docket.parse(item("A", ok("A"))))

    assert outcome.invalid == "OTHER"
    assert "SELF_CHECK" in codes(outcome)
    assert "[QUEUE]" not in emit.block(outcome)


def test_each_rule_says_what_it_is_for() -> None:
    numbers = [inspect.getdoc(rule) for rule in (*rules.ALONE, *rules.AMONG)]

    assert [(each or "").split(":")[0] for each in numbers] == [f"R{n}" for n in range(1, 18)]
