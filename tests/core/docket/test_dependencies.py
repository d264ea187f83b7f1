"""What items mean to each other: dependencies, cycles, resources, debt."""

from accord.core.docket.model import Ledger
from accord.core.docket.words import (
    Policy,
    State,
)
from tests.helpers.docket import (
    CHANGE,
    COMPLEX,
    PLAN,
    SHIP,
    decide,
    evidence,
    goes_on,
    item,
    named,
    ok,
    only,
    previous,
    step,
    tokens,
)
from tests.spec import proves


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


def test_harm_is_contained_although_a_dependency_blocks() -> None:
    closed = previous("CLOSED", derived="closure_tier: REAL", domain_type="Complex")
    text = item("A", ok("A", **COMPLEX), prev=closed, more=evidence(), attrs="depends_on=B")

    probing = only(decide(text))
    plain = only(decide(text.replace("Complex", "Deterministic")))

    for it in (probing, plain):
        assert (it.state, it.trigger) == ("ACTIVE", "DEPENDENCY_BLOCK")
        assert it.plan[0].output == "mitigation_A=YES/NO"


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


@proves("PA-MODEL-1")
def test_items_do_not_discard_each_other() -> None:
    pair = decide(item("A", ok("A")) + item("B", ok("B", proposed_verdict="DISCARD")))

    assert named(pair, "A").state == "ACTIVE"
