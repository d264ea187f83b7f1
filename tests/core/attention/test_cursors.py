"""Cursors, unread counts and delivery marks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.attention.context import CONTEXT
from accord.core.attention.cursors import AckRead, CursorMoved, cursor_in, unread_count
from accord.core.attention.delivery_marks import DeliveryMarks, DeliveryState, advanced, state_of
from accord.core.attention.state import Attention, Cursor, seat_of, stream_of
from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command
from accord.core.kernel.messages import Elapsed, Message
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.room.room_settings import ServerPolicy
from tests.helpers.threads.thread_rules import SERVER, WORKER, agent
from tests.spec import proves

STREAM = stream_of("default", "worker")


def ack(state: Attention, seq: int, latest: int = 9, actor: Actor = WORKER) -> Attention:
    """The state after an acknowledgement; raises Refused."""
    body = AckRead("th_1", seq, latest, f"msg_{seq}", own=1)
    command = Command(Message("a", "", "th_1", actor.principal, body), actor, 5, {}, None)
    CONTEXT.admit(state, command)
    for event in CONTEXT.decide[AckRead](state, command, body):
        assert isinstance(event, CursorMoved)
        record = Record(STREAM, 1, 0, "a", 5, actor.principal, "a", "", "", event)
        state = CONTEXT.evolve[CursorMoved](state, event, record)
    return state


@proves("MSG-2.3-1", "MSG-3.4-2", "MSG-3.4-3", "OPEN-119")
def test_a_cursor_moves_forward_up_to_the_newest_message() -> None:
    state = ack(CONTEXT.initial_state(STREAM), 4)
    assert state.cursors["th_1"] == Cursor(4, "msg_4", 5, 1)
    assert ack(state, 4) is state
    for seq in (3, 10):
        with pytest.raises(Refused) as refused:
            ack(state, seq)
        assert refused.value.reason is Reason.MALFORMED
    assert ack(state, 9).cursors["th_1"].last_read_seq == 9


def test_only_the_agent_itself_and_the_server_move_its_cursor() -> None:
    state = CONTEXT.initial_state(STREAM)
    for actor in (agent("other"), agent("worker", workspace="elsewhere")):
        with pytest.raises(Refused) as refused:
            ack(state, 1, actor=actor)
        assert refused.value.reason is Reason.CLAIM_MISMATCH
    assert ack(state, 1, actor=SERVER) is not state


def test_a_timer_changes_nothing() -> None:
    state = CONTEXT.initial_state(STREAM)
    command = Command(Message("t", "", "", "system", Elapsed()), SERVER, 0, {}, ServerPolicy())
    assert tuple(CONTEXT.decide[Elapsed](state, command, Elapsed())) == ()
    assert cursor_in(state, "th_1") == Cursor(0, "", 0)


@given(st.text(min_size=1), st.text(min_size=1))
def test_every_seat_has_a_stream_of_its_own(workspace: str, name: str) -> None:
    assert seat_of(stream_of(workspace, name)) == (workspace, name)


@given(st.lists(st.booleans()), st.data())
def test_unread_counts_what_is_after_the_cursor_and_not_own(
    own: list[bool], data: st.DataObject
) -> None:
    seq = data.draw(st.integers(0, len(own)))
    cursor = Cursor(seq, "", 0, sum(own[:seq]))
    assert unread_count(cursor, len(own), sum(own)) == own[seq:].count(False)


@proves("MSG-5-1")
def test_a_mark_moves_only_when_it_joins() -> None:
    assert advanced(0, 0, 5) == 5
    assert advanced(5, 3, 8) == 8
    assert advanced(5, 5, 4) == 5
    assert advanced(5, 7, 9) == 5
    marks = DeliveryMarks(delivered=3, seen=2)
    assert [state_of(seq, 1, marks) for seq in (1, 2, 3, 4)] == [
        DeliveryState.ACKED,
        DeliveryState.SEEN,
        DeliveryState.DELIVERED,
        DeliveryState.QUEUED,
    ]


def test_a_person_may_have_cursors_too() -> None:
    person = Actor("worker", Kind.HUMAN, "web")
    assert ack(CONTEXT.initial_state(STREAM), 2, actor=person).cursors["th_1"].last_read_seq == 2
