"""Decisions by rule in a room: the kernel holds, people decide."""

from typing import Any

import pytest

from accord.core.docket.session_kernel import SessionKernel
from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import Limits
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.grants import ToolReject
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from accord.core.room.decisions import rulings
from accord.core.room.decisions.decision_binding import DecisionStanding, ToolDropped
from accord.core.room.decisions.rulings import DecisionRuled
from accord.core.room.room_settings import Category, ServerPolicy
from accord.core.room.shared_context.context_items import (
    ContextAdd,
    ContextRemove,
    ContextRemoved,
    ContextUpdate,
)
from accord.core.room.state import Risk, Room
from tests.helpers.docket.batch_text import evidence, item, result, step, valid_judgement
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CommandOutcome,
    after,
    create_step,
    given,
    join_step,
    leave_step,
    tool_approve,
    tool_propose,
    when,
)
from tests.spec import proves

HOUSE = ServerPolicy(decision_kernel=SessionKernel())
HEAD = "<<<B exec_capability=RUNTIME_OK close_policy=REAL_ONLY>>>\n"
TESTS = item(
    "TESTS", valid_judgement("TESTS", "suite", steps=[step("Run", "suite", "suite_green=YES/NO")])
)
DEPLOY = item(
    "DEPLOY",
    valid_judgement("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO", 20)]),
    attrs="depends_on=TESTS",
)
BATCH = HEAD + TESTS + DEPLOY
ALONE = HEAD + item(
    "DEPLOY", valid_judgement("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO")])
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
    return tool_propose(
        tool_name="deployer",
        category=Category.DEPLOY,
        risk=Risk.HIGH,
        arguments={"version": "v42", "decision": link},
    )


def a_room(*script: tuple[Actor, Body, str]) -> Room:
    """Alice, Bob and Claude, and what was said so far."""
    room = given(
        create_step(),
        join_step(BOB, R.DRIVER, R.APPROVER),
        join_step(CLAUDE, R.DRIVER),
        policy=HOUSE,
    )
    for actor, body, id in script:
        room = after(room, say(room, actor, body, id))
    return room


def say(room: Room, actor: Actor, body: Body, id: str = "said") -> CommandOutcome:
    return when(room, actor, body, id=id, policy=HOUSE)


def refused(room: Room, actor: Actor, body: Body, house: ServerPolicy = HOUSE) -> Refused:
    """Why it is not accepted."""
    with pytest.raises(Refused) as no:
        when(room, actor, body, policy=house)
    return no.value


def kinds(facts: CommandOutcome) -> list[type]:
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
            "visible to all",
        ),
    ],
)
def test_what_cannot_be_ruled_on_is_refused(body: ContextAdd, says: str) -> None:
    no = refused(a_room(), CLAUDE, body)
    assert no.reason is Reason.MALFORMED
    assert says in no.detail


def test_without_a_kernel_there_are_no_decisions() -> None:
    room = given(create_step(), join_step(BOB, R.DRIVER))
    assert refused(room, BOB, submits(), ServerPolicy()).reason is Reason.WRONG_STATE


@proves("UNI-18")
def test_nobody_is_asked_about_a_step_that_the_kernel_does_not_allow() -> None:
    room = a_room((CLAUDE, submits(), "b"))

    facts = say(room, CLAUDE, bound(), "p")

    assert GateOpened not in kinds(facts)
    room = after(room, facts)
    no = refused(room, BOB, tool_approve(BOB, "p"))
    assert no.reason is Reason.WRONG_STATE
    assert no.detail == (
        "p is held by the decision release: DEPLOY is STANDBY (DO LATER), trigger DEPENDENCY_BLOCK."
        " Its gate opens once the rules allow deployed=YES/NO; TESTS_terminal=YES/NO comes first."
    )


@proves("UNI-18")
def test_the_gate_opens_as_soon_as_the_kernel_allows_the_step() -> None:
    room = a_room((CLAUDE, submits(), "b"), (CLAUDE, bound(), "p"))

    facts = say(room, ALICE, ContextUpdate("decision:release", "CI", new_content={"batch": PASSED}))

    [gate] = [fact for fact in facts if isinstance(fact, GateOpened)]
    assert gate.said.action_ref == "p"
    room = after(room, facts)
    assert gate.said.decision == DecisionStanding(
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
    blocked = item("DEPLOY", valid_judgement("DEPLOY", "errors"), attrs="depends_on=AUDIT")
    change = ContextUpdate("decision:release", "wait", new_content={"batch": blocked})
    room = after(room, say(room, ALICE, change))

    no = refused(room, BOB, tool_approve(BOB, "p"))

    assert no.reason is Reason.WRONG_STATE
    assert "holds it" in no.detail


@pytest.mark.parametrize("link", [bound(batch="other"), bound(item="OTHER")])
def test_a_binding_to_nothing_is_refused(link: ToolPropose) -> None:
    room = a_room((CLAUDE, submits(), "b"))
    assert refused(room, CLAUDE, link).reason is Reason.NOT_FOUND


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
    no = refused(room, CLAUDE, tool_propose(arguments={"decision": link}))
    assert no.reason is Reason.MALFORMED
    assert "arguments.decision must name batch, item and step" in no.detail


def test_whoever_guards_a_category_wants_its_proposals_bound() -> None:
    room = a_room((ALICE, submits(ALONE, guards=["deploy"]), "b"))

    no = refused(room, CLAUDE, tool_propose(tool_name="x", category=Category.DEPLOY))

    assert no.reason is Reason.WRONG_STATE
    assert "decision:release" in no.detail
    assert GateOpened in kinds(say(room, CLAUDE, bound(), "p"))
    assert GateOpened in kinds(say(room, CLAUDE, tool_propose(), "q"))


def ran(room: Room, proposal: ToolPropose, id: str, *, success: bool = True) -> Room:
    """The room after a proposal was approved and run."""
    room = after(room, say(room, CLAUDE, proposal, id))
    room = after(room, say(room, BOB, tool_approve(BOB, id)))
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
    room = after(room, say(room, BOB, tool_approve(BOB, "p")))
    room = after(room, say(room, ALICE, ContextRemove("decision:release", "Over")))
    done = ToolResult(tool_proposal="p", success=True, duration_ms=5)
    assert DecisionRuled not in kinds(say(room, CLAUDE, done))


# An independent judgement


def doubts(state: str = "DISCARD") -> ContextAdd:
    judged = valid_judgement("DEPLOY", "errors", proposed_verdict=state, confidence="LOW")
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
    assert refused(room, CLAUDE, second).reason is Reason.FORBIDDEN
    assert DecisionRuled in kinds(say(room, CLAUDE, submits(ALONE, "decision:other:again")))


def test_there_are_only_so_many_judgements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rulings, "MAX_JUDGEMENTS", 2)
    room = a_room((CLAUDE, submits(ALONE), "b"), (BOB, doubts(), "d"))
    third = submits(ALONE, "decision:release:alice")
    assert refused(room, ALICE, third).reason is Reason.FULL


# Letting go


def test_what_the_server_made_is_not_removed_by_itself_but_with_its_decision() -> None:
    room = a_room((CLAUDE, submits(), "b"))
    made = ContextRemove("decision:release#snapshot", "Away")
    assert refused(room, ALICE, made).reason is Reason.FORBIDDEN

    facts = say(room, ALICE, ContextRemove("decision:release", "Over"))

    assert kinds(facts) == [ContextRemoved, ContextRemoved]
    room = after(room, facts)
    assert refused(room, CLAUDE, bound()).reason is Reason.NOT_FOUND


def test_a_held_proposal_is_let_go_by_its_agent_or_by_who_may_approve() -> None:
    room = a_room((CLAUDE, submits(), "b"), (CLAUDE, bound(), "p"))
    for who in (CLAUDE, BOB):
        facts = say(room, who, ToolReject("p", who.principal, "Not now"))
        assert kinds(facts) == [ToolDropped]
        assert not after(room, facts).tools


def test_a_held_proposal_is_dropped_when_another_option_is_chosen() -> None:
    option = tool_propose(metadata={"option_of": "held"})
    room = a_room((CLAUDE, submits(), "b"), (CLAUDE, bound(), "held"), (CLAUDE, option, "other"))

    facts = say(room, BOB, tool_approve(BOB, "other"))
    room = after(room, facts)

    assert [f.said.tool_proposal for f in facts if isinstance(f, ToolDropped)] == ["held"]
    assert {*room.tools} == {"other"}


def test_nobody_else_lets_a_held_proposal_go() -> None:
    room = given(
        create_step(),
        join_step(BOB, R.DRIVER),
        join_step(CLAUDE, R.DRIVER),
        join_step(ALICE, R.ADMIN),
        policy=HOUSE,
    )
    room = after(room, say(room, CLAUDE, submits(), "b"))
    room = after(room, say(room, CLAUDE, bound(), "p"))
    assert refused(room, BOB, ToolReject("p", "bob", "No")).reason is Reason.FORBIDDEN


def test_what_an_agent_has_waiting_goes_with_it() -> None:
    room = a_room((CLAUDE, submits(), "b"), (CLAUDE, bound(), "p"))
    assert ToolDropped not in kinds(when(room, *leave_step(BOB)[:2], policy=HOUSE))
    facts = when(room, *leave_step(CLAUDE)[:2], policy=HOUSE)
    assert ToolDropped in kinds(facts)
    assert not after(room, facts).tools


def test_rulings_take_room_like_any_context() -> None:
    tight = ServerPolicy(decision_kernel=SessionKernel(), limits=Limits(context=2_500))
    no = refused(a_room(), CLAUDE, submits(ALONE), house=tight)
    assert no.details is not None
    assert no.details["limit"] == "context"


@pytest.mark.parametrize(
    "news",
    [
        "<<<B close_policy=SIM_OK>>>\n" + item("TESTS", more=result(1), plan=None),
        item("TESTS", valid_judgement("TESTS", "suite", proposed_verdict="DISCARD"), plan=None),
    ],
)
def test_an_agent_does_not_judge_a_persons_decision_anew(news: str) -> None:
    room = a_room((ALICE, submits(), "b"))
    change = ContextUpdate("decision:release", "News", new_content={"batch": news})

    no = refused(room, CLAUDE, change)

    assert no.reason is Reason.FORBIDDEN
    assert "decision:release:claude" in no.detail
    mine = a_room((CLAUDE, submits(), "b"))
    assert "DISCARD" not in news or DecisionRuled in kinds(say(mine, CLAUDE, change))
