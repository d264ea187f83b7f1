"""Which tools wait at a gate, and which may be proposed at all."""

import msgspec
import pytest

from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.gates import GateOpened, possible_categories
from accord.core.room.approval.grants import ToolCleared
from accord.core.room.approval.tool_proposals import ToolPropose, ToolProposed
from accord.core.room.room_settings import Category, ServerPolicy
from accord.core.room.state import Risk, Room
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    after,
    create_step,
    expect_refusal,
    gate_approve,
    given,
    has_grant,
    has_open_gate,
    join_step,
    prompt_submit,
    script_step,
    session_config_update,
    tool_execute,
    tool_propose,
    types_of,
    when,
)
from tests.helpers.room.tool_scenarios import room_with_two_agents
from tests.spec import proves

# What needs a gate


@proves("PVP-6.2-9", "PVP-13.2-1", "OPEN-21")
@pytest.mark.parametrize("category", Category)
def test_a_category_that_is_listed_is_gated(category: Category) -> None:
    listed = room_with_two_agents(require_approval_for=(category,))

    facts = when(listed, CLAUDE, tool_propose(category=category))

    assert [ToolProposed, GateOpened] == types_of(facts)


@proves("OPEN-21", "PVP-13.2-2", "OPEN-22")
@pytest.mark.parametrize("category", sorted(set(Category) - {Category.ALL}))
def test_a_category_that_is_not_listed_goes_straight_to_execute(category: Category) -> None:
    others = tuple(each for each in Category if each not in {category, Category.ALL})

    facts = when(
        room_with_two_agents(require_approval_for=others), CLAUDE, tool_propose(category=category)
    )

    assert [ToolProposed, ToolCleared] == types_of(facts)
    assert isinstance(facts[1], ToolCleared)
    assert facts[1].said.approved_by == ()
    assert facts.records[1].sender == "system"


@proves("PVP-6.2-9", "OPEN-21")
@pytest.mark.parametrize("category", Category)
def test_all_covers_every_category(category: Category) -> None:
    facts = when(
        room_with_two_agents(require_approval_for=(Category.ALL,)),
        CLAUDE,
        tool_propose(category=category),
    )

    assert GateOpened in types_of(facts)


@proves("OPEN-21")
def test_a_tool_of_the_category_all_is_gated_whatever_is_listed() -> None:
    facts = when(
        room_with_two_agents(require_approval_for=()), CLAUDE, tool_propose(category=Category.ALL)
    )

    assert GateOpened in types_of(facts)


@proves("PVP-20.4-1", "OPEN-21")
@pytest.mark.parametrize(
    ("risk", "gated"),
    [(Risk.LOW, False), (Risk.MEDIUM, False), (Risk.HIGH, True), (Risk.CRITICAL, True)],
)
def test_a_risky_tool_waits_for_approval_whatever_the_config_says(risk: Risk, gated: bool) -> None:
    facts = when(room_with_two_agents(require_approval_for=()), CLAUDE, tool_propose(risk=risk))

    assert (GateOpened in types_of(facts)) is gated


@proves("OPEN-21")
def test_an_agent_can_ask_for_a_gate_and_cannot_wave_one_away() -> None:
    free, strict = room_with_two_agents(require_approval_for=()), room_with_two_agents()

    raised = when(free, CLAUDE, tool_propose(requires_approval=True))
    waved = when(strict, CLAUDE, tool_propose(requires_approval=False))

    assert GateOpened in types_of(raised)
    assert GateOpened in types_of(waved)


@proves("OPEN-21")
@pytest.mark.parametrize(
    "room", [room_with_two_agents(), room_with_two_agents(require_approval_for=())]
)
@pytest.mark.parametrize("claim", [True, False])
def test_published_proposal_shows_whether_the_server_gated_it(room: Room, claim: bool) -> None:
    facts = when(room, CLAUDE, tool_propose(requires_approval=claim))

    assert isinstance(facts[0], ToolProposed)
    assert facts[0].said.requires_approval is (GateOpened in types_of(facts))


@proves("OPEN-36")
def test_a_retry_is_known_as_one_though_the_server_set_a_field() -> None:
    ask = tool_propose(requires_approval=False)

    (proposed, _) = when(room_with_two_agents(), CLAUDE, ask)

    assert isinstance(proposed, ToolProposed)
    assert proposed.said != ask
    assert ask.is_retry_of(proposed.said)
    assert not tool_propose(arguments={}).is_retry_of(proposed.said)
    assert not ask.is_retry_of(prompt_submit())


@proves("OPEN-21")
@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("bash", Category.SHELL_EXECUTE),
        ("BASH", Category.SHELL_EXECUTE),
        (" shell ", Category.SHELL_EXECUTE),
        ("execute_shell_command", Category.SHELL_EXECUTE),
        ("run_shell_command", Category.SHELL_EXECUTE),
        ("write_file", Category.FILE_WRITE),
        ("Write", Category.FILE_WRITE),
        ("MultiEdit", Category.FILE_WRITE),
        ("replace", Category.FILE_WRITE),
        ("file_edit", Category.FILE_WRITE),
        ("delete_file", Category.FILE_DELETE),
        ("deploy", Category.DEPLOY),
        ("secret_access", Category.SECRET_ACCESS),
    ],
)
def test_a_tool_whose_name_gives_it_away_is_gated_as_what_it_is(name: str, truth: Category) -> None:
    room = room_with_two_agents(require_approval_for=(truth,))

    lie = tool_propose(tool_name=name, category=Category.FILE_READ)

    assert GateOpened in types_of(when(room, CLAUDE, lie))


@proves("OPEN-21")
def test_of_two_categories_the_stricter_one_wins() -> None:
    room = room_with_two_agents(require_approval_for=(Category.NETWORK_REQUEST,))

    modest = tool_propose(tool_name="file_read", category=Category.NETWORK_REQUEST)

    assert GateOpened in types_of(when(room, CLAUDE, modest))


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
def test_disguised_shell_names_are_gated_as_shell(name: str) -> None:
    assert possible_categories(name, Category.FILE_READ) == {
        Category.FILE_READ,
        Category.SHELL_EXECUTE,
    }


@pytest.mark.parametrize("name", ["ba\u200bsh", "sh\x1b[2J", "a\u202eb"])
def test_tool_name_with_unprintable_characters_is_refused(name: str) -> None:
    room = given(create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER))

    with expect_refusal(Reason.MALFORMED, "unprintable"):
        when(room, CLAUDE, msgspec.structs.replace(tool_propose(), tool_name=name), id="p")


def test_a_deployment_under_another_name_is_gated_as_a_deployment() -> None:
    facts = when(
        room_with_two_agents(),
        CLAUDE,
        tool_propose(tool_name="deploy", category=Category.FILE_WRITE),
    )

    assert isinstance(facts[1], GateOpened)
    assert facts[1].said.action_type == "deploy"


@proves("OPEN-21")
def test_suggested_approvers_are_a_hint_and_no_quorum() -> None:
    room = room_with_two_agents(
        join_step(BOB, Role.APPROVER),
        script_step(CLAUDE, tool_propose(suggested=("bob",)), id="p"),
        script_step(ALICE, gate_approve(ALICE, "p")),
    )

    assert has_grant(room, "p")


@proves("OPEN-26")
def test_rules_that_change_later_do_not_open_a_gate_on_what_may_run() -> None:
    room = room_with_two_agents(
        script_step(CLAUDE, tool_propose(category=Category.FILE_READ), id="p"),
        script_step(ALICE, session_config_update(require_approval_for=["all"])),
        script_step(CLAUDE, tool_execute("p")),
    )

    assert not has_open_gate(room, "p")


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

    assert msgspec.to_builtins(tool_propose()) == whole
    assert msgspec.convert(whole | {"suggested_approvers": ["bob"]}, ToolPropose) == tool_propose(
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
        msgspec.convert(msgspec.to_builtins(tool_propose()) | {field: word}, ToolPropose)


@proves("OPEN-10", "OPEN-11")
def test_only_an_agent_proposes_and_only_for_itself() -> None:
    with expect_refusal(Reason.FORBIDDEN, "act as an agent"):
        when(room_with_two_agents(), ALICE, tool_propose(ALICE))
    with expect_refusal(Reason.CLAIM_MISMATCH):
        when(room_with_two_agents(), CODEX, tool_propose(CLAUDE))


def test_a_room_has_a_bounded_number_of_open_proposals() -> None:
    room = room_with_two_agents(script_step(CLAUDE, tool_propose(), id="p"))

    with expect_refusal(Reason.WRONG_STATE, "1 proposals are open"):
        when(room, CODEX, tool_propose(CODEX), policy=ServerPolicy(limits=Limits(tools=1)))


ONLY_TESTS = when(
    room_with_two_agents(), ALICE, prompt_submit(tools=("run_tests",)), id="q"
).records
NO_TOOLS = when(room_with_two_agents(), ALICE, prompt_submit(tools=()), id="q").records
ANY_TOOL = when(room_with_two_agents(), ALICE, prompt_submit(), id="q").records


def test_a_prompt_may_say_which_tools_its_answer_may_use() -> None:
    """OPEN-43."""
    allowed = when(room_with_two_agents(), CLAUDE, tool_propose(), ref="q", known=ONLY_TESTS)
    unrestricted = when(
        room_with_two_agents(), CLAUDE, tool_propose(tool_name="x"), ref="q", known=ANY_TOOL
    )

    assert isinstance(allowed[0], ToolProposed)
    assert isinstance(unrestricted[0], ToolProposed)
    with expect_refusal(Reason.WRONG_STATE, "The prompt allows only run_tests, not bash"):
        when(
            room_with_two_agents(),
            CLAUDE,
            tool_propose(tool_name="bash"),
            ref="q",
            known=ONLY_TESTS,
        )
    with expect_refusal(Reason.WRONG_STATE, "The prompt allows no tools"):
        when(room_with_two_agents(), CLAUDE, tool_propose(), ref="q", known=NO_TOOLS)


def test_a_proposal_may_answer_something_else_than_a_prompt() -> None:
    earlier = when(room_with_two_agents(), CODEX, tool_propose(CODEX), id="c").records

    facts = when(room_with_two_agents(), CLAUDE, tool_propose(), id="p", ref="c", known=earlier)

    assert after(room_with_two_agents(), facts).tools["p"].prompt == "c"
