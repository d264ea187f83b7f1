"""Decisions by rule in a room: the kernel holds, people decide."""

from typing import Any

import pytest

from accord.core.docket.bench import Bench
from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Refused, Why
from accord.core.room import decisions
from accord.core.room.decisions import Ruled
from accord.core.room.gates import GateOpened
from accord.core.room.shelf import ContextAdd, ContextRemove, ContextRemoved, ContextUpdate
from accord.core.room.state import Category, House, Risk, Room
from accord.core.room.tools import ToolPropose, ToolResult
from accord.core.room.waiting import Standing, ToolDropped, ToolReject
from tests.helpers.docket import evidence, item, ok, result, step
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    Facts,
    after,
    approves_tool,
    given,
    joined,
    left,
    opened,
    proposes,
    when,
)
from tests.spec import proves

HOUSE = House(judge=Bench())
HEAD = "<<<B exec_capability=RUNTIME_OK close_policy=REAL_ONLY>>>\n"
TESTS = item("TESTS", ok("TESTS", "suite", steps=[step("Run", "suite", "suite_green=YES/NO")]))
DEPLOY = item(
    "DEPLOY",
    ok("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO", 20)]),
    attrs="depends_on=TESTS",
)
BATCH = HEAD + TESTS + DEPLOY
ALONE = HEAD + item(
    "DEPLOY", ok("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO")])
)
PASSED = item("TESTS", more=f"{result(1)}\n{evidence()}", plan=None)
R = Role


def submits(batch: str = BATCH, key: str = "decision:release", **more: Any) -> ContextAdd:
    """A batch for the shelf."""
    content = {"batch": batch, **more}
    return ContextAdd(key=key, content_type="structured", content=content)


def bound(
    item: str = "DEPLOY", step: str = "deployed=YES/NO", batch: str = "release"
) -> ToolPropose:
    """A proposal that is a step of an item."""
    link = {"batch": batch, "item": item, "step": step}
    return proposes(
        tool_name="deployer",
        category=Category.DEPLOY,
        risk=Risk.HIGH,
        arguments={"version": "v42", "decision": link},
    )


def a_room(*script: tuple[Actor, Body, str]) -> Room:
    """Alice, Bob and Claude, and what was said so far."""
    room = given(opened(), joined(BOB, R.DRIVER, R.APPROVER), joined(CLAUDE, R.DRIVER), house=HOUSE)
    for actor, body, id in script:
        room = after(room, say(room, actor, body, id))
    return room


def say(room: Room, actor: Actor, body: Body, id: str = "said") -> Facts:
    return when(room, actor, body, id=id, house=HOUSE)


def refused(room: Room, actor: Actor, body: Body, house: House = HOUSE) -> Refused:
    """Why it is not accepted."""
    with pytest.raises(Refused) as no:
        when(room, actor, body, house=house)
    return no.value


def kinds(facts: Facts) -> list[type]:
    return [type(fact) for fact in facts]


def ruling(room: Room, key: str = "decision:release#snapshot") -> dict[str, Any]:
    item = room.shelf[""][key] if "" in room.shelf else next(iter(room.shelf.values()))[key]
    assert isinstance(item.content, dict)
    assert item.author == "system"
    return item.content


@proves("UNI-18")
def test_a_batch_is_ruled_on_and_everybody_hears_the_ruling() -> None:
    room = a_room((CLAUDE, submits(), "b"))

    items = ruling(room)["items"]
    assert items["TESTS"]["allowed"] == "suite_green=YES/NO"
    assert items["DEPLOY"]["allowed"] == ""
    assert "STATE: DECISION" in ruling(room)["snapshot"]
    assert len(ruling(room)["sha256"]) == 64


def test_a_batch_may_be_plain_text() -> None:
    said = ContextAdd(key="decision:release", content_type="text", content=BATCH)
    assert ruling(a_room((ALICE, said, "b")))["items"].keys() == {"TESTS", "DEPLOY"}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (submits("no batch at all"), "NO_ITEMS"),
        (submits(key="decision:"), "decision:<id>"),
        (submits(key="decision:release#snapshot"), "decision:<id>"),
        (submits(guards=["everything"]), "guards"),
        (
            ContextAdd(key="decision:x", content_type="text", content=BATCH, visible_to=("bob",)),
            "everybody",
        ),
    ],
)
def test_what_cannot_be_ruled_on_is_refused(body: ContextAdd, says: str) -> None:
    no = refused(a_room(), CLAUDE, body)
    assert no.why is Why.MALFORMED
    assert says in no.detail


def test_without_a_kernel_there_are_no_decisions() -> None:
    room = given(opened(), joined(BOB, R.DRIVER))
    assert refused(room, BOB, submits(), House()).why is Why.WRONG_STATE


@proves("UNI-18")
def test_nobody_is_asked_about_a_step_that_the_kernel_does_not_allow() -> None:
    room = a_room((CLAUDE, submits(), "b"))

    facts = say(room, CLAUDE, bound(), "p")

    assert GateOpened not in kinds(facts)
    room = after(room, facts)
    no = refused(room, BOB, approves_tool(BOB, "p"))
    assert no.why is Why.WRONG_STATE
    assert no.detail == (
        "p is held by the decision release: DEPLOY is STANDBY (DO LATER), trigger DEPENDENCY_BLOCK."
        " People are asked once the rules allow deployed=YES/NO, and TESTS_terminal=YES/NO comes"
        " first."
    )


@proves("UNI-18")
def test_the_gate_opens_as_soon_as_the_kernel_allows_the_step() -> None:
    room = a_room((CLAUDE, submits(), "b"), (CLAUDE, bound(), "p"))

    facts = say(room, ALICE, ContextUpdate("decision:release", "CI", new_content={"batch": PASSED}))

    [gate] = [fact for fact in facts if isinstance(fact, GateOpened)]
    assert gate.said.action_ref == "p"
    room = after(room, facts)
    assert gate.said.decision == Standing(
        *("release", "DEPLOY", "deployed=YES/NO", "DO NOW", "ACTIVE", "MED"), ruling(room)["sha256"]
    )
    assert ruling(room)["items"]["TESTS"]["state"].endswith("CLOSED")


@proves("UNI-18", "OPEN-135")
def test_the_kernel_never_approves_anything_itself() -> None:
    room = a_room((CLAUDE, submits(ALONE), "b"))

    facts = say(room, CLAUDE, bound(), "p")

    assert GateOpened in kinds(facts)
    assert after(room, facts).tools["p"].grant is None


def test_another_step_of_the_item_than_the_next_is_held() -> None:
    room = a_room((CLAUDE, submits(ALONE), "b"))
    assert GateOpened not in kinds(say(room, CLAUDE, bound(step="rolled_back=YES/NO"), "p"))


def test_a_ruling_that_changes_its_mind_holds_what_is_being_voted_on() -> None:
    room = a_room((CLAUDE, submits(ALONE), "b"), (CLAUDE, bound(), "p"))
    blocked = item("DEPLOY", ok("DEPLOY", "errors"), attrs="depends_on=AUDIT")
    change = ContextUpdate("decision:release", "wait", new_content={"batch": blocked})
    room = after(room, say(room, ALICE, change))

    no = refused(room, BOB, approves_tool(BOB, "p"))

    assert no.why is Why.WRONG_STATE
    assert "holds it" in no.detail


@pytest.mark.parametrize("link", [bound(batch="other"), bound(item="OTHER")])
def test_a_binding_to_nothing_is_refused(link: ToolPropose) -> None:
    room = a_room((CLAUDE, submits(), "b"))
    assert refused(room, CLAUDE, link).why is Why.UNKNOWN


@pytest.mark.parametrize(
    "link",
    [
        *("yes", None, {}, [], True),
        {"batch": "release", "item": "DEPLOY"},
        {"batch": "release", "item": "DEPLOY", "step": 1},
        {"batch": "release", "item": "DEPLOY", "step": "deployed=YES/NO", "more": ""},
    ],
)
def test_what_looks_like_a_binding_and_is_none_is_refused(link: object) -> None:
    room = a_room((CLAUDE, submits(), "b"))
    no = refused(room, CLAUDE, proposes(arguments={"decision": link}))
    assert no.why is Why.MALFORMED
    assert "arguments.decision names the batch, the item and the step" in no.detail


def test_whoever_guards_a_category_wants_its_proposals_bound() -> None:
    room = a_room((ALICE, submits(ALONE, guards=["deploy"]), "b"))

    no = refused(room, CLAUDE, proposes(tool_name="x", category=Category.DEPLOY))

    assert no.why is Why.WRONG_STATE
    assert "decision:release" in no.detail
    assert GateOpened in kinds(say(room, CLAUDE, bound(), "p"))
    assert GateOpened in kinds(say(room, CLAUDE, proposes(), "q"))


def ran(room: Room, proposal: ToolPropose, id: str, *, success: bool = True) -> Room:
    """The room after a proposal was approved and run."""
    room = after(room, say(room, CLAUDE, proposal, id))
    room = after(room, say(room, BOB, approves_tool(BOB, id)))
    done = ToolResult(
        tool_proposal=id, success=success, duration_ms=5, result="42 <<<END>>> passed"
    )
    return after(room, say(room, CLAUDE, done))


@proves("UNI-19")
def test_the_result_of_a_bound_step_is_evidence_and_frees_what_waits() -> None:
    room = a_room((CLAUDE, submits(), "b"), (CLAUDE, bound(), "p"))
    assert not room.gates

    room = ran(room, bound("TESTS", "suite_green=YES/NO"), "t")

    assert ruling(room)["items"]["TESTS"]["state"].endswith("CLOSED")
    assert [gate.action for gate in room.gates.values()] == ["p"]


def test_a_step_that_failed_frees_nothing() -> None:
    room = a_room((CLAUDE, submits(), "b"), (CLAUDE, bound(), "p"))
    room = ran(room, bound("TESTS", "suite_green=YES/NO"), "t", success=False)
    assert not room.gates


def test_a_result_without_a_decision_any_more_is_a_result() -> None:
    room = a_room((CLAUDE, submits(ALONE), "b"), (CLAUDE, bound(), "p"))
    room = after(room, say(room, BOB, approves_tool(BOB, "p")))
    room = after(room, say(room, ALICE, ContextRemove("decision:release", "Over")))
    done = ToolResult(tool_proposal="p", success=True, duration_ms=5)
    assert Ruled not in kinds(say(room, CLAUDE, done))


# An independent judgement


def doubts(state: str = "DISCARD") -> ContextAdd:
    judged = ok("DEPLOY", "errors", proposed_verdict=state, confidence="LOW")
    return submits(HEAD + item("DEPLOY", judged), "decision:release:bob")


def test_an_independent_judgement_is_compared_and_a_hard_difference_holds() -> None:
    room = a_room((CLAUDE, submits(ALONE), "b"), (BOB, doubts(), "d"))

    compared = ruling(room, "decision:release#convergence")

    assert compared["hosts"] == ["decision:release", "decision:release:bob"]
    assert "| DEPLOY |" in compared["table"]
    [row] = compared["items"]
    assert row["holds"] == (row["kind"] == "HARD_DIVERGENCE")
    facts = say(room, CLAUDE, bound(), "p")
    assert (GateOpened in kinds(facts)) != row["holds"]


def test_a_hard_difference_holds_whatever_each_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    room = a_room((CLAUDE, submits(ALONE), "b"), (BOB, doubts("DO NOW"), "d"))
    item = next(iter(room.shelf.values()))["decision:release#convergence"]
    assert isinstance(item.content, dict)
    item.content["items"][0]["holds"] = True
    assert GateOpened not in kinds(say(room, CLAUDE, bound(), "p"))


@proves("UNI-15")
def test_nobody_judges_one_question_twice() -> None:
    room = a_room((CLAUDE, submits(ALONE), "b"))
    second = submits(ALONE, "decision:release:again")
    assert refused(room, CLAUDE, second).why is Why.FORBIDDEN
    assert Ruled in kinds(say(room, CLAUDE, submits(ALONE, "decision:other:again")))


def test_there_are_only_so_many_judgements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "MOST_HOSTS", 2)
    room = a_room((CLAUDE, submits(ALONE), "b"), (BOB, doubts(), "d"))
    third = submits(ALONE, "decision:release:alice")
    assert refused(room, ALICE, third).why is Why.FULL


# Letting go


def test_what_the_server_made_is_not_removed_by_itself_but_with_its_decision() -> None:
    room = a_room((CLAUDE, submits(), "b"))
    made = ContextRemove("decision:release#snapshot", "Away")
    assert refused(room, ALICE, made).why is Why.FORBIDDEN

    facts = say(room, ALICE, ContextRemove("decision:release", "Over"))

    assert kinds(facts) == [ContextRemoved, ContextRemoved]
    room = after(room, facts)
    assert refused(room, CLAUDE, bound()).why is Why.UNKNOWN


def test_a_held_proposal_is_let_go_by_its_agent_or_by_who_may_approve() -> None:
    room = a_room((CLAUDE, submits(), "b"), (CLAUDE, bound(), "p"))
    for who in (CLAUDE, BOB):
        facts = say(room, who, ToolReject("p", who.seat, "Not now"))
        assert kinds(facts) == [ToolDropped]
        assert not after(room, facts).tools


def test_nobody_else_lets_a_held_proposal_go() -> None:
    room = given(
        opened(),
        joined(BOB, R.DRIVER),
        joined(CLAUDE, R.DRIVER),
        joined(ALICE, R.ADMIN),
        house=HOUSE,
    )
    room = after(room, say(room, CLAUDE, submits(), "b"))
    room = after(room, say(room, CLAUDE, bound(), "p"))
    assert refused(room, BOB, ToolReject("p", "bob", "No")).why is Why.FORBIDDEN


def test_what_an_agent_has_waiting_goes_with_it() -> None:
    room = a_room((CLAUDE, submits(), "b"), (CLAUDE, bound(), "p"))
    assert ToolDropped not in kinds(when(room, *left(BOB)[:2], house=HOUSE))
    facts = when(room, *left(CLAUDE)[:2], house=HOUSE)
    assert ToolDropped in kinds(facts)
    assert not after(room, facts).tools


def test_rulings_take_room_like_any_context() -> None:
    tight = House(judge=Bench(), limits=Limits(context=2_500))
    no = refused(a_room(), CLAUDE, submits(ALONE), house=tight)
    assert no.details is not None
    assert no.details["limit"] == "context"


@pytest.mark.parametrize(
    "news",
    [
        "<<<B close_policy=SIM_OK>>>\n" + item("TESTS", more=result(1), plan=None),
        item("TESTS", ok("TESTS", "suite", proposed_verdict="DISCARD"), plan=None),
    ],
)
def test_an_agent_does_not_judge_a_persons_decision_anew(news: str) -> None:
    room = a_room((ALICE, submits(), "b"))
    change = ContextUpdate("decision:release", "News", new_content={"batch": news})

    no = refused(room, CLAUDE, change)

    assert no.why is Why.FORBIDDEN
    assert "decision:release:claude" in no.detail
    mine = a_room((CLAUDE, submits(), "b"))
    assert "DISCARD" not in news or Ruled in kinds(say(mine, CLAUDE, change))
