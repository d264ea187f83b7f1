"""Batches as text: attributes, modes, sections, snapshots beside them."""

from datetime import date
from typing import Any

from accord.core import docket
from accord.core.docket import judgement, text_values
from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.vocabulary import ItemState
from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    delta_item,
    diagnostic_codes,
    item,
    item_named,
    parsed_snapshot,
    previous_block,
    run_batch,
    run_next,
    single_item,
    valid_judgement,
)
from tests.spec import proves


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
    outcome = run_batch(head + item("A", valid_judgement("A"), attrs=attrs) + "<<<PLAN>>>\n" + head)
    it = single_item(outcome)

    assert it.title == 'a "b" c'
    assert it.reversibility == "IRREVERSIBLE"
    assert it.profile == "DIY"
    assert it.depends_on == ("B",)
    assert it.effective_expire_days == "9"
    assert (outcome.close_policy, outcome.exec_capability, outcome.ssot_scale) == (
        "REAL_ONLY",
        "NO_RUNTIME",
        "MIN",
    )
    assert outcome.resource_pool == {"ENG": 1}
    assert {
        "ATTR_VALUE",
        "ATTR_UNKNOWN",
        "ATTR_DERIVED",
        "ATTR_REPEATED",
        "B_DUPLICATE",
    } <= diagnostic_codes(outcome)
    assert "SECTION_OUTSIDE" in diagnostic_codes(outcome)
    plain = run_batch(
        "<<<B resource_pool=>>>\n" + item("A", valid_judgement("A"), attrs="depends_on=")
    )
    assert (plain.exec_capability, plain.close_policy, plain.resource_pool) == (
        "NO_RUNTIME",
        "SIM_OK",
        None,
    )
    assert run_batch("<<<B batch_id=b-1>>>\n" + item("A", valid_judgement("A"))).batch_id == "b-1"
    assert text_values.parse_ids("[A, B ?]") == (("A", "B"), ["?"])


@proves("PA-INPUT-2", "PA-INPUT-3", "PA-INPUT-4", "PA-INPUT-6", "OPEN-86")
def test_an_item_has_exactly_one_mode_and_is_never_lost() -> None:
    def made(body: str) -> tuple[Any, ...]:
        it = single_item(run_batch(f"<<<I id=A>>>\n{body}\n<<<END>>>\n"))
        return (
            it.mode,
            it.input.parsed_ok,
            it.input.missing_fields,
            it.trigger,
            it.planned_steps[0].output,
        )

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
    unended = run_batch(
        "<<<I id=A>>>\n<<<PLAN>>>\n\\<<<END>>>\n<<<I id=B>>>\n<<<PLAN>>>\n- x\n<<<PLAN>>>\n"
    )
    assert [each.input.missing_fields for each in unended.items] == [["END"], ["END"]]
    assert unended.items[0].input.plan == "<<<END>>>"
    assert {"END_MISSING", "SECTION_REPEATED"} <= diagnostic_codes(unended)
    nameless = run_batch("<<<I>>>\n<<<PLAN>>>\n<<<END>>>\n" + item("A", valid_judgement("A")))
    assert nameless.inventory[-1][0] == "?"


@proves("PA-INPUT-6", "PA-INPUT-8")
def test_what_is_added_to_an_item_must_hold_something() -> None:
    more = (
        "<<<NEW_EVIDENCE evidence_tier=REAL>>>\n<<<NEW_EVIDENCE evidence_tier=DERIVED>>>\nx\n"
        "<<<CHANGE>>>\nno bullet\n<<<RESULT step=S1>>>\n<<<RESULT step=S7 status=FAILED>>>"
    )
    outcome = run_batch(item("A", valid_judgement("A"), more=more))

    assert {
        "EVIDENCE_REJECTED",
        "CHANGE_REJECTED",
        "RESULT_STATUS",
        "RESULT_NO_STEP",
    } <= diagnostic_codes(outcome)
    told = run_batch(
        delta_item(previous_block("CLOSED", derived="closure_tier: SIMULATED"), None, CHANGE_BLOCK)
    )
    assert single_item(told).state is not ItemState.CLOSED


def test_previous_state_is_that_of_the_same_item() -> None:
    other = previous_block("ACTIVE", "B")
    extra = f"words\n{previous_block('ACTIVE')}\n{other}"
    invalid = f"{previous_block('ACTIVE')}\nOutputValidity: INVALID"

    assert "PREV_MISMATCH" in diagnostic_codes(run_batch(delta_item(other)))
    assert "PREV_SCOPE" in diagnostic_codes(run_batch(delta_item(extra)))
    assert "PREV_INVALID" in diagnostic_codes(run_batch(delta_item(invalid)))
    whole = snapshot_writer.render_block(run_batch(item("A", valid_judgement("A"))))
    assert single_item(run_batch(delta_item(whole))).previous_state == "ACTIVE"


@proves("OPEN-87")
def test_only_the_first_snapshot_counts_and_its_other_items_are_carried() -> None:
    first = run_batch(item("A", valid_judgement("A")) + item("B", valid_judgement("B")))
    second = run_batch(item("C", valid_judgement("C")))
    pasted = (
        snapshot_writer.render_fenced(first)
        + snapshot_writer.render_fenced(second)
        + item("B", None, plan=None)
    )

    outcome = run_batch(pasted)

    assert [each.id for each in outcome.items] == ["B", "A"]
    assert "SNAPSHOT_EXTRA" in diagnostic_codes(outcome)
    known = run_next(first, item("B", valid_judgement("B"), attrs="depends_on=A"))
    assert item_named(known, "B").input.missing_fields == []


def test_a_batch_can_be_printed_as_input_again() -> None:
    text = (
        "<<<B resource_pool=R:1>>>\n"
        + item("A", valid_judgement("A"), attrs="depends_on=B")
        + item("B", valid_judgement("B"))
    )
    with_input = run_batch(text, recovery=True)
    block = snapshot_writer.render_block(with_input)
    again = block[
        block.index("<<<B ") : block.index("[ITEM id=A]\n[ITEM_PANEL]", block.rindex("<<<END>>>"))
    ]

    assert [each.state for each in run_batch(block).items] == ["STANDBY", "ACTIVE"]
    assert [each.previous_state for each in run_batch(again).items] == ["STANDBY", "ACTIVE"]
    assert run_batch(again).resource_pool == {"R": 1}
    assert "ResourcePool" not in snapshot_writer.render_block(
        run_batch(item("A", valid_judgement("A")), recovery=True)
    )


def test_letters_of_every_script_survive() -> None:
    odd = "é 漢 🎉 \\u0041 \x07"
    outcome = run_batch(item("A", valid_judgement("A", title=odd, why="a ``` b")))

    block = snapshot_writer.render_block(outcome)

    assert block.isascii()
    assert parsed_snapshot(outcome).items["A"].title == odd
    assert "```" not in block
    assert text_values.unescape("\\ud800") == "\ufffd"


def test_the_date_of_a_batch_moves_on() -> None:
    first = run_batch(item("A", valid_judgement("A")), now=date(2026, 1, 1))
    custom = run_batch("<<<B batch_id=mine>>>\n" + item("A", valid_judgement("A")))

    assert first.batch_id.startswith("20260101-")
    assert run_next(first, now=date(2026, 2, 2)).batch_id.startswith("20260202-")
    assert run_next(first).batch_id == first.batch_id
    assert run_next(custom, now=date(2026, 2, 2)).batch_id == "mine"


def test_the_schema_lists_every_field_of_a_judgement() -> None:
    made = judgement.judgement_schema()

    assert set(made["$defs"]["Judgement"]["properties"]) == set(
        judgement.Judgement.__struct_fields__
    )
    assert "break" in made["$defs"]["Delta"]["properties"]


def test_a_remark_names_the_line_that_it_is_about() -> None:
    judge = '\n{"why": "x",\n "urgency": "SOON",\n "binding": {"Cost": {"rating": 3}},\n "x": 1}'
    broken = judge.replace('"urgency":', '"urgency"')

    def told(body: str) -> list[tuple[str, int]]:
        made = docket.parse_batch(
            f"<<<I id=A>>>\n<<<PLAN>>>\n- a\n<<<JUDGE>>>\n{body}\n<<<END>>>\n"
        )
        return [(each.code, each.line) for each in made.diagnostics]

    assert told(judge) == [("JUDGE_UNKNOWN", 9), ("JUDGE_VALUE", 7), ("JUDGE_VALUE", 8)]
    assert told(broken) == [("JUDGE_SYNTAX", 7)]
    assert told("3") == [("JUDGE_SYNTAX", 5)]
    assert told("") == [("JUDGE_SYNTAX", 5)]


def test_a_second_item_of_an_id_is_remarked() -> None:
    made = docket.parse_batch(item("A", valid_judgement("A")) + item("A", valid_judgement("A")))

    assert [(each.code, each.item, each.line) for each in made.diagnostics] == [
        ("DUPLICATE_ID", "A", 9)
    ]
