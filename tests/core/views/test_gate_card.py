"""A gate as one member sees it: rules with their votes, what a yes would do, what is reached."""

from typing import Any

import pytest

from accord.core.kernel.ballot import AllOf, AnyOf, OfRole
from accord.core.kernel.role_permissions import Role
from accord.core.room.shared_context.secrets import SecretShare
from accord.core.room.state import Room
from accord.core.views import gate_card, sessions
from accord.core.views.call_targets import MAX_TARGETS, CallTarget, targets_of
from tests.helpers.room.gate_scenarios import room_with_open_gate
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    create_step,
    gate_approve,
    gate_request,
    given,
    join_step,
    prompt_submit,
    script_step,
    tool_propose,
)

TWO = {"default_gate_quorum": AnyOf(2)}


def card(room: Room, who: str = "alice") -> dict[str, Any]:
    return gate_card.gate_card(room, next(iter(room.gates.values())), who)


def test_each_rule_says_who_approved_and_whose_approval_would_help() -> None:
    room = room_with_open_gate(script_step(BOB, gate_approve(BOB, "p", comment="Fine.")), **TWO)

    seen = card(room)

    (rule,) = seen["rules"]
    assert (rule["count"], rule["approved"], rule["candidates"]) == (2, ["bob"], ["alice"])
    (vote,) = seen["votes"]
    assert (vote["by"], vote["comment"]) == ("bob", "Fine.")
    assert seen["presences"]["alice"] == "active"


def test_a_yes_that_is_enough_leaves_no_rule() -> None:
    assert card(room_with_open_gate())["after_my_yes"] == []


def test_a_yes_that_is_not_enough_says_what_is_left() -> None:
    (left,) = card(room_with_open_gate(**TWO))["after_my_yes"]
    assert left["missing"] == 1


def test_a_yes_that_would_not_count_promises_nothing() -> None:
    seen = card(room_with_open_gate(), "claude")
    assert (seen["may_approve"], seen["after_my_yes"]) == (False, None)


def test_one_person_may_satisfy_several_rules() -> None:
    both = AllOf((OfRole(Role.ADMIN, 1), AnyOf(1)))
    seen = card(room_with_open_gate(default_gate_quorum=both))
    assert (len(seen["rules"]), seen["after_my_yes"]) == (2, [])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "src/a.py", "content": "x"}, [("path", "src/a.py")]),
        ({"command": "curl https://example.org/x"}, [("host", "example.org")]),
        ({"argv": ["git", "push", "origin", "main"]}, [("remote", "origin"), ("branch", "main")]),
        ({"command": "git push --force origin"}, [("remote", "origin")]),
        ({"argv": ["git", "commit"], "tree": "abc"}, [("tree", "abc")]),
        ({"patch": "*** Update File: a.py\n+++ b/b.py\n"}, [("path", "a.py"), ("path", "b.py")]),
        ({"command": "echo http://[broken"}, []),
        ({"path": 3, "argv": "x"}, []),
        ({}, []),
    ],
)
def test_targets_are_what_the_call_names(
    arguments: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert targets_of(arguments) == [CallTarget(*pair) for pair in expected]  # type: ignore[arg-type]


def test_a_card_names_what_the_call_would_reach() -> None:
    call = tool_propose(arguments={"path": "src/a.py"}, requires_approval=True)
    room = room_with_open_gate(script_step(CLAUDE, call, id="w"))
    gate = next(gate for gate in room.gates.values() if gate.action == "w")

    assert gate_card.gate_card(room, gate, "alice")["targets"] == [
        {"kind": "path", "value": "src/a.py", "source": "call", "detail": ""}
    ]


def test_a_call_that_names_very_much_lists_the_first() -> None:
    text = " ".join(f"https://h{number}.example" for number in range(50))
    assert len(targets_of({"command": text})) == MAX_TARGETS


def test_a_card_lists_all_options_with_their_gates_the_first_one_first() -> None:
    other = tool_propose(metadata={"option_of": "p"}, requires_approval=True)
    room = room_with_open_gate(script_step(CLAUDE, other, id="o"))

    gates = list(room.gates.values())
    for gate in gates:
        options = gate_card.gate_card(room, gate, "alice")["options"]
        assert [option["proposal"]["id"] for option in options] == ["p", "o"]
        assert [option["gate"] for option in options] == [gate.id for gate in gates]


def test_secrets_in_the_agents_hands_are_named_to_those_who_know_of_them() -> None:
    share = SecretShare(key="DATABASE_URL", scope=("claude", "bob"), value_ref="postgres://x")
    room = room_with_open_gate(join_step(CAROL, Role.APPROVER), script_step(ALICE, share, id="s"))

    (target,) = card(room, "bob")["targets"]
    assert (target["kind"], target["value"], target["source"]) == (
        "secret",
        "DATABASE_URL",
        "session",
    )
    assert card(room, "carol")["targets"] == []
    detail = gate_card.with_cards(sessions.session_detail(room, "bob"), room, "bob")
    assert [secret["key"] for secret in detail["secrets"]] == ["DATABASE_URL"]
    assert "postgres" not in str(detail)
    hidden = gate_card.with_cards(sessions.session_detail(room, "carol"), room, "carol")
    assert hidden["secrets"] == []


def test_who_is_no_member_gets_no_cards() -> None:
    room = room_with_open_gate()
    detail = gate_card.with_cards(sessions.session_detail(room, "mallory"), room, "mallory")
    assert (detail["gates"], detail["secrets"]) == ([], [])


def test_a_gate_about_something_else_has_no_targets_and_no_options() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(BOB, Role.DRIVER, Role.APPROVER),
        join_step(CLAUDE, Role.DRIVER),
        script_step(BOB, prompt_submit(), id="q"),
        script_step(BOB, gate_request("q"), id="g"),
    )
    seen = card(room)
    assert (seen["targets"], seen["options"]) == ([], [])
