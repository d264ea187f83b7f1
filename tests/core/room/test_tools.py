"""Tools: what needs a gate, and who may run what."""

from typing import Any

import msgspec
import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.ballot import AnyOf, Named
from accord.core.kernel.limits import Limits
from accord.core.kernel.log import Fact, Failure, Say
from accord.core.kernel.refusal import Why
from accord.core.room import deadlines
from accord.core.room.gates import GateOpened
from accord.core.room.grants import ToolCleared, ToolExecute
from accord.core.room.members import SessionLeave
from accord.core.room.naming import called
from accord.core.room.state import Category, Grant, House, Risk, Room
from accord.core.room.tools import (
    ToolApprove,
    ToolExpired,
    ToolFinished,
    ToolOutput,
    ToolPrinted,
    ToolPropose,
    ToolProposed,
    ToolResult,
    ToolStarted,
)
from accord.core.room.votes import Approved, GatePassed
from accord.core.room.waiting import ToolReject
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    HOUSE,
    Step,
    after,
    after_seconds,
    approves,
    approves_tool,
    configures,
    ends,
    executes,
    finishes,
    gate_on,
    given,
    grant_of,
    joined,
    kinds,
    may_run,
    opened,
    prints,
    prompts,
    proposes,
    refused,
    rejects,
    rejects_tool,
    says,
    step,
    ticks,
    waits,
    when,
)
from tests.spec import proves

HOUR = 3600


def meeting(*script: Step, **config: Any) -> Room:
    """Alice is admin; Claude and Codex drive."""
    return given(
        opened(by=ALICE, **config),
        joined(CLAUDE, Role.DRIVER),
        joined(CODEX, Role.DRIVER),
        *script,
    )


def approved(*script: Step) -> Room:
    """Claude's proposal `p` was approved."""
    return meeting(step(CLAUDE, proposes(), id="p"), step(ALICE, approves(ALICE, "p")), *script)


# What needs a gate


@proves("PVP-6.2-9", "PVP-13.2-1", "OPEN-21")
@pytest.mark.parametrize("category", Category)
def test_a_category_that_is_listed_is_gated(category: Category) -> None:
    listed = meeting(require_approval_for=(category,))

    facts = when(listed, CLAUDE, proposes(category=category))

    assert [ToolProposed, GateOpened] == kinds(facts)


@proves("OPEN-21", "PVP-13.2-2", "OPEN-22")
@pytest.mark.parametrize("category", sorted(set(Category) - {Category.ALL}))
def test_a_category_that_is_not_listed_goes_straight_to_execute(category: Category) -> None:
    others = tuple(each for each in Category if each not in {category, Category.ALL})

    facts = when(meeting(require_approval_for=others), CLAUDE, proposes(category=category))

    assert [ToolProposed, ToolCleared] == kinds(facts)
    assert isinstance(facts[1], ToolCleared)
    assert facts[1].said.approved_by == ()
    assert facts.records[1].sender == "system"


@proves("PVP-6.2-9", "OPEN-21")
@pytest.mark.parametrize("category", Category)
def test_all_covers_every_category(category: Category) -> None:
    facts = when(meeting(require_approval_for=(Category.ALL,)), CLAUDE, proposes(category=category))

    assert GateOpened in kinds(facts)


@proves("OPEN-21")
def test_a_tool_of_the_category_all_is_gated_whatever_is_listed() -> None:
    facts = when(meeting(require_approval_for=()), CLAUDE, proposes(category=Category.ALL))

    assert GateOpened in kinds(facts)


@proves("PVP-20.4-1", "OPEN-21")
@pytest.mark.parametrize(
    ("risk", "gated"),
    [(Risk.LOW, False), (Risk.MEDIUM, False), (Risk.HIGH, True), (Risk.CRITICAL, True)],
)
def test_a_risky_tool_waits_for_approval_whatever_the_config_says(risk: Risk, gated: bool) -> None:
    facts = when(meeting(require_approval_for=()), CLAUDE, proposes(risk=risk))

    assert (GateOpened in kinds(facts)) is gated


@proves("OPEN-21")
def test_an_agent_can_ask_for_a_gate_and_cannot_wave_one_away() -> None:
    free, strict = meeting(require_approval_for=()), meeting()

    raised = when(free, CLAUDE, proposes(requires_approval=True))
    waved = when(strict, CLAUDE, proposes(requires_approval=False))

    assert GateOpened in kinds(raised)
    assert GateOpened in kinds(waved)


@proves("OPEN-21")
@pytest.mark.parametrize("room", [meeting(), meeting(require_approval_for=())])
@pytest.mark.parametrize("claim", [True, False])
def test_the_room_is_told_what_the_server_found(room: Room, claim: bool) -> None:
    facts = when(room, CLAUDE, proposes(requires_approval=claim))

    assert isinstance(facts[0], ToolProposed)
    assert facts[0].said.requires_approval is (GateOpened in kinds(facts))


@proves("OPEN-36")
def test_a_retry_is_known_as_one_though_the_server_set_a_field() -> None:
    ask = proposes(requires_approval=False)

    (proposed, _) = when(meeting(), CLAUDE, ask)

    assert isinstance(proposed, ToolProposed)
    assert proposed.said != ask
    assert ask.repeats(proposed.said)
    assert not proposes(arguments={}).repeats(proposed.said)
    assert not ask.repeats(prompts())


@proves("OPEN-21")
@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("bash", Category.SHELL_EXECUTE),
        ("BASH", Category.SHELL_EXECUTE),
        (" shell ", Category.SHELL_EXECUTE),
        ("execute_shell_command", Category.SHELL_EXECUTE),
        ("write_file", Category.FILE_WRITE),
        ("file_edit", Category.FILE_WRITE),
        ("delete_file", Category.FILE_DELETE),
        ("deploy", Category.DEPLOY),
        ("secret_access", Category.SECRET_ACCESS),
    ],
)
def test_a_tool_whose_name_gives_it_away_is_gated_as_what_it_is(name: str, truth: Category) -> None:
    room = meeting(require_approval_for=(truth,))

    lie = proposes(tool_name=name, category=Category.FILE_READ)

    assert GateOpened in kinds(when(room, CLAUDE, lie))


@proves("OPEN-21")
def test_of_two_categories_the_stricter_one_wins() -> None:
    room = meeting(require_approval_for=(Category.NETWORK_REQUEST,))

    modest = proposes(tool_name="file_read", category=Category.NETWORK_REQUEST)

    assert GateOpened in kinds(when(room, CLAUDE, modest))


@pytest.mark.parametrize(
    "name",
    [
        "ｂａｓｈ",
        "/bin/bash",
        "C:\\Windows\\CMD.EXE",
        "b ash",
        "zsh/",
        "pwsh",
        "bash -c",
        "Python3 -c x",
    ],
)
def test_no_disguise_makes_a_shell_something_else(name: str) -> None:
    assert called(name, Category.FILE_READ) == {Category.FILE_READ, Category.SHELL_EXECUTE}


@pytest.mark.parametrize("name", ["ba\u200bsh", "sh\x1b[2J", "a\u202eb"])
def test_a_tools_name_can_be_shown(name: str) -> None:
    room = given(opened(by=ALICE), joined(CLAUDE, Role.DRIVER))

    with refused(Why.MALFORMED, "cannot be shown"):
        when(room, CLAUDE, msgspec.structs.replace(proposes(), tool_name=name), id="p")


def test_a_deployment_under_another_name_is_gated_as_a_deployment() -> None:
    facts = when(meeting(), CLAUDE, proposes(tool_name="deploy", category=Category.FILE_WRITE))

    assert isinstance(facts[1], GateOpened)
    assert facts[1].said.action_type == "deploy"


@proves("OPEN-21")
def test_suggested_approvers_are_a_hint_and_no_quorum() -> None:
    room = meeting(
        joined(BOB, Role.APPROVER),
        step(CLAUDE, proposes(suggested=("bob",)), id="p"),
        step(ALICE, approves(ALICE, "p")),
    )

    assert may_run(room, "p")


@proves("OPEN-26")
def test_rules_that_change_later_do_not_open_a_gate_on_what_may_run() -> None:
    room = meeting(
        step(CLAUDE, proposes(category=Category.FILE_READ), id="p"),
        step(ALICE, configures(require_approval_for=["all"])),
        step(CLAUDE, executes("p")),
    )

    assert not waits(room, "p")


# Proposing


@proves("PVP-13.1-1", "PVP-13.1-2")
def test_a_proposal_is_written_as_the_specification_has_it() -> None:
    whole = {
        "tool_name": "run_tests",
        "arguments": {"argv": ["make", "test"]},
        "agent": "claude",
        "risk_level": "low",
        "description": "to see whether it works",
        "requires_approval": False,
        "category": "shell_execute",
    }

    assert msgspec.to_builtins(proposes()) == whole
    assert msgspec.convert(whole | {"suggested_approvers": ["bob"]}, ToolPropose) == proposes(
        suggested=("bob",)
    )
    for field in whole:
        with pytest.raises(msgspec.ValidationError, match=field):
            msgspec.convert({k: v for k, v in whole.items() if k != field}, ToolPropose)
    assert {risk.value for risk in Risk} == {"low", "medium", "high", "critical"}


@proves("PVP-20.4-3")
@pytest.mark.parametrize("field", ["risk_level", "category"])
@pytest.mark.parametrize("word", ["", "harmless", None])
def test_an_agent_must_say_how_dangerous_its_tool_is_and_of_which_kind(
    field: str, word: str | None
) -> None:
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert(msgspec.to_builtins(proposes()) | {field: word}, ToolPropose)


@proves("OPEN-10", "OPEN-11")
def test_only_an_agent_proposes_and_only_for_itself() -> None:
    with refused(Why.FORBIDDEN, "act as an agent"):
        when(meeting(), ALICE, proposes(ALICE))
    with refused(Why.CLAIM_MISMATCH):
        when(meeting(), CODEX, proposes(CLAUDE))


def test_a_room_has_a_bounded_number_of_open_proposals() -> None:
    room = meeting(step(CLAUDE, proposes(), id="p"))

    with refused(Why.WRONG_STATE, "1 proposals are open"):
        when(room, CODEX, proposes(CODEX), house=House(limits=Limits(tools=1)))


ONLY_TESTS = when(meeting(), ALICE, prompts(tools=("run_tests",)), id="q").records
NO_TOOLS = when(meeting(), ALICE, prompts(tools=()), id="q").records
ANY_TOOL = when(meeting(), ALICE, prompts(), id="q").records


def test_a_prompt_may_say_which_tools_its_answer_may_use() -> None:
    """OPEN-43."""
    allowed = when(meeting(), CLAUDE, proposes(), ref="q", known=ONLY_TESTS)
    unrestricted = when(meeting(), CLAUDE, proposes(tool_name="x"), ref="q", known=ANY_TOOL)

    assert isinstance(allowed[0], ToolProposed)
    assert isinstance(unrestricted[0], ToolProposed)
    with refused(Why.WRONG_STATE, "The prompt allows run_tests; bash is not it"):
        when(meeting(), CLAUDE, proposes(tool_name="bash"), ref="q", known=ONLY_TESTS)
    with refused(Why.WRONG_STATE, "The prompt allows no tools"):
        when(meeting(), CLAUDE, proposes(), ref="q", known=NO_TOOLS)


def test_a_proposal_may_answer_something_else_than_a_prompt() -> None:
    earlier = when(meeting(), CODEX, proposes(CODEX), id="c").records

    facts = when(meeting(), CLAUDE, proposes(), id="p", ref="c", known=earlier)

    assert after(meeting(), facts).tools["p"].prompt == "c"


# Executing


@proves("PVP-13-1", "PVP-13.3-1", "OPEN-22")
def test_a_tool_goes_from_proposal_through_gate_and_execution_to_its_result() -> None:
    room, happened = meeting(), list[type[Fact]]()
    for actor, body in [
        (CLAUDE, proposes()),
        (ALICE, approves_tool(ALICE, "p")),
        (CLAUDE, executes("p")),
        (CLAUDE, prints("p")),
        (CLAUDE, finishes("p")),
    ]:
        facts = when(room, actor, body, id="p" if isinstance(body, ToolPropose) else None)
        happened += kinds(facts)
        room = after(room, facts)

    assert [
        *(ToolProposed, GateOpened),
        *(Approved, GatePassed, ToolCleared),
        *(ToolStarted, ToolPrinted, ToolFinished),
    ] == happened
    assert (room.tools, room.past["p"]) == ({}, "finished")


@proves("OPEN-22")
def test_an_agents_own_execute_is_not_repeated_to_the_room() -> None:
    (started,) = when(approved(), CLAUDE, executes("p"))

    assert isinstance(started, ToolStarted)
    assert started.to == frozenset({"claude"})


@proves("OPEN-22")
def test_who_approved_is_for_the_server_to_say() -> None:
    lie = ToolExecute(tool_proposal="p", approved_by=("bob", "carol"))

    (started,) = when(approved(), CLAUDE, lie)

    assert isinstance(started, ToolStarted)
    assert started.said.approved_by == ()
    assert lie.repeats(started.said)
    assert not executes("p2").repeats(started.said)
    assert not lie.repeats(prompts())


@proves("OPEN-22")
@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_nothing_happens_before_the_approval(use: Any) -> None:
    room = meeting(step(CLAUDE, proposes(), id="p"))

    with refused(Why.WRONG_STATE, "p is not approved yet"):
        when(room, CLAUDE, use("p"))


@proves("OPEN-22", "OPEN-25")
@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_nothing_happens_after_a_rejection(use: Any) -> None:
    room = meeting(step(CLAUDE, proposes(), id="p"), step(ALICE, rejects(ALICE, "p")))

    with refused(Why.GATE_FAILED, "p was rejected"):
        when(room, CLAUDE, use("p"))


@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_nothing_happens_to_what_was_never_proposed(use: Any) -> None:
    with refused(Why.UNKNOWN, "no open proposal x"):
        when(meeting(), CLAUDE, use("x"))


@proves("OPEN-22")
def test_a_grant_is_used_once() -> None:
    started = approved(step(CLAUDE, executes("p")))

    with refused(Why.WRONG_STATE, "used already"):
        when(started, CLAUDE, executes("p"))


@proves("PVP-13.2-2")
def test_an_agent_need_not_confirm_that_it_begins() -> None:
    assert [ToolFinished] == kinds(when(approved(), CLAUDE, finishes("p")))


@proves("OPEN-10")
@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_nobody_runs_another_agents_tool(use: Any) -> None:
    with refused(Why.FORBIDDEN, "p was proposed by claude"):
        when(approved(), CODEX, use("p"))


@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_a_result_is_the_end(use: Any) -> None:
    room = approved(step(CLAUDE, finishes("p")))

    with refused(Why.WRONG_STATE, "p is over: finished"):
        when(room, CLAUDE, use("p"))


def test_an_agent_that_comes_back_finds_its_tools_abandoned() -> None:
    room = approved(step(CLAUDE, SessionLeave()), joined(CLAUDE, Role.DRIVER))

    with refused(Why.WRONG_STATE, "p is over: abandoned"):
        when(room, CLAUDE, finishes("p"))


@proves("OPEN-27")
def test_no_tool_outlives_its_session() -> None:
    room = approved(step(ALICE, ends()))

    assert room.tools == {}
    with refused(Why.ENDED):
        when(room, CLAUDE, finishes("p"))


def test_a_failure_is_a_result_too() -> None:
    room = approved()

    room = after(room, when(room, CLAUDE, finishes("p", success=False)))

    assert room.past["p"] == "finished"


@proves("PVP-13.3-2")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_streams_while_the_tool_runs_and_leaves_no_mark_on_the_room(stream: Any) -> None:
    room = approved(step(CLAUDE, executes("p")))
    body = ToolOutput(tool_proposal="p", stream=stream, text="ok\n", complete=False)

    facts = when(room, CLAUDE, body)

    assert facts == [ToolPrinted(said=body)]
    assert after(room, facts) is room


@proves("PVP-13.3-3")
def test_a_result_is_written_as_the_specification_has_it() -> None:
    whole = {"tool_proposal": "p", "success": True, "duration_ms": 12}

    assert msgspec.to_builtins(finishes("p")) == whole
    for result in ({"exit": 0}, [1, "a"], "text", 3, False):
        assert msgspec.convert(whole | {"result": result}, ToolResult).result == result
    assert msgspec.convert(whole | {"error": "Oh"}, ToolResult).error == "Oh"
    assert msgspec.convert(whole | {"duration_ms": 0}, ToolResult).duration_ms == 0
    for field in whole:
        with pytest.raises(msgspec.ValidationError, match=field):
            msgspec.convert({k: v for k, v in whole.items() if k != field}, ToolResult)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(whole | {"duration_ms": -1}, ToolResult)


@proves("OPEN-3")
def test_votes_on_tools_are_written_as_clients_write_them() -> None:
    yes = {"tool_proposal": "p", "approver": "alice", "comment": "Good"}
    no = {"tool_proposal": "p", "rejector": "alice", "reason": "No", "suggestion": "Try -n"}

    assert msgspec.to_builtins(msgspec.convert(yes, ToolApprove)) == yes
    assert msgspec.to_builtins(msgspec.convert(no, ToolReject)) == no
    assert msgspec.to_builtins(approves_tool(ALICE, "p")).keys() == {"tool_proposal", "approver"}
    assert rejects_tool(ALICE, "p").suggestion is None


# With a grant in hand


def test_the_grant_that_was_given_may_be_shown_whole_or_by_its_id() -> None:
    room = approved()
    grant = grant_of(room, "p")

    assert [ToolStarted] == kinds(when(room, CLAUDE, executes("p", grant)))
    for shown in (grant, grant.id, None):
        assert [ToolPrinted] == kinds(when(room, CLAUDE, prints("p", grant=shown)))
        assert [ToolFinished] == kinds(when(room, CLAUDE, finishes("p", grant=shown)))


def test_another_grant_than_the_one_given_is_refused() -> None:
    room = approved(step(CLAUDE, proposes(), id="p2"), step(ALICE, approves(ALICE, "p2")))
    mine, other = grant_of(room, "p"), grant_of(room, "p2")
    forged = Grant(id=mine.id, digest="0" * 64, expires_at=mine.expires_at)

    for wrong in (other, forged):
        with refused(Why.GATE_FAILED, "not the grant that p was given"):
            when(room, CLAUDE, executes("p", wrong))
    for shown in (other, forged, other.id, "nonsense"):
        with refused(Why.GATE_FAILED):
            when(room, CLAUDE, prints("p", grant=shown))
        with refused(Why.GATE_FAILED):
            when(room, CLAUDE, finishes("p", grant=shown))


@pytest.mark.parametrize("use", [executes, prints, finishes])
def test_a_grant_is_dead_at_the_instant_it_expires(use: Any) -> None:
    room = approved()

    assert when(room, CLAUDE, use("p"), at=after_seconds(HOUR) - 1)
    with refused(Why.GATE_FAILED, "expired; propose again"):
        when(room, CLAUDE, use("p"), at=after_seconds(HOUR))


def test_a_grant_that_ran_out_is_cleared_away_and_the_room_told() -> None:
    room = approved()

    assert list(deadlines(room, HOUSE)) == [after_seconds(HOUR)]
    assert ticks(room, after_seconds(HOUR) - 1) == []
    facts = ticks(room, after_seconds(HOUR))

    assert [ToolExpired, Say] == kinds(facts)
    (news,) = says(facts)
    assert isinstance(news.body, Failure)
    assert (news.body.why, news.body.related_to) == (Why.GATE_FAILED, "p")
    room = after(room, facts)
    assert room.tools == {}
    with refused(Why.GATE_FAILED, "p was expired"):
        when(room, CLAUDE, finishes("p"))


def test_a_proposal_that_waits_for_approval_has_no_grant_to_run_out() -> None:
    waiting = meeting(step(CLAUDE, proposes(), id="p"), default_gate_quorum=Named(("bob",)))
    timeless = given(step(ALICE, approves(ALICE, "p")), room=waiting)

    assert ToolExpired not in kinds(ticks(timeless, after_seconds(HOUR * 24)))


# Folding what is no longer there


def test_a_fact_about_a_tool_that_is_gone_changes_nothing_but_its_outcome() -> None:
    room = approved()
    started = when(room, CLAUDE, executes("p"))
    gone = given(step(CLAUDE, finishes("p")), room=room)

    assert after(gone, started) == gone


def test_a_passed_gate_clears_its_tool_and_no_other() -> None:
    room = meeting(
        step(CLAUDE, proposes(), id="p"),
        step(CODEX, proposes(CODEX), id="c"),
        default_gate_quorum=AnyOf(1),
    )
    gate = gate_on(room, "c").id

    facts = when(room, ALICE, approves(ALICE, gate))

    assert GatePassed in kinds(facts)
    room = after(room, facts)
    assert may_run(room, "c")
    assert waits(room, "p")
