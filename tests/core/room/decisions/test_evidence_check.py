"""What agents say they saw, and what the log bears out."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.approval.gates import GateOpened
from accord.core.room.approval.grants import ToolReject
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult, step_result_of
from accord.core.room.decisions.decision_binding import MAX_RUNS, remember_run
from accord.core.room.decisions.evidence_check import CI_LABEL
from accord.core.room.decisions.rulings import DecisionRuled
from accord.core.room.shared_context.context_items import ContextRemove, ContextUpdate
from accord.core.room.state import Room
from tests.core.room.decisions.test_rulings import (
    ALONE,
    BATCH,
    DEPLOY,
    HEAD,
    HOUSE,
    PASSED,
    TESTS,
    R,
    a_room,
    bound,
    kinds,
    ran,
    refused,
    ruling,
    say,
    submits,
)
from tests.helpers.docket.batch_text import (
    CHANGE_BLOCK,
    evidence,
    item,
    probe,
    ratings,
    result,
    step,
    valid_judgement,
)
from tests.helpers.room.logged_room import LoggedRoom
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    after,
    create_step,
    given,
    join_step,
    tool_approve,
    tool_execute,
    tool_propose,
)
from tests.spec import proves

SUITE = "suite_green=YES/NO"
RUNS_TESTS = bound("TESTS", SUITE)
SAW = item("TESTS", more=evidence(), plan=None)
# Two steps, so that the first of them settles nothing yet.
TWICE = HEAD + item(
    "TESTS",
    valid_judgement(
        "TESTS", "suite", steps=[step("Run", "suite", SUITE), step("Run", "again", "again=YES/NO")]
    ),
)
SIM_OK = BATCH.replace("REAL_ONLY", "SIM_OK")


def news(batch: str, *cited: str, key: str = "decision:release", **more: Any) -> ContextUpdate:
    return ContextUpdate(key, "News", new_content={"batch": batch, "evidence": list(cited), **more})


def of_alice(batch: str = TWICE + DEPLOY) -> Room:
    return a_room((ALICE, submits(batch), "b"))


def unmoved(room: Room, who: Actor, said: ContextUpdate, why: Reason = Reason.WRONG_STATE) -> str:
    """The sentence with which it is refused."""
    no = refused(room, who, said)
    assert no.reason is why
    return no.detail


# What is cited


@proves("UNI-19")
def test_an_agent_that_says_it_saw_something_cites_the_run_of_that_step() -> None:
    room = of_alice()
    assert "name the run" in unmoved(room, CLAUDE, news(SAW))
    assert "never-run is not evidence" in unmoved(room, CLAUDE, news(SAW, "never-run"))

    room = ran(room, RUNS_TESTS, "t")

    assert DecisionRuled in kinds(say(room, CLAUDE, news(SAW, "t")))
    assert DecisionRuled in kinds(say(room, CLAUDE, news(PASSED, "t")))


@proves("UNI-19")
@pytest.mark.parametrize(
    ("run", "success", "says"),
    [
        (tool_propose(), True, "no such run succeeded here"),
        (RUNS_TESTS, False, "no such run succeeded here"),
    ],
    ids=["bound to nothing", "failed"],
)
def test_a_run_that_failed_or_was_about_something_else_is_no_evidence(
    run: ToolPropose, success: bool, says: str
) -> None:
    room = ran(of_alice(), run, "t", success=success)
    assert says in unmoved(room, CLAUDE, news(SAW, "t"))


def test_a_run_for_another_item_shows_nothing_of_this_one() -> None:
    room = ran(of_alice(), RUNS_TESTS, "t")
    claim = item("DEPLOY", more=evidence(), plan=None)
    assert "DEPLOY: an agent cannot claim" in unmoved(room, CLAUDE, news(claim, "t"))


def test_a_run_for_another_decision_shows_nothing_of_this_one() -> None:
    room = of_alice()
    room = after(room, say(room, ALICE, submits(key="decision:other"), "o"))
    room = ran(room, bound("TESTS", SUITE, "other"), "t")
    assert "it was a step of other" in unmoved(room, CLAUDE, news(SAW, "t"))


@pytest.mark.parametrize("votes", [False, True])
def test_what_has_not_ended_is_no_evidence(votes: bool) -> None:
    room = of_alice()
    room = after(room, say(room, CLAUDE, RUNS_TESTS, "t"))
    if votes:
        room = after(room, say(room, BOB, tool_approve(BOB, "t")))
    assert "it has not finished" in unmoved(room, CLAUDE, news(SAW, "t"))


def test_what_was_rejected_is_no_evidence() -> None:
    room = of_alice()
    room = after(room, say(room, CLAUDE, RUNS_TESTS, "t"))
    room = after(room, say(room, BOB, ToolReject("t", "bob", "No")))
    assert "it was rejected" in unmoved(room, CLAUDE, news(SAW, "t"))


def test_a_run_in_a_fork_shows_nothing_outside_it() -> None:
    talk = LoggedRoom.with_members((BOB, R.APPROVER), (CLAUDE, R.DRIVER))
    talk.send(ALICE, submits(TWICE), id="b", house=HOUSE)
    fork = talk.fork("Aside", BOB, CLAUDE, copy=True)
    talk.send(CLAUDE, RUNS_TESTS, id="t", fork=fork, house=HOUSE)
    talk.send(BOB, tool_approve(BOB, "t"), fork=fork, id="yes", house=HOUSE)
    # A result may leave out where it is; what follows from it stays there.
    talk.send(CLAUDE, ToolResult("t", success=True, duration_ms=5), id="done", house=HOUSE)

    assert talk.room.shelf[fork]["decision:release#snapshot"].changed > 0
    assert talk.allows(CLAUDE, news(SAW, "t"), fork=fork, house=HOUSE)
    assert not talk.allows(CLAUDE, news(SAW, "t"), house=HOUSE)
    trunk = talk.room.shelf[""]["decision:release#snapshot"].content
    assert isinstance(trunk, dict)
    assert trunk["items"]["TESTS"]["state"] == "ACTIVE"


def test_run_counts_as_evidence_once() -> None:
    room = ran(of_alice(), RUNS_TESTS, "t")
    room = after(room, say(room, CLAUDE, news(SAW, "t")))
    assert "since its item last changed" in unmoved(room, CLAUDE, news(SAW, "t"))


def test_a_run_is_older_than_what_people_said_after_it() -> None:
    room = ran(of_alice(), RUNS_TESTS, "t")
    room = after(room, say(room, ALICE, news(SAW)))
    assert "since its item last changed" in unmoved(room, CLAUDE, news(SAW, "t"))


def test_a_run_for_a_decision_that_is_gone_shows_nothing_of_a_new_one() -> None:
    room = ran(of_alice(), RUNS_TESTS, "t")
    room = after(room, say(room, ALICE, ContextRemove("decision:release", "Over")))
    room = after(room, say(room, ALICE, submits(), "again"))
    assert "since its item last changed" in unmoved(room, CLAUDE, news(SAW, "t"))


def test_only_the_latest_runs_are_remembered() -> None:
    room = of_alice()
    room = after(room, say(room, CLAUDE, RUNS_TESTS, "t"))
    for n in range(MAX_RUNS + 1):
        again = replace(room.tools["t"], id=f"t{n}")
        room = remember_run(replace(room, tools={**room.tools, again.id: again}), again.id)
    assert len(room.runs) == MAX_RUNS
    assert "t0" not in room.runs


def test_another_agent_may_cite_what_one_has_run() -> None:
    room = ran(of_alice(), RUNS_TESTS, "t")
    room = after(room, say(room, *join_step(CODEX, R.DRIVER)[:2]))
    assert DecisionRuled in kinds(say(room, CODEX, news(SAW, "t")))


# What it shows


@proves("UNI-19")
def test_a_run_shows_no_more_than_it_is() -> None:
    room = ran(of_alice(), RUNS_TESTS, "t")
    claim = item("TESTS", more=evidence("EXPERIMENT"), plan=None)
    assert "its runs show REAL" in unmoved(room, CLAUDE, news(claim, "t"))
    for tier in ("HISTORICAL", "REAL"):
        claim = item("TESTS", more=evidence(tier), plan=None)
        assert DecisionRuled in kinds(say(room, CLAUDE, news(claim, "t")))


@proves("UNI-19")
@pytest.mark.parametrize("batch", [BATCH, SIM_OK])
@pytest.mark.parametrize("author", [ALICE, CLAUDE])
@pytest.mark.parametrize("status", ["COMPLETED", "COMPLETED_SIMULATED", "FAILED"])
def test_no_agent_reports_a_step_that_was_not_run(batch: str, author: Actor, status: str) -> None:
    room = a_room((author, submits(batch), "b"))
    claim = item("TESTS", more=result(1, status), plan=None)

    assert "no run shows the result of" in unmoved(room, CLAUDE, news(claim))

    judged = item("TESTS", {"step_results": [{"step": "S1", "status": status}]}, plan=None)
    assert "no run shows the result of" in unmoved(room, CLAUDE, news(judged))
    assert DecisionRuled in kinds(say(room, BOB, news(claim)))


@pytest.mark.parametrize(
    "judged",
    [
        {"binding": ratings("HLLM", "suite", evidence_tier="REAL", evidence_ref="x")},
        {"binding": ratings("HLLM", "suite", evidence_tier="EXPERIMENT", evidence_ref="x")},
        {"binding": ratings("HLLM", "suite", evidence_tier="HISTORICAL", evidence_ref="x")},
        {"provable": "YES", "test_ref": "tests/test_it.py"},
        {"probe_results": [probe("suite", status="VALIDATED", evidence_tier="EXPERIMENT")]},
        {"probe_results": [probe("suite", status="VALIDATED")]},
        {"split": [{"probe_results": [probe("suite", status="VALIDATED")]}]},
        {"split": [{"step_results": [{"step": "S1", "evidence_tier": "REAL"}]}]},
    ],
)
@pytest.mark.parametrize("key", ["decision:mine", "decision:release:claude"])
def test_no_judgement_of_an_agent_rests_on_what_nobody_ran(
    judged: dict[str, Any], key: str
) -> None:
    said = submits(HEAD + item("TESTS", valid_judgement("TESTS", "suite") | judged), key)
    assert refused(of_alice(), CLAUDE, said).reason is Reason.WRONG_STATE
    assert DecisionRuled in kinds(say(of_alice(), BOB, said))


def test_a_build_server_with_the_label_is_believed_and_judges_nothing() -> None:
    ci = CODEX
    here = (
        join_step(BOB, R.APPROVER),
        join_step(CLAUDE, R.DRIVER),
        join_step(ci, R.DRIVER, labels=(CI_LABEL,)),
    )
    room = given(create_step(), *here, policy=HOUSE)
    room = after(room, say(room, ALICE, submits(), "b"))
    room = after(room, say(room, CLAUDE, bound(), "p"))
    too_much = item("TESTS", more=evidence("EXPERIMENT"), plan=None)
    assert refused(room, ci, news(too_much)).reason is Reason.WRONG_STATE
    anew = item("TESTS", valid_judgement("TESTS", "suite"), plan=None)
    assert refused(room, ci, news(anew)).reason is Reason.FORBIDDEN

    facts = say(room, ci, news(PASSED))

    assert GateOpened in kinds(facts)
    assert ruling(after(room, facts))["items"]["TESTS"]["state"] == "CLOSED"


# News of what others decided


FREES = [
    "<<<I id=DEPLOY depends_on=[]>>>\n<<<CHANGE>>>\n- x\n<<<END>>>\n",
    "<<<I id=DEPLOY waive=TESTS>>>\n<<<CHANGE>>>\n- x\n<<<END>>>\n",
    "<<<I id=DEPLOY>>>\n<<<PLAN>>>\n- waive dependency TESTS\n<<<END>>>\n",
    "\ufeff<<<B close_policy=SIM_OK>>>\n<<<I id=TESTS>>>\n<<<CHANGE>>>\n- x\n<<<END>>>\n",
    '<<<I id=DEPLOY>>>\r<<<JUDGE>>>\r{"waive": ["TESTS"]}\r<<<END>>>\r',
    '<<<I id=TESTS>>>\n<<<JUDGE >>>\n{"proposed_verdict": "DISCARD"}\n<<<END>>>\n',
    item("NEW", valid_judgement("NEW", "x")),
    "<<<I id=NEW>>>\n<<<CHANGE>>>\n- x\n<<<END>>>\n",
]


@pytest.mark.parametrize("claim", FREES)
@pytest.mark.parametrize("adopted", [False, True])
def test_an_agent_says_of_what_others_rely_on_only_what_happened(claim: str, adopted: bool) -> None:
    room = a_room((CLAUDE if adopted else ALICE, submits(), "b"))
    if adopted:
        change = item("DEPLOY", more=CHANGE_BLOCK, plan=None)
        room = after(room, say(room, ALICE, news(change, guards=["deploy"])))
    detail = unmoved(room, CLAUDE, news(claim), Reason.FORBIDDEN)
    assert "as decision:release:claude" in detail


def test_no_agent_takes_up_again_what_its_run_has_settled() -> None:
    room = ran(of_alice(BATCH), RUNS_TESTS, "t")
    assert ruling(room)["items"]["TESTS"]["state"] == "CLOSED"
    assert "TESTS is CLOSED" in unmoved(room, CLAUDE, news(SAW, "t"), Reason.FORBIDDEN)
    assert "TESTS is CLOSED" in unmoved(room, CLAUDE, news(PASSED, "t"), Reason.FORBIDDEN)


def test_an_agents_word_alone_takes_nothing_up_again() -> None:
    off = (
        HEAD
        + TESTS
        + item("DEPLOY", valid_judgement("DEPLOY", "errors", proposed_verdict="DISCARD"))
    )
    claim = item("DEPLOY", more=CHANGE_BLOCK, plan=None)
    assert "DEPLOY is DISCARDED" in unmoved(of_alice(off), CLAUDE, news(claim), Reason.FORBIDDEN)
    assert DecisionRuled in kinds(say(of_alice(off), ALICE, news(claim)))


def test_an_agent_may_say_what_has_changed() -> None:
    assert DecisionRuled in kinds(
        say(of_alice(), CLAUDE, news(item("DEPLOY", more=CHANGE_BLOCK, plan=None)))
    )


def test_an_agents_word_alone_frees_nothing() -> None:
    room = of_alice()
    shelf = room.shelf[""]["decision:release#snapshot"].content
    assert isinstance(shelf, dict)
    # As if the rules had said no to what they allow now.
    shelf["items"]["TESTS"]["allowed"] = "another=YES/NO"
    claim = news(item("DEPLOY", more=CHANGE_BLOCK, plan=None))
    assert f"cannot release {SUITE} of TESTS" in unmoved(room, CLAUDE, claim, Reason.FORBIDDEN)


# What a run tells by itself


CANARY = HEAD + item(
    "DEPLOY",
    valid_judgement(
        "DEPLOY",
        "drv",
        domain_type="Complex",
        probe=probe(),
        steps=[step("Deploy", "api", "deployed=YES/NO")],
    ),
)


def canary(room: Room, said: ToolResult) -> Room:
    trial = ruling(room)["items"]["DEPLOY"]["allowed"]
    assert ruling(room)["items"]["DEPLOY"]["tier"] == "EXPERIMENT"
    room = after(room, say(room, CLAUDE, bound("DEPLOY", trial), "c"))
    room = after(room, say(room, BOB, tool_approve(BOB, "c")))
    return after(room, say(room, CLAUDE, said))


@proves("UNI-19")
def test_a_canary_that_passed_is_an_experiment_and_frees_the_deployment() -> None:
    room = a_room((ALICE, submits(CANARY), "b"), (CLAUDE, bound(), "p"))
    assert not room.gates
    good = ToolResult("c", success=True, duration_ms=5, result={"value": 0.2})

    room = canary(room, good)

    assert ruling(room)["items"]["DEPLOY"]["allowed"] == "deployed=YES/NO"
    assert [gate.action for gate in room.gates.values()] == ["p"]
    assert room.runs["c"].tier == "EXPERIMENT"


@pytest.mark.parametrize(
    "bad",
    [
        ToolResult("c", success=True, duration_ms=5, result=7.5),
        ToolResult("c", success=False, duration_ms=5, error="errors"),
        ToolResult("c", success=False, duration_ms=5, metadata={"fault": "EXCEPTION_IO"}),
    ],
    ids=["beyond its kill switch", "failed", "could not be run"],
)
def test_a_canary_that_did_not_pass_frees_nothing(bad: ToolResult) -> None:
    room = canary(a_room((ALICE, submits(CANARY), "b"), (CLAUDE, bound(), "p")), bad)
    assert ruling(room)["items"]["DEPLOY"]["allowed"] != "deployed=YES/NO"
    assert not room.gates


@pytest.mark.parametrize(
    ("result", "metadata", "heard"),
    [
        (3, None, ("3", "")),
        ({"value": 0.5}, {}, ("0.5", "")),
        ({"value": True}, {"fault": 4}, ("", "")),
        ({"value": "9"}, {"fault": "EXCEPTION_IO"}, ("", "EXCEPTION_IO")),
        (True, None, ("", "")),
        (None, None, ("", "")),
    ],
)
def test_a_result_tells_what_it_measured(result: Any, metadata: Any, heard: Any) -> None:
    said = ToolResult("t", success=True, duration_ms=1, result=result, metadata=metadata)
    assert step_result_of(said)[-2:] == heard


def test_what_was_never_begun_and_is_held_by_now_is_no_evidence() -> None:
    room = a_room((ALICE, submits(ALONE), "b"), (CLAUDE, bound(), "p"))
    room = after(room, say(room, BOB, tool_approve(BOB, "p")))
    begun = after(room, say(room, CLAUDE, tool_execute("p")))
    judged = valid_judgement("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO")])
    blocked = news(item("DEPLOY", judged, attrs="depends_on=AUDIT"))
    done = ToolResult("p", success=True, duration_ms=5)
    for before, counts in ((room, False), (begun, True)):
        now = after(before, say(before, ALICE, blocked))
        facts = say(now, CLAUDE, done)
        assert (DecisionRuled in kinds(facts)) is counts
        assert "p" not in after(now, facts).runs
    other = news(item("DEPLOY", valid_judgement("DEPLOY", "errors")))
    begun = after(begun, say(begun, ALICE, other))
    assert DecisionRuled not in kinds(say(begun, CLAUDE, done))


def test_a_canary_without_a_probe_that_runs_shows_that_it_went_well() -> None:
    trial = {"kind": "PROBE", "text": step("Run", "canary", "canary_ok=YES/NO")}
    steps = [trial, step("Deploy", "api", "deployed=YES/NO")]
    batch = HEAD + item("DEPLOY", valid_judgement("DEPLOY", "errors", steps=steps))
    room = a_room((ALICE, submits(batch), "b"))
    room = ran(room, bound("DEPLOY", "canary_ok=YES/NO"), "c")
    assert ruling(room)["items"]["DEPLOY"]["allowed"] == "deployed=YES/NO"


def test_a_canary_that_measured_nothing_shows_that_it_went_well() -> None:
    room = canary(a_room((ALICE, submits(CANARY), "b")), ToolResult("c", True, 5))
    assert room.runs["c"].tier == "EXPERIMENT"


def test_a_room_that_forgets_a_run_it_never_saw_is_the_same() -> None:
    room = of_alice()
    assert remember_run(room, "never") is room
    with pytest.raises(Refused):
        say(room, CLAUDE, news(SAW, "never"))
