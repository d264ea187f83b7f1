"""Which tools wait at a gate, and which may be proposed at all."""

import msgspec
import pytest

from accord.core.kernel.authority import Role
from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Why
from accord.core.room.gates import GateOpened
from accord.core.room.grants import ToolCleared
from accord.core.room.naming import called
from accord.core.room.state import Category, House, Risk, Room
from accord.core.room.tools import ToolPropose, ToolProposed
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    after,
    approves,
    configures,
    executes,
    given,
    joined,
    kinds,
    may_run,
    opened,
    prompts,
    proposes,
    refused,
    step,
    waits,
    when,
)
from tests.helpers.tools import meeting
from tests.spec import proves

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
