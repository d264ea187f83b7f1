"""Grants: leave to run exactly one thing, once, until it expires."""

from hashlib import sha256
from typing import Any

import pytest
import rfc8785
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.grants import ToolCleared, canonical_bytes, grant_digest
from accord.core.room.room_settings import Category, ServerPolicy
from accord.core.room.state import Grant, Risk, ToolProposal
from tests.helpers.room.scenario import (
    ALICE,
    CLAUDE,
    T0,
    create_step,
    expect_refusal,
    gate_approve,
    given,
    grant_of,
    join_step,
    script_step,
    seconds_after_start,
    tool_propose,
    when,
)
from tests.spec import proves

UNTIL = "2026-01-30T21:00:00.000Z"


def tool(name: str = "run_tests", id: str = "p", **arguments: Any) -> ToolProposal:
    return ToolProposal(id, "claude", name, Category.SHELL_EXECUTE, Risk.LOW, "", arguments)


@proves("PVP-13.3-1")
def test_a_grant_binds_name_arguments_session_proposal_and_expiry() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(tool_name="run", arguments={"n": 1}), id="p"),
        script_step(ALICE, gate_approve(ALICE, "p")),
    )
    bound: Any = {
        "tool_name": "run",
        "arguments": {"n": 1},
        "session": "r",
        "proposal": "p",
        "expires_at": UNTIL,
    }

    grant = grant_of(room, "p")

    assert grant == Grant(grant.id, sha256(rfc8785.dumps(bound)).hexdigest(), UNTIL)
    assert room.tools["p"].expires_at == seconds_after_start(3600)


def test_the_house_says_how_long_a_grant_lasts() -> None:
    room = given(create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER))

    facts = when(
        room,
        CLAUDE,
        tool_propose(category=Category.FILE_READ),
        policy=ServerPolicy(grant_seconds=60),
    )

    assert isinstance(facts[1], ToolCleared)
    assert facts[1].expires_at == seconds_after_start(60)
    assert facts[1].said.grant is not None
    assert facts[1].said.grant.expires_at == "2026-01-30T20:01:00.000Z"


def test_each_proposal_has_a_grant_of_its_own() -> None:
    room = given(
        create_step(by=ALICE),
        join_step(CLAUDE, Role.DRIVER),
        script_step(CLAUDE, tool_propose(category=Category.FILE_READ), id="p", at=T0),
        script_step(CLAUDE, tool_propose(category=Category.FILE_READ), id="p2", at=T0),
    )

    one, other = grant_of(room, "p"), grant_of(room, "p2")

    assert one.id != other.id
    assert one.digest != other.digest


def test_the_digest_changes_with_everything_that_it_binds() -> None:
    same = grant_digest(tool(a=1), "r", UNTIL)

    others = {
        grant_digest(tool(a=2), "r", UNTIL),
        grant_digest(tool(b=1), "r", UNTIL),
        grant_digest(tool(a=1, b=1), "r", UNTIL),
        grant_digest(tool("other", a=1), "r", UNTIL),
        grant_digest(tool(id="p2", a=1), "r", UNTIL),
        grant_digest(tool(a=1), "r2", UNTIL),
        grant_digest(tool(a=1), "r", "2026-01-30T21:00:00.001Z"),
    }

    assert same == grant_digest(tool(a=1), "r", UNTIL)
    assert len(others) == 7
    assert same not in others


json = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
arguments = st.dictionaries(st.text(max_size=3), json, max_size=3)


def written(value: Any) -> str:
    """Apart from the order of keys: what tells two values apart, true from 1 included."""
    if isinstance(value, dict):
        return f"object {sorted((key, written(inner)) for key, inner in value.items())}"
    return repr([written(inner) for inner in value]) if isinstance(value, list) else repr(value)


@drawn(one=arguments, other=arguments)
@settings(max_examples=60, deadline=None)
def test_other_arguments_have_another_digest(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = replace(tool(), arguments=one), replace(tool(), arguments=other)

    same = grant_digest(first, "r", UNTIL) == grant_digest(second, "r", UNTIL)

    assert same is (written(one) == written(other))


@drawn(said=arguments)
@settings(max_examples=30, deadline=None)
def test_the_order_of_keys_does_not_matter(said: dict[str, Any]) -> None:
    turned = dict(reversed(said.items()))

    assert canonical_bytes("t", said, "r", "p", UNTIL) == canonical_bytes(
        "t", turned, "r", "p", UNTIL
    )


deep: dict[str, Any] = {}
for _ in range(100_000):
    deep = {"a": deep}


@pytest.mark.parametrize(
    "bad",
    [
        {"n": 2**53},
        {"n": -(2**53)},
        {"n": float("nan")},
        {"n": float("inf")},
        {"s": "\ud800"},
        {"\ud800": 1},
        deep,
    ],
    ids=["large", "small", "nan", "infinite", "surrogate", "surrogate key", "deep"],
)
def test_arguments_without_an_exact_form_are_refused_before_anybody_approves_them(
    bad: dict[str, Any],
) -> None:
    room = given(create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER))

    with expect_refusal(Reason.MALFORMED, "arguments have no canonical form"):
        when(room, CLAUDE, tool_propose(arguments=bad))
