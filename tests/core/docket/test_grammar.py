"""Batches as text: attributes, modes, sections, snapshots beside them."""

from datetime import date
from typing import Any

from accord.core import docket
from accord.core.docket import (
    emit,
    judge,
    text,
)
from accord.core.docket.words import (
    State,
)
from tests.helpers.docket import (
    CHANGE,
    codes,
    decide,
    delta,
    goes_on,
    item,
    named,
    ok,
    only,
    previous,
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


def test_a_remark_names_the_line_that_it_is_about() -> None:
    judge = '\n{"why": "x",\n "urgency": "SOON",\n "binding": {"Cost": {"rating": 3}},\n "x": 1}'
    broken = judge.replace('"urgency":', '"urgency"')

    def told(body: str) -> list[tuple[str, int]]:
        made = docket.parse(f"<<<I id=A>>>\n<<<PLAN>>>\n- a\n<<<JUDGE>>>\n{body}\n<<<END>>>\n")
        return [(each.code, each.line) for each in made.diags]

    assert told(judge) == [("JUDGE_UNKNOWN", 9), ("JUDGE_VALUE", 7), ("JUDGE_VALUE", 8)]
    assert told(broken) == [("JUDGE_SYNTAX", 7)]
    assert told("3") == [("JUDGE_SYNTAX", 5)]
    assert told("") == [("JUDGE_SYNTAX", 5)]


def test_a_second_item_of_an_id_is_remarked() -> None:
    made = docket.parse(item("A", ok("A")) + item("A", ok("A")))

    assert [(each.code, each.item, each.line) for each in made.diags] == [("DUPLICATE_ID", "A", 9)]
