"""Who may see a record: the room, a fork, or those it is for. One rule, asked everywhere."""

from typing import Any

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from accord.core.dialects.stored_records import EVENTS, decode_record, encode_record
from accord.core.kernel.messages import MemberIds
from accord.core.kernel.records import Event, Record
from accord.core.kernel.role_permissions import Role
from accord.core.room import CONTEXT
from accord.core.room.conversation.interrupts import InterruptRaise
from accord.core.room.conversation.responses import ResponseStart
from accord.core.room.conversation.thinking import ThinkingStart
from accord.core.room.forking.fork_state import Fork
from accord.core.room.forking.forks import ForkCreate, ForkSwitch
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.shared_context.secrets import SecretShare
from accord.core.room.state import Presence, Room, Urgency
from accord.core.room.visibility import record_audience
from tests.core.dialects.envelopes import QUICK, records
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    DAVE,
    STREAM,
    Step,
    create_step,
    given,
    join_step,
    presence_step,
    prompt_submit,
    role_change,
    script_step,
    session_config_update,
    session_end,
    tool_execute,
    tool_propose,
    when,
)
from tests.spec import proves

R = Role
# About a fork, and yet for the whole room (or for those whom `to` names).
ANNOUNCED = {"fork.created", "merge.proposed", "merge.executed"}


def some_room(*script: Step) -> Room:
    """Alice, Bob and Claude are in the fork `try`; Carol approves and Dave looks on outside."""
    fork = ForkCreate("Try", "prompt", "To see", ("bob", "claude"), copy_context=False)
    return given(
        create_step(),
        join_step(BOB, R.DRIVER),
        join_step(CAROL, R.APPROVER),
        join_step(DAVE, R.OBSERVER),
        join_step(CLAUDE, R.DRIVER),
        script_step(ALICE, prompt_submit(), id="prompt"),
        script_step(ALICE, fork),
        *script,
    )


def seen(room: Room, record: Record) -> MemberIds:
    """Those in the room who may see it."""
    to = CONTEXT.presence.audience(room, record)
    here = frozenset(room.members)
    return here if to is None else here & to


def names(text: str) -> MemberIds:
    return frozenset(text.split())


EVERYBODY = names("alice bob carol dave claude")
THINKS = ThinkingStart("claude", "prompt", "all")
IN_TRUNK: list[tuple[Any, Any, MemberIds]] = [
    (ALICE, session_config_update(allow_forks=False), EVERYBODY),
    (ALICE, session_end(), EVERYBODY),
    (ALICE, role_change(ALICE, BOB, [R.DRIVER], [R.OBSERVER]), EVERYBODY),
    (DAVE, SessionLeave(), EVERYBODY),
    (BOB, presence_step(BOB, Presence.IDLE).body, EVERYBODY),
    (BOB, prompt_submit(), EVERYBODY),
    (BOB, InterruptRaise(Urgency.STOP, "Wait"), EVERYBODY),
    (BOB, ContextAdd("k", "text", "text"), EVERYBODY),
    (BOB, ContextAdd("k", "text", "text", visible_to=("dave",)), names("bob dave")),
    (BOB, ContextAdd("k", "text", "text", visible_to=("stranger",)), names("bob")),
    (BOB, SecretShare("k", ("carol",), "env:K"), names("bob carol")),
    (CLAUDE, ResponseStart("claude", "prompt"), EVERYBODY),
    (CLAUDE, THINKS, EVERYBODY),
    (CLAUDE, ThinkingStart("claude", "prompt", ("dave",)), names("claude dave")),
    (CLAUDE, ThinkingStart("claude", "prompt", "approvers_only"), names("alice carol claude")),
    (CLAUDE, tool_propose(), EVERYBODY),
    (ALICE, ForkSwitch("try"), EVERYBODY),
    (BOB, ForkCreate("More", "prompt", "So", ("alice",), copy_context=False), EVERYBODY),
]
INSIDE = names("alice bob claude")
IN_FORK: list[tuple[Any, Any, MemberIds]] = [
    (BOB, prompt_submit(), INSIDE),
    (BOB, ContextAdd("k", "text", "text"), INSIDE),
    (BOB, ContextAdd("k", "text", "text", visible_to=("dave", "alice")), names("alice bob")),
    (CLAUDE, THINKS, INSIDE),
    (CLAUDE, ThinkingStart("claude", "prompt", "approvers_only"), names("alice claude")),
    (CLAUDE, ResponseStart("claude", "prompt"), INSIDE),
    (CLAUDE, tool_propose(), INSIDE),
    (BOB, ForkCreate("More", "prompt", "So", ("alice",), copy_context=False), EVERYBODY),
]


@proves("UNI-12", "PVP-8.2-2", "PVP-10-3", "PVP-9.1-4")
@pytest.mark.parametrize(
    ("fork", "who", "body", "readers"),
    [(None, *row) for row in IN_TRUNK] + [("try", *row) for row in IN_FORK],
    ids=[f"trunk-{n}-{row[1].type}" for n, row in enumerate(IN_TRUNK)]
    + [f"fork-{n}-{row[1].type}" for n, row in enumerate(IN_FORK)],
)
def test_everything_said_is_seen_by_those_it_is_for(
    fork: str | None, who: Any, body: Any, readers: MemberIds
) -> None:
    room = some_room()
    known = when(room, ALICE, prompt_submit(), id="prompt").records

    facts = when(room, who, body, fork=fork, known=known)

    said = [record for record in facts.records if record.said is not None]
    assert said
    for record in said:
        assert seen(room, record) == readers


@proves("UNI-12")
def test_leave_to_run_is_for_the_agent_alone() -> None:
    room = given(
        create_step(require_approval_for=()),
        join_step(CLAUDE, R.DRIVER),
        script_step(CLAUDE, tool_propose(), id="p"),
    )

    (record,) = when(room, CLAUDE, tool_execute("p")).records

    assert seen(room, record) == {"claude"}


@proves("UNI-12")
def test_what_was_said_in_a_fork_opens_to_those_who_may_read_it_now() -> None:
    room = some_room()
    known = when(room, ALICE, prompt_submit(), id="prompt").records
    (record,) = when(room, CLAUDE, THINKS, fork="try", known=known).records
    fork = room.forks["try"]
    wider = msgspec.structs.replace(fork, readers=fork.readers | {"dave"})
    later = msgspec.structs.replace(room, forks={"try": wider})

    assert seen(room, record) == INSIDE
    assert seen(later, record) == INSIDE | {"dave"}


# The rule itself

MANY = settings(QUICK, max_examples=150)
seats = st.frozensets(st.sampled_from("abcdef"))


@proves("UNI-12")
@MANY
@for_all(st.sampled_from(sorted(EVENTS)), st.data())
def test_the_rule_for_any_record(name: str, data: st.DataObject) -> None:
    to, readers = data.draw(st.none() | seats), data.draw(st.none() | seats)
    place = data.draw(st.sampled_from([None, "f"]))
    drawn = data.draw(records(EVENTS[name]))
    event = msgspec.structs.replace(drawn.event, to=to, fork=place)
    record = msgspec.structs.replace(drawn, event=event, to=to, fork=place)
    room = Room(id="r", forks={} if readers is None else {"f": fork(readers)})

    found = record_audience(room, record)

    if place is None or name in ANNOUNCED:
        assert found == to
    elif to is None:
        assert found == (readers or frozenset())
    else:
        assert found == to & (readers or frozenset())


@proves("UNI-12")
@MANY
@for_all(st.sampled_from(sorted(EVENTS)), st.data())
def test_a_restart_changes_nobody_s_view(name: str, data: st.DataObject) -> None:
    record = data.draw(records(EVENTS[name]))
    if record.said is None:
        return
    room = Room(id="r", forks={record.fork or "": fork(data.draw(seats))})

    read = decode_record(STREAM, record.version, encode_record(record).body).record

    assert record_audience(room, read) == record_audience(room, record)


def fork(readers: MemberIds) -> Fork:
    return Fork("f", "f", None, "p", frozenset(), readers, "a", 0, 0)


def test_what_is_announced_is_written_down_here() -> None:
    assert {name for name, event in EVENTS.items() if event.room_wide} == ANNOUNCED
    assert not Event.room_wide
    assert [name for name, event in EVENTS.items() if event.carries_secret] == ["secret.shared"]
