"""A check finds each kind of damage: which codes, of whom, in which words, and what follows."""

# ruff: noqa: E501 - a kind of damage is a line

import pytest

from accord.core.dialects import papvp
from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.validation.snapshot_check import INVALID_REASONS
from accord.core.docket.validation.snapshot_form import FLAW_CODES, Flaw
from tests.core.docket.test_consumers import GOLDEN
from tests.helpers.docket.batch_text import item, run_batch, run_next, valid_judgement
from tests.spec import proves

PURITY, OTHER = "INVALID(CODE_BLOCK_PURITY)", "INVALID(OTHER)"
COVERAGE, SURFACE = "INVALID(BATCH_COVERAGE)", "INVALID(PREV_SURFACE)"
MEND = "REPAIRABLE"
SHIP = "Ship UP -> UP_shipped=YES/NO | timebox<="
NOW = "DRAFT->ACTIVE | DO NOW"

# What is damaged, how, everything that is found, and the result (rulebook 5.4).
DAMAGE: list[tuple[str, str, list[str], str]] = [
    ("STATE: DECISION.TEST.FINAL", "STATE: DECISION.OTHER", ["V01 - STATE: DECISION.OTHER"], OTHER),
    ("[PANEL]\n", "[NOTES]\n[PANEL]\n", ["V04 - [NOTES]"], PURITY),
    ("ClosePolicy: SIM_OK", "I think so", ["V05 - I think so"], PURITY),
    ("[QUEUE]\n", "[QUEUE]\nlater\n", ["V05 - later"], PURITY),
    ("\nR | DRAFT->STANDBY", "\nR | DRAFT STANDBY", ["V07 - missing={}; extra={R}", "V05 - R | DRAFT STANDBY | DO LATER | HIGH | LOW | ds:OK | term:N | ct:- | pp:OPEN | ex"], COVERAGE),
    ("[DERIVED]\n", "[DERIVED]\nprose here\n", ["V05 UP [DERIVED] prose here"], PURITY),
    ("[ITEM id=R]", "[ITEM id=Q]", ["V07 - missing={R}; extra={Q}"], COVERAGE),
    ("\nR | DRAFT->STANDBY", "\nQ | DRAFT->STANDBY", ["V07 - missing={Q}; extra={R}"], COVERAGE),
    ("[NEXT]\nS1: Ship UP", "[NEXT]\nS1: Ship DOWN", [f"V09 UP S1: {SHIP.replace('Ship UP', 'Ship DOWN')}30m"], OTHER),
    ("timebox<=30m", "timebox<=soon", [f"V09 UP S1: {SHIP}30m", "V14 UP tb=30/120 should be 0/120", "V14 UP cx=2/7 should be 1/7", f"V10 UP S1: {SHIP}soon"], OTHER),
    ("urgency: LOW", "urgency: SOME", ["V11 R urgency: SOME"], MEND),
    ("| DO LATER | HIGH | LOW |", "| MAYBE | HIGH | LOW |", ["V11 R [QUEUE] MAYBE"], MEND),
    ("ds:SLOW", "ds:OK", ["V12 P ds:OK but SLOW"], MEND),
    ("term:N", "term:Y", ["V12 UP term:Y but N", "V12 UP term:Y with ACTIVE"], MEND),
    ("ct:-", "ct:REAL", ["V12 UP ct:REAL but -", "V12 UP ct:REAL with ACTIVE"], MEND),
    ("exp:30", "exp:365", ["V12 UP exp:365 but 30"], MEND),
    ("gate:NONE | S1: Ship", "gate:FRAGILITY | S1: Ship", ["V12 UP gate:FRAGILITY with trigger NONE"], MEND),
    (NOW, "DRAFT->ACTIVE | DO LATER", ["V13 UP ACTIVE with DO LATER"], MEND),
    (NOW, "DRAFT->CLOSED | DO NOW", ["V09 UP CLOSED has no next step", "V12 UP term:N with CLOSED", "V12 UP ct:- with CLOSED", "V12 UP CLOSED but ACTIVE"], OTHER),
    ("tb=30/120 cx=2/7", "tb=31/120 cx=2/7", ["V14 UP tb=31/120 should be 30/120"], MEND),
    ("tb=30/120 cx=2/7", "tb=30/120 cx=1/7", ["V14 UP cx=1/7 should be 2/7"], MEND),
    ("title: UP", "title: üp", ["V15 - title: üp"], MEND),
    ("AskUser: NONE", "AskUser: A: why?", ["V16 - A: why?"], MEND),
    ("AskUser: NONE", "AskUser: NONE\nAskUser: NONE", ["V16 - more than one question"], MEND),
    ("reopen_total: 0", "reopen_total: 2", ["V17 UP reopened 2 times"], MEND),
    ("critical_driver_confidence: LOW", "critical_driver_confidence: HIGH", ["V17 P confidence HIGH on this evidence; at most MED"], MEND),
    ("ResourcePool: ENG:1", "ResourcePool: ENG:0", ["V17 - 1 of ENG in use, there are 0"], MEND),
    ("[USER_PANEL]", "[QUEUE]\n[USER_PANEL]", ["V03 - QUEUE, USER_PANEL, PANEL, QUEUE"], OTHER),
    ("[DERIVED]\n", "[NEXT]\n[DERIVED]\n", ["V03 UP ITEM_PANEL, NEXT, DERIVED, STEPS, NEXT"], OTHER),
    ("[ITEM_PANEL]\n", "[ODD]\nx\n[ITEM_PANEL]\n", ["V04 UP [ODD]"], PURITY),
    ("[NEXT]\n", "[REVIEW]\n(none)\nodd\n[NEXT]\n", ["V05 UP [REVIEW] odd"], PURITY),
    ("[STEPS]\n", "[STEPS]\nI would ship it\n", ["V05 UP [STEPS] I would ship it"], PURITY),
    ("[NEXT]\n", "I would ship it\n[NEXT]\n", ["V05 UP [STEPS] I would ship it"], PURITY),
    ("[NEXT]\n", "[NEXT]\nShip it soon -> fine | really\n", ["V05 UP [NEXT] Ship it soon -> fine | really"], PURITY),
    ("[ITEM id=A]\n", "as agreed\n[ITEM id=A]\n", ["V05 UP [NEXT] as agreed"], PURITY),
    ("[NEXT]\nS1: Ship UP", "[NEXT]\n(none)\nS1: Ship UP", ["V09 UP (none)"], OTHER),
    ("[NEXT]\nS1: Ship UP ->", "[NEXT]\nS3 and then", ["V09 UP no [NEXT]", f"V05 UP [NEXT] S3 and then{SHIP.removeprefix('Ship UP ->')}30m"], PURITY),
    ("[STEPS]\n", "[STEPS]\nShip DOWN -> ok | timebox<=5m | fail_if=x\n", ["V14 UP tb=30/120 should be 35/120", "V14 UP cx=2/7 should be 3/7", "V10 UP Ship DOWN -> ok | timebox<=5m", f"V10 UP S1: {SHIP}30m"], MEND),
    ("[STEPS]\n", "[STEPS]\n" + "S9: x\n" * 6, ["V10 UP 7 steps", *["V10 UP S9: x"] * 6, f"V10 UP S1: {SHIP}30m"], MEND),
]  # fmt: skip


def found(text: str, *expected: str) -> tuple[list[str], str]:
    review = papvp.check_snapshot(text, expected).checked
    flaws = [f"{each.code} {each.item} {each.detail}" for each in sorted(review.flaws, key=place)]
    told = list(review.render())
    assert [line.partition(";")[0] for line in told[:-1]] == [
        flaw.partition(";")[0] for flaw in flaws
    ]
    assert all(line.endswith(FLAW_CODES[line[:3]][1]) for line in told[:-1])
    return [flaw.partition(" | fail_if")[0] for flaw in flaws], told[-1].removeprefix("RESULT: ")


def place(flaw: Flaw) -> tuple[int, str]:
    return flaw.line, flaw.code


@proves("OPEN-78")
@pytest.mark.parametrize(("old", "new", "flaws", "result"), DAMAGE)
def test_a_check_finds_what_is_wrong_and_nothing_else(
    old: str, new: str, flaws: list[str], result: str
) -> None:
    text = snapshot_writer.render_fenced(run_batch(GOLDEN))
    assert found(text) == ([], "VALID")
    assert old in text

    assert found(text.replace(old, new, 1)) == (flaws, result)


@proves("OPEN-78")
@pytest.mark.parametrize(
    ("block", "body"),
    [
        ("ITEM_PANEL", "title: A"),
        ("EVIDENCE_BINDING", "Benefit: rating=HIGH"),
        ("PROBE_LOG", "(empty)"),
        ("PROBE", "harness: INVALID"),
        ("REVIEW", "1. it may fail"),
        ("DECISION_MODEL", "drivers: a"),
    ],
)
def test_an_item_with_a_past_shows_no_more_than_its_delta(block: str, body: str) -> None:
    """V08, in the place where the block would stand without a past."""
    first = run_batch(item("A", valid_judgement("A")))
    text = snapshot_writer.render_fenced(run_next(first))
    assert found(text) == ([], "VALID")
    before = "[DERIVED]\n" if block == "ITEM_PANEL" else "[NEXT]\n"

    damaged = text.replace(before, f"[{block}]\n{body}\n{before}", 1)

    assert found(damaged) == ([f"V08 A [{block}]"], SURFACE)


def test_what_was_expected_and_is_not_there_is_named() -> None:
    text = snapshot_writer.render_fenced(run_batch(GOLDEN))

    assert found(text, "UP", "A", "R", "P") == ([], "VALID")
    assert found(text, "UP", "A", "R", "Z") == (
        ["V06 - missing={Z}; extra={P}", "V07 - missing={Z}; extra={P}"],
        COVERAGE,
    )
    assert found(f"{text}\n```\nmore\n```\n") == (["V02 - 2 code blocks"], PURITY)
    assert found("no snapshot at all") == (
        ["V01 - there is no line STATE: DECISION.TEST.FINAL"],
        OTHER,
    )


def test_every_code_has_its_class() -> None:
    """Rulebook 5.4, the last column; 5.1 says which reason is the strongest."""
    classes = {code: reason for code, (reason, _) in FLAW_CODES.items()}

    assert classes == {
        **dict.fromkeys(("V01", "V03", "V09"), "OTHER"),
        **dict.fromkeys(("V02", "V04", "V05"), "CODE_BLOCK_PURITY"),
        **dict.fromkeys(("V06", "V07"), "BATCH_COVERAGE"),
        "V08": "PREV_SURFACE",
        **dict.fromkeys((f"V{n}" for n in range(10, 18)), "REPAIRABLE"),
    }
    assert INVALID_REASONS == ("BATCH_COVERAGE", "CODE_BLOCK_PURITY", "PREV_SURFACE", "OTHER")
