"""What the kernel said of a step, as the decision behind a commit has it."""

import pytest
from msgspec.structs import replace

from accord.core.docket.session_kernel import SessionKernel
from accord.core.kernel.records import Record
from accord.core.provenance import decision_commit as decisions
from accord.core.provenance.commit_message.trailers import FULL, trailers_from_context
from accord.core.room.approval.gates import GateOpened
from accord.core.room.room_settings import ServerPolicy
from accord.core.room.shared_context.context_items import ContextAdd, ContextRemove
from tests.helpers.docket.batch_text import item, step, valid_judgement
from tests.helpers.room.commit_decisions import (
    decision_of,
    records_with_seq,
    room_with_approver_and_agent,
)
from tests.helpers.room.logged_room import START_ID
from tests.helpers.room.scenario import ALICE, BOB, CLAUDE, tool_approve, tool_propose
from tests.spec import proves


@proves("UNI-28")
def test_what_the_kernel_said_of_a_step_goes_with_the_decision() -> None:
    house = ServerPolicy(decision_kernel=SessionKernel())
    deploy = valid_judgement("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO")])
    batch = ContextAdd(key="decision:release", content_type="text", content=item("DEPLOY", deploy))
    link = {"batch": "release", "item": "DEPLOY", "step": "deployed=YES/NO"}
    talk = room_with_approver_and_agent()
    talk.send(ALICE, batch, id="b", house=house)
    ruling = talk.room.shelf[""]["decision:release#snapshot"].content
    assert isinstance(ruling, dict)
    talk.send(CLAUDE, tool_propose(arguments={"decision": link}), id="t", ref=START_ID, house=house)
    talk.send(BOB, tool_approve(BOB, "t"), house=house)

    [verdict] = decision_of(talk).verdicts

    assert (verdict.item, verdict.verdict, verdict.confidence) == ("DEPLOY", "DO NOW", "MED")
    assert verdict.snapshot == ruling["sha256"]
    since = next(each.seq for each in records_with_seq(talk) if each.id == "t")
    assert decision_of(talk, since - 1).verdicts == (verdict,)


@proves("UNI-30")
def test_nothing_of_the_kernel_reaches_a_trailer() -> None:
    house = ServerPolicy(decision_kernel=SessionKernel())
    deploy = valid_judgement("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO")])
    batch = ContextAdd(key="decision:release", content_type="text", content=item("DEPLOY", deploy))
    link = {"batch": "release", "item": "DEPLOY", "step": "deployed=YES/NO"}
    talk = room_with_approver_and_agent()
    talk.send(ALICE, batch, house=house)
    talk.send(CLAUDE, tool_propose(arguments={"decision": link}), id="t", ref=START_ID, house=house)
    talk.send(BOB, tool_approve(BOB, "t"), house=house)
    made = decision_of(talk)

    trailers = trailers_from_context(decisions.trailer_context(made), style=FULL)

    assert made.verdicts
    assert made.confidence_score is None  # the kernel's word is not the agent's number
    keys = {each.key for each in trailers}
    assert keys == {
        *("PVP-Session", "PVP-Decision", "PVP-Messages", "PVP-Tools"),
        *("Decision-By", "Assisted-by"),
    }
    said = " ".join(each.value for each in trailers)
    (verdict,) = made.verdicts
    words = (verdict.batch, verdict.item, verdict.verdict, verdict.confidence, verdict.snapshot)
    assert not any(word in said for word in words)


@pytest.mark.parametrize("told", [True, False])
def test_a_step_of_a_decision_that_is_gone_is_told_with_what_voters_saw(told: bool) -> None:
    house = ServerPolicy(decision_kernel=SessionKernel())
    deploy = valid_judgement("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO")])
    batch = ContextAdd(key="decision:x", content_type="text", content=item("DEPLOY", deploy))
    talk = room_with_approver_and_agent()
    talk.send(ALICE, batch, house=house)
    link = {"batch": "x", "item": "DEPLOY", "step": "deployed=YES/NO"}
    talk.send(CLAUDE, tool_propose(arguments={"decision": link}), id="t", ref=START_ID, house=house)
    talk.send(BOB, tool_approve(BOB, "t"), id="yes", house=house)
    talk.send(ALICE, ContextRemove("decision:x", "Over"), house=house)
    since = next(each.seq for each in records_with_seq(talk) if each.id == "t")
    if not told:  # as gates were before they said it
        talk.log = [without_standing(record) for record in talk.log]

    [verdict] = decision_of(talk, since - 1).verdicts

    assert (verdict.item, verdict.verdict) == ("DEPLOY", "DO NOW" if told else "")
    assert bool(verdict.snapshot) is told


def without_standing(record: Record) -> Record:
    event = record.event
    if not isinstance(event, GateOpened):
        return record
    return replace(record, event=replace(event, said=replace(event.said, decision=None)))
