"""From a conversation to the decision behind a commit: what is told, and what never is."""

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from accord.core.docket.bench import Bench
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Record
from accord.core.provenance import decision as decisions
from accord.core.provenance import thread as threads
from accord.core.provenance.build import trailers_of
from accord.core.provenance.decision import DecisionCommit
from accord.core.room.conflicts import Resolution
from accord.core.room.gates import GateOpened
from accord.core.room.merges import MergeExecute
from accord.core.room.prompts import PromptAmend
from accord.core.room.secrets import SecretShare
from accord.core.room.shelf import ContextAdd, ContextRemove
from accord.core.room.state import House
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart, UsageStats
from accord.core.room.thinking import ThinkingChunk, ThinkingStart
from accord.core.room.tools import ToolResult
from accord.core.views.chain import Drafted, drafted
from accord.core.views.stretch import Stretch, cited, decision_id, heard
from tests.helpers.docket import item, ok, step
from tests.helpers.forks import START, Talk, adds, forks, merges, updates
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    approves,
    approves_tool,
    finishes,
    gate_on,
    prints,
    prompts,
    proposes,
    rejects_tool,
    requests,
)
from tests.spec import proves


def a_talk() -> Talk:
    """Alice is admin and has asked Claude; Bob approves, Carol drives."""
    return Talk.of((BOB, Role.APPROVER), (CAROL, Role.DRIVER), (CLAUDE, Role.DRIVER))


def a_tool(talk: Talk, name: str, ref: str | None = START) -> None:
    """Claude wants to write a file, Bob says yes, Claude does."""
    talk.says(
        CLAUDE, proposes(tool_name="write_file", arguments={"path": "a.py"}), id=name, ref=ref
    )
    talk.says(BOB, approves_tool(BOB, name), id=f"{name}.yes")
    talk.says(CLAUDE, prints(name, "wrote 3 lines"))
    talk.says(CLAUDE, finishes(name), id=f"{name}.done")


def numbered(talk: Talk) -> list[Record]:
    """With `seq` as the engine counts: only what has a form on the wire."""
    numbers = iter(range(1, 10_000))
    return [replace(each, seq=next(numbers) if each.said else 0) for each in talk.log]


def decided(talk: Talk, since: int = 0, fork: str | None = None) -> Drafted | None:
    """As the bridge does it: what was heard since, and what that cites."""
    records = numbered(talk)
    stretch = Stretch(talk.room, "repo", fork, since)
    told = heard(stretch, records)
    known: dict[str, Record] = {}
    names = cited(told)
    for _ in range(3):
        more = {each.id: each for each in records if each.id in names}
        known, names = {**known, **more}, cited(more.values())
    return drafted(stretch, told, known) if told else None


def decision(talk: Talk, since: int = 0, fork: str | None = None) -> DecisionCommit:
    found = decided(talk, since, fork)
    assert found is not None
    return found.decision


def words(talk: Talk, since: int = 0, fork: str | None = None) -> str:
    """Everything that would be written anywhere."""
    found = decided(talk, since, fork)
    assert found is not None
    return json.dumps([decisions.to_json(found.decision), threads.to_json(found.thread)])


@proves("PVP-18.2-1", "PVP-18.2-4", "GIT-MAP-1", "GIT-MAP-3")
def test_a_decision_is_the_chain_from_the_prompt_to_the_tool() -> None:
    talk = a_talk()
    a_tool(talk, "t")

    made = decision(talk)

    execute = next(r.id for r in talk.log if r.event.name == "tool.cleared")
    assert made.pvp_messages == (START, "t.yes", "t", execute)
    assert made.decided_by == ("agent:claude", "human:alice")
    (tool,) = made.tool_executions
    assert (tool.name, tool.path, tool.outcome, tool.duration_ms) == (
        "write_file",
        "a.py",
        "success",
        12,
    )
    assert tool.approved_by == ("human:bob",)
    assert tool.output_hash.startswith("sha256:")


@proves("GIT-MAP-2", "UNI-14")
def test_who_approved_is_who_voted_and_the_gate_passed() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="t")
    gate = gate_on(talk.room, "t").id
    talk.says(BOB, approves(BOB, gate, "Looks fine"), id="yes")

    (approval,) = decision(talk).approvals

    assert (approval.by, approval.action, approval.comment) == ("human:bob", "t", "Looks fine")
    assert approval.at


def test_what_was_refused_is_an_alternative_with_its_reason() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="bad")
    talk.says(BOB, rejects_tool(BOB, "bad", "Too risky"), id="no")

    made = decision(talk)

    (other,) = made.alternatives_considered
    assert (other.kind, other.id, other.reason, other.by) == (
        "proposal",
        "bad",
        "Too risky",
        ("human:bob",),
    )
    assert not made.tool_executions
    assert not made.approvals


def test_a_gate_on_a_prompt_that_is_refused_says_what_it_was() -> None:
    talk = a_talk()
    talk.says(CAROL, prompts(content="Drop the table"), id="p")
    talk.says(CAROL, requests("p"), id="g")
    talk.says(BOB, rejects_tool(BOB, "p", "Never"))

    (other,) = decision(talk).alternatives_considered

    assert (other.kind, other.id, other.description) == ("proposal", "p", "")


@proves("PVP-18.5-1")
def test_a_fork_that_has_not_come_back_is_an_alternative() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try OAuth", BOB, CLAUDE, reason="Maybe simpler"), id="f")

    (other,) = decision(talk).alternatives_considered

    assert (other.kind, other.id, other.description, other.branch) == (
        "fork",
        "try-oauth",
        "Maybe simpler",
        "pvp/try-oauth",
    )
    talk.says(CAROL, merges("try-oauth"), id="m")
    assert "It works" in words(talk)


def test_a_merge_that_was_refused_is_an_alternative_too() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try", BOB, CLAUDE), id="f")
    talk.says(CLAUDE, merges("try"), id="m")
    gate = gate_on(talk.room, "m").id
    talk.says(BOB, rejects_tool(BOB, "m", "Not yet"), id="no")

    kinds = [(each.kind, each.id, each.reason) for each in decision(talk).alternatives_considered]

    assert kinds == [("fork", "try", ""), ("merge", "m", "Not yet")]
    assert gate not in talk.room.gates


@proves("OPEN-60", "PVP-18.2-3")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"confidence": 0.9}, 0.9),
        ({"confidence": 1}, 1.0),
        ({"confidence": 1.1}, None),
        ({"confidence": True}, None),
        ({"confidence": "high"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_confidence_is_the_agents_own_number_or_none(
    said: dict[str, object] | None, told: float | None
) -> None:
    by_answer, by_tool = a_talk(), a_talk()
    by_answer.says(CLAUDE, ResponseStart("claude", START), id="r")
    by_answer.says(CLAUDE, ResponseEnd("complete", metadata=said), ref="r")
    by_tool.says(CLAUDE, proposes(), id="t")
    by_tool.says(BOB, approves_tool(BOB, "t"))
    by_tool.says(CLAUDE, ToolResult("t", success=False, duration_ms=1, metadata=said, result=[1]))

    assert decision(by_answer).confidence_score == told
    assert decision(by_tool).confidence_score == told
    assert decision(by_tool).tool_executions[0].outcome == "failure"


def test_an_answer_is_told_whole_and_what_it_cost_is_added_up() -> None:
    talk = a_talk()
    for name in ("r1", "r2"):
        talk.says(CLAUDE, ResponseStart("claude", START), id=name)
        talk.says(CLAUDE, ResponseChunk("Let "), ref=name)
        talk.says(CLAUDE, ResponseChunk("us see"), ref=name)
        usage = UsageStats(1, 20, latency_ms=300)
        talk.says(CLAUDE, ResponseEnd("complete", usage), ref=name, id=f"{name}.end")

    found = decided(talk)

    assert found is not None
    assert found.decision.metrics is not None
    assert decisions.to_json(found.decision.metrics) == {"output_tokens": 40, "latency_ms": 600}
    said = {each.id: each for each in found.thread.messages}
    assert (said["r1.end"].content, said["r1.end"].type) == ("Let us see", "response.end")


def test_an_answer_that_goes_on_while_one_commits_is_told_as_far_as_it_got() -> None:
    talk = a_talk()
    talk.says(CLAUDE, ResponseStart("claude", START), id="r")
    talk.says(CLAUDE, ResponseChunk("First this. "), ref="r")
    first = decision(talk)
    talk.says(CLAUDE, ResponseChunk("Then that."), ref="r")
    half = decided(talk, 2)
    talk.says(CLAUDE, ResponseEnd("complete"), ref="r", id="end")
    second = decided(talk, first.until)
    alone = decided(talk, 4)

    assert "First this. " in words(talk, 0)
    assert half is None  # more of an answer decides nothing by itself
    assert second is not None
    assert [each.content for each in second.thread.messages] == ["Then that."]
    assert alone is not None
    assert [each.content for each in alone.thread.messages] == [""]


def test_what_an_agent_says_of_its_own_commit_is_no_reason_for_the_next() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(arguments={"argv": ["git", "commit"]}), id="commit", ref=START)
    talk.says(BOB, approves_tool(BOB, "commit"))
    first = decision(talk)
    talk.says(CLAUDE, finishes("commit"))
    talk.says(CLAUDE, ResponseStart("claude", START), id="r")
    talk.says(CLAUDE, ResponseEnd("complete"), ref="r")
    report = decided(talk, first.until)
    a_tool(talk, "next")
    second = decision(talk, first.until)

    assert first.tool_executions[0].outcome == "unfinished"
    assert report is None
    assert [tool.id for tool in second.tool_executions] == ["next"]


def test_the_second_commit_covers_only_what_came_after_the_first() -> None:
    talk = a_talk()
    a_tool(talk, "one")
    first = decision(talk)
    a_tool(talk, "two")

    second = decision(talk, first.until)

    assert [tool.id for tool in first.tool_executions] == ["one"]
    assert [tool.id for tool in second.tool_executions] == ["two"]
    assert [each.action for each in second.approvals] == ["two"]
    assert (first.since, second.since) == (0, first.until)
    assert START in second.pvp_messages  # what both were asked for
    assert first.id != second.id


def test_a_tool_that_was_running_at_the_first_commit_is_not_run_again_by_the_second() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="commit")
    talk.says(BOB, approves_tool(BOB, "commit"))
    first = decision(talk)
    talk.says(CLAUDE, prints("commit"))
    talk.says(CLAUDE, finishes("commit"))

    assert [(t.id, t.outcome) for t in first.tool_executions] == [("commit", "unfinished")]
    assert decided(talk, first.until) is None


def test_what_was_proposed_before_a_commit_and_approved_after_it_is_known() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="t", ref=START)
    gate = gate_on(talk.room, "t").id
    first = decision(talk)
    talk.says(BOB, approves(BOB, gate))

    second = decision(talk, first.until)

    assert [(t.id, t.name) for t in second.tool_executions] == [("t", "run_tests")]
    assert [(each.by, each.action) for each in second.approvals] == [("human:bob", "t")]


def test_a_vote_from_before_the_last_commit_still_counts() -> None:
    talk = Talk.of((BOB, Role.APPROVER), (CAROL, Role.APPROVER), (CLAUDE, Role.DRIVER))
    talk.says(CLAUDE, proposes(), id="t")
    gate = gate_on(talk.room, "t").id
    talk.says(BOB, approves_tool(BOB, "t"), id="yes")
    records = [r for r in numbered(talk) if r.id != "yes"]
    stretch = Stretch(talk.room, "repo")
    found = drafted(stretch, heard(stretch, records), {})

    assert found is not None
    (approval,) = found.decision.approvals
    assert (approval.by, approval.gate, approval.at) == ("human:bob", gate, "")


def test_nothing_asked_done_or_approved_is_no_decision() -> None:
    talk = a_talk()
    until = decision(talk).until
    talk.says(CAROL, adds("notes"))

    assert decided(talk, until) is None


def test_asking_twice_names_the_same_decision() -> None:
    talk = a_talk()
    a_tool(talk, "t")

    assert decision(talk) == decision(talk)
    last = numbered(talk)[-1]
    names = {
        decision_id(Stretch(talk.room, repo, fork, since), last)
        for repo in ("a", "b")
        for fork in (None, "f")
        for since in (0, 1)
    }
    assert len(names) == 8
    assert all(len(name) == 30 and name.startswith("dec_") for name in names)


@proves("OPEN-74", "UNI-29")
def test_thinking_context_secrets_and_output_are_never_told() -> None:
    talk = a_talk()
    talk.says(CLAUDE, ThinkingStart("claude", START, ("bob",)), id="th")
    talk.says(CLAUDE, ThinkingChunk("HIDDEN-THOUGHT"), ref="th")
    talk.says(CAROL, adds("plan", "RESTRICTED-CONTEXT", to=["bob"]))
    talk.says(CAROL, adds("open", "OPEN-CONTEXT"))
    talk.says(CAROL, SecretShare("key", ("claude",), "SECRET-VALUE"))
    hidden = {"path": "a.py", "content": "ARGUMENT-CONTENT"}
    talk.says(CLAUDE, proposes(tool_name="write_file", arguments=hidden), id="t")
    talk.says(BOB, approves_tool(BOB, "t"))
    talk.says(CLAUDE, prints("t", "TOOL-OUTPUT"))
    talk.says(CLAUDE, ToolResult("t", success=True, duration_ms=1, result={"said": "TOOL-RESULT"}))

    text = words(talk)

    for word in ("THOUGHT", "CONTEXT", "SECRET", "ARGUMENT", "OUTPUT", "RESULT"):
        assert word not in text


def test_the_talk_of_a_fork_is_told_only_by_commits_of_that_fork() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try", BOB, CLAUDE), id="f")
    talk.says(CAROL, prompts(content="IN-THE-FORK"), id="p", fork="try")
    talk.says(CAROL, prompts(content="IN-THE-TRUNK"), id="q")
    a_tool(talk, "t", ref="q")

    inside, outside = words(talk, fork="try"), words(talk)

    assert "IN-THE-FORK" in inside
    assert "IN-THE-TRUNK" not in inside
    assert "IN-THE-FORK" not in outside
    assert decision(talk, fork="try").fork == "try"


def test_what_another_place_said_is_not_told_though_it_is_cited() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try", BOB, CLAUDE), id="f")
    a_tool(talk, "t")
    records = [replace(r, to=frozenset({"bob"})) if r.id == START else r for r in numbered(talk)]
    stretch = Stretch(talk.room, "repo", None, 1)
    told = heard(stretch, records)

    found = drafted(stretch, told, {START: records[0]})

    assert found is not None
    assert START not in found.decision.pvp_messages


def test_a_grant_for_what_nobody_knows_is_passed_by() -> None:
    talk = a_talk()
    a_tool(talk, "t")
    kept: Sequence[Record] = [r for r in numbered(talk) if r.id not in {"t", "t.yes"}]
    stretch = Stretch(talk.room, "repo")

    found = drafted(stretch, heard(stretch, kept), {})

    assert found is not None
    assert found.decision.tool_executions == ()


def test_a_no_to_what_nobody_knows_is_said_and_is_no_alternative() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="t")
    talk.says(BOB, rejects_tool(BOB, "t", "No"), id="no")
    kept = [r for r in numbered(talk) if r.event.name != "gate.opened"]
    stretch = Stretch(talk.room, "repo")

    found = drafted(stretch, heard(stretch, kept), {})

    assert found is not None
    assert found.decision.alternatives_considered == ()
    assert "no" in {each.id for each in found.thread.messages}


def test_amendments_count_and_agents_with_a_model_are_called_ai() -> None:
    talk = a_talk()
    talk.says(ALICE, PromptAmend(START, "And test it", "Forgot"), id="a")
    a_tool(talk, "t")
    claude = replace(talk.room.members["claude"], metadata={"model": "m-1"})
    talk.room = replace(talk.room, members={**talk.room.members, "claude": claude})

    made = decision(talk)

    assert made.pvp_messages[:2] == (START, "a")
    assert made.decided_by == ("ai:claude", "human:alice")
    gone = replace(talk.room, members={}, former={"alice": talk.room.members["alice"]})
    talk.room = gone
    assert decision(talk).decided_by == ("agent:claude", "human:alice")


@proves("OPEN-72")
def test_no_name_can_pass_for_two_people() -> None:
    talk = a_talk()
    a_tool(talk, "t")
    name = "alice,human:boss"
    alice = replace(talk.room.members["alice"], id=name)
    talk.room = replace(talk.room, members={**talk.room.members, name: alice})
    talk.log = [replace(each, sender=name) if each.id == START else each for each in talk.log]

    assert decision(talk).decided_by == ("agent:claude", "human:alice%2Chuman%3Aboss")


@proves("PVP-5.2-1")
def test_the_hash_of_a_tools_output_tells_a_changed_one() -> None:
    def sealed(*texts: str, result: object = None) -> str:
        talk = a_talk()
        talk.says(CLAUDE, proposes(tool_name="write_file"), id="t")
        talk.says(BOB, approves_tool(BOB, "t"))
        for text in texts:
            talk.says(CLAUDE, prints("t", text))
        talk.says(CLAUDE, ToolResult("t", success=True, duration_ms=1, result=result))
        (tool,) = decision(talk).tool_executions
        return tool.output_hash

    assert sealed() == ""
    assert sealed("a", "b").startswith("sha256:")
    assert sealed("a", "b") == sealed("a", "b")
    assert len({sealed("a", "b"), sealed("ab"), sealed("a", "c"), sealed("a", "b", result=1)}) == 4


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


@proves("GIT-MAP-2", "PVP-18.5-1")
def test_a_merge_tells_which_fork_came_back_and_how_conflicts_were_settled() -> None:
    talk = a_talk()
    talk.says(CAROL, adds("plan", "one"), id="c")
    talk.says(CAROL, forks("Try it", BOB, CLAUDE, copy=True), id="f")
    first = decision(talk)
    talk.says(CAROL, updates("plan", "two"), fork="try-it")
    talk.says(CAROL, updates("plan", "three"))
    talk.says(CAROL, merges("try-it"), id="m")
    waiting = decision(talk, first.until)
    settled = (Resolution("plan", "use_source"),)
    talk.says(CAROL, MergeExecute("m", settled), id="x")
    made = decision(talk, first.until)
    alone = decision(talk, waiting.until)

    (asked,), (back,) = waiting.merges, made.merges
    assert (asked.fork, asked.branch, asked.done) == ("try-it", "pvp/try-it", False)
    assert (back.id, back.strategy, back.summary, back.done) == ("m", "append", "It works", True)
    assert back.by == ("human:carol",)
    assert [(each.key, each.resolution) for each in back.settled] == [("plan", "use_source")]
    assert alone.merges == made.merges
    assert "human:carol" in alone.decided_by
    assert made.alternatives_considered == waiting.alternatives_considered == ()
    assert "m" in made.pvp_messages
    assert "x" in made.pvp_messages


def test_a_merge_that_was_refused_is_no_merge() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try", BOB, CLAUDE), id="f")
    talk.says(CLAUDE, merges("try"), id="m")
    talk.says(BOB, rejects_tool(BOB, "m", "Not yet"), id="no")

    assert decision(talk).merges == ()


def test_a_merge_whose_proposal_is_not_for_all_is_not_told() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try", BOB, CLAUDE), id="f")
    talk.says(CAROL, merges("try"), id="m")
    talk.says(CAROL, MergeExecute("m"), id="x")
    records = [each for each in numbered(talk) if each.id != "m"]
    stretch = Stretch(talk.room, "repo")

    found = drafted(stretch, heard(stretch, records), {})

    assert found is not None
    assert found.decision.merges == ()
    assert "x" not in found.decision.pvp_messages
