"""What the kernel said of a step, as the decision behind a commit has it."""

import pytest
from msgspec.structs import replace

from accord.core.docket.bench import Bench
from accord.core.kernel.log import Record
from accord.core.provenance import decision as decisions
from accord.core.provenance.build import trailers_of
from accord.core.room.gates import GateOpened
from accord.core.room.shelf import ContextAdd, ContextRemove
from accord.core.room.state import House
from tests.helpers.chain import a_talk, decision, numbered
from tests.helpers.docket import item, ok, step
from tests.helpers.forks import START
from tests.helpers.room import ALICE, BOB, CLAUDE, approves_tool, proposes
from tests.spec import proves


@proves("UNI-28")
def test_what_the_kernel_said_of_a_step_goes_with_the_decision() -> None:
    house = House(judge=Bench())
    deploy = ok("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO")])
    batch = ContextAdd(key="decision:release", content_type="text", content=item("DEPLOY", deploy))
    link = {"batch": "release", "item": "DEPLOY", "step": "deployed=YES/NO"}
    talk = a_talk()
    talk.says(ALICE, batch, id="b", house=house)
    ruling = talk.room.shelf[""]["decision:release#snapshot"].content
    assert isinstance(ruling, dict)
    talk.says(CLAUDE, proposes(arguments={"decision": link}), id="t", ref=START, house=house)
    talk.says(BOB, approves_tool(BOB, "t"), house=house)

    [verdict] = decision(talk).verdicts

    assert (verdict.item, verdict.verdict, verdict.confidence) == ("DEPLOY", "DO NOW", "MED")
    assert verdict.snapshot == ruling["sha256"]
    since = next(each.seq for each in numbered(talk) if each.id == "t")
    assert decision(talk, since - 1).verdicts == (verdict,)


@proves("UNI-30")
def test_nothing_of_the_kernel_reaches_a_trailer() -> None:
    house = House(judge=Bench())
    deploy = ok("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO")])
    batch = ContextAdd(key="decision:release", content_type="text", content=item("DEPLOY", deploy))
    link = {"batch": "release", "item": "DEPLOY", "step": "deployed=YES/NO"}
    talk = a_talk()
    talk.says(ALICE, batch, house=house)
    talk.says(CLAUDE, proposes(arguments={"decision": link}), id="t", ref=START, house=house)
    talk.says(BOB, approves_tool(BOB, "t"), house=house)
    made = decision(talk)

    trailers = trailers_of(decisions.context(made), aliases=True)

    assert made.verdicts
    assert made.confidence_score is None  # the kernel's word is not the agent's number
    keys = {each.key for each in trailers}
    assert keys == {
        *("PVP-Session", "PVP-Decision", "PVP-Messages", "PVP-Tools", "PVP-Approvers"),
        *("Decision-By", "Approved-By"),
    }
    said = " ".join(each.value for each in trailers)
    (verdict,) = made.verdicts
    words = (verdict.batch, verdict.item, verdict.verdict, verdict.confidence, verdict.snapshot)
    assert not any(word in said for word in words)


@pytest.mark.parametrize("told", [True, False])
def test_a_step_of_a_decision_that_is_gone_is_told_with_what_voters_saw(told: bool) -> None:
    house = House(judge=Bench())
    deploy = ok("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO")])
    batch = ContextAdd(key="decision:x", content_type="text", content=item("DEPLOY", deploy))
    talk = a_talk()
    talk.says(ALICE, batch, house=house)
    link = {"batch": "x", "item": "DEPLOY", "step": "deployed=YES/NO"}
    talk.says(CLAUDE, proposes(arguments={"decision": link}), id="t", ref=START, house=house)
    talk.says(BOB, approves_tool(BOB, "t"), id="yes", house=house)
    talk.says(ALICE, ContextRemove("decision:x", "Over"), house=house)
    since = next(each.seq for each in numbered(talk) if each.id == "t")
    if not told:  # as gates were before they said it
        talk.log = [without_standing(record) for record in talk.log]

    [verdict] = decision(talk, since - 1).verdicts

    assert (verdict.item, verdict.verdict) == ("DEPLOY", "DO NOW" if told else "")
    assert bool(verdict.snapshot) is told


def without_standing(record: Record) -> Record:
    event = record.event
    if not isinstance(event, GateOpened):
        return record
    return replace(record, event=replace(event, said=replace(event.said, decision=None)))
