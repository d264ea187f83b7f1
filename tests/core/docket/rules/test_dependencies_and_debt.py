"""What items mean to each other: dependencies, cycles, resources, debt."""

from accord.core.docket.vocabulary import KernelPolicy
from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    COMPLEX_DOMAIN,
    PLAN,
    SHIP_STEP,
    evidence,
    item,
    item_named,
    previous_block,
    run_batch,
    run_next,
    single_item,
    step,
    step_outputs,
    valid_judgement,
)
from tests.spec import proves


@proves("PA-DEP-1", "PA-DEP-2", "PA-DEP-6", "OPEN-90", "PA-STEP1-2")
def test_a_dependency_is_waited_for_or_waived() -> None:
    waits = run_batch(
        item("A", valid_judgement("A"), attrs="depends_on=B") + item("B", valid_judgement("B"))
    )
    gone = run_batch(
        item("A", valid_judgement("A"), attrs="depends_on=B")
        + item("B", valid_judgement("B", proposed_verdict="DISCARD"))
    )
    waived = run_batch(
        item("A", valid_judgement("A"), attrs="depends_on=B,OUT waive=B,OUT")
        + item("B", valid_judgement("B"))
    )
    spoken = run_batch(
        item(
            "A",
            valid_judgement("A"),
            attrs="depends_on=B",
            plan=f"{PLAN}\n- waive the dependency B.",
        )
    )
    done = run_batch(item("OUT", valid_judgement("OUT", close_intent="YES")))
    known = run_next(done, item("A", valid_judgement("A"), attrs="depends_on=OUT"))
    resolver = valid_judgement("A", steps=[step("Resolve dependency", "B"), SHIP_STEP])

    assert item_named(waits, "A").state == "STANDBY"
    assert item_named(gone, "A").state == "ACTIVE"
    it = item_named(waived, "A")
    assert (it.state, it.confidence, it.falsification_debt) == ("ACTIVE", "LOW", "OPEN(drv)")
    assert step_outputs(waived) == ["waiver_B=RECORDED", "drv_measured=YES/NO", "A_shipped=YES/NO"]
    assert single_item(spoken).waived == ("B",)
    assert item_named(known, "A").state == "ACTIVE"
    assert single_item(run_batch(item("A", resolver, attrs="depends_on=B"))).state == "ACTIVE"
    unknown = run_batch(
        item("A", valid_judgement("A", critical_driver=None), attrs="depends_on=B waive=B")
    )
    assert "ratings_complete=YES/NO" in step_outputs(unknown)
    done = run_next(waived, item("B", {"close_intent": "YES"}, plan=None, more=CHANGE_BLOCK))
    assert item_named(done, "A").waived == ("OUT",)


@proves("PA-DEP-3", "PA-DEP-4", "PA-DEP-5", "OPEN-90", "PA-STEP1-1")
def test_everyone_in_a_cycle_is_parked_until_an_edge_goes() -> None:
    loop = item("A", valid_judgement("A"), attrs="depends_on=B") + item(
        "B", valid_judgement("B"), attrs="depends_on=A"
    )
    behind = item("C", valid_judgement("C"), attrs="depends_on=A")

    outcome = run_batch(loop + behind)
    for name in "AB":
        it = item_named(outcome, name)
        assert (it.state, it.verdict, it.trigger) == ("STANDBY", "DO LATER", "CIRCULAR_DEPENDENCY")
        assert it.dominant_gate == "REDESIGN_TRIGGER"
        assert it.planned_steps[0].output == "cycle_broken=YES/NO"
    assert item_named(outcome, "C").trigger == "DEPENDENCY_BLOCK"
    mended = run_next(outcome, item("A", None, plan=None, attrs="depends_on=[]"))
    assert item_named(mended, "A").state == "ACTIVE"
    waived = run_batch(loop.replace("depends_on=B", "depends_on=B waive=B"))
    assert [each.state for each in waived.items] == ["ACTIVE", "STANDBY"]


@proves("OPEN-89", "PA-RES-1")
def test_a_resource_that_nobody_lists_is_free_unless_guarded() -> None:
    text = "<<<B resource_pool=ENG:1>>>\n" + item("A", valid_judgement("A"), attrs="uses=ODD:1")

    free, guarded = run_batch(text), run_batch(text, policy=KernelPolicy.GUARDED)

    assert single_item(free).state == "ACTIVE"
    assert single_item(free).input.missing_fields == ["uses:ODD"]
    assert single_item(guarded).state == "STANDBY"
    assert step_outputs(guarded)[0] == "ODD_available=YES/NO"


def test_harm_is_contained_although_a_dependency_blocks() -> None:
    closed = previous_block("CLOSED", derived="closure_tier: REAL", domain_type="Complex")
    text = item(
        "A",
        valid_judgement("A", **COMPLEX_DOMAIN),
        prev=closed,
        more=evidence(),
        attrs="depends_on=B",
    )

    probing = single_item(run_batch(text))
    plain = single_item(run_batch(text.replace("Complex", "Deterministic")))

    for it in (probing, plain):
        assert (it.state, it.trigger) == ("ACTIVE", "DEPENDENCY_BLOCK")
        assert it.planned_steps[0].output == "mitigation_A=YES/NO"


def test_debt_is_limited_across_runs_too() -> None:
    held = run_batch(
        "".join(
            item(n, valid_judgement(n, f"d{n}", confidence="LOW", proposed_verdict="DO LATER"))
            for n in "AB"
        )
    )
    third = run_next(
        held,
        item("C", valid_judgement("C", "dA", confidence="LOW"))
        + item("D", valid_judgement("D", "dD", confidence="LOW"))
        + item("E", valid_judgement("E", "dD", confidence="LOW")),
    )
    assert item_named(third, "B").trigger == "DEBT_CEILING"
    assert item_named(third, "B").planned_steps[0].output == "debt_slot_free=YES/NO"
    assert item_named(third, "B").planned_steps[0].action == "Recheck debt slot held by dA"


@proves("PA-MODEL-1")
def test_items_do_not_discard_each_other() -> None:
    pair = run_batch(
        item("A", valid_judgement("A"))
        + item("B", valid_judgement("B", proposed_verdict="DISCARD"))
    )

    assert item_named(pair, "A").state == "ACTIVE"
