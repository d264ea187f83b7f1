"""Responses: an agent's answer, chunk by chunk, in a stream of its own."""

import pytest

from accord.core.kernel.limits import Limits
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.conversation.responses import (
    ResponseChunk,
    ResponseChunked,
    ResponseEnd,
    ResponseEnded,
    ResponseStart,
    ResponseStarted,
    UsageStats,
)
from accord.core.room.room_settings import ServerPolicy
from accord.core.room.state import Room
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    CommandOutcome,
    after,
    create_step,
    expect_refusal,
    given,
    join_step,
    prompt_submit,
    script_step,
    tool_propose,
    when,
)
from tests.spec import proves

R = Role
CHUNK = ResponseChunk("Hello")
END = ResponseEnd("complete")


def prompted() -> tuple[Room, list[Record]]:
    """Two agents, each with a prompt."""
    room = given(
        create_step(),
        join_step(BOB, R.DRIVER),
        join_step(CLAUDE, R.DRIVER),
        join_step(CODEX, R.DRIVER),
    )
    asked = [
        when(room, ALICE, prompt_submit(agent), id=f"for-{agent.principal}")
        for agent in (CLAUDE, CODEX)
    ]
    return room, [record for facts in asked for record in facts.records]


def answering(*starts: str) -> Room:
    """Claude writes answers with these ids, Codex one called `other`."""
    room, known = prompted()
    for id in starts:
        room = after(
            room, when(room, CLAUDE, ResponseStart("claude", "for-claude"), id=id, known=known)
        )
    other = ResponseStart("codex", "for-codex")
    return after(room, when(room, CODEX, other, id="other", known=known))


def refs(facts: CommandOutcome) -> list[str | None]:
    """What the records answer to."""
    return [record.ref for record in facts.records]


@proves("PVP-12.2-1", "PVP-4.2-7")
def test_an_answer_begins_with_the_prompt_it_answers() -> None:
    room, known = prompted()
    start = ResponseStart("claude", "for-claude")

    facts = when(room, CLAUDE, start, id="answer", known=known)
    room = after(room, facts)

    assert facts == [ResponseStarted(said=start)]
    assert (room.streams["answer"].agent, room.streams["answer"].prompt) == ("claude", "for-claude")


@proves("PVP-12.2-1", "OPEN-35")
def test_an_answer_to_nothing_is_refused() -> None:
    room, known = prompted()

    with expect_refusal(Reason.MALFORMED, "No such message"):
        when(room, CLAUDE, ResponseStart("claude", "nothing"), known=known)


@proves("PVP-12.2-1")
def test_an_answer_to_what_is_no_prompt_is_refused() -> None:
    room, _ = prompted()
    proposed = when(room, CLAUDE, tool_propose(), id="p").records

    with expect_refusal(Reason.MALFORMED, "p is not a prompt.submit"):
        when(room, CLAUDE, ResponseStart("claude", "p"), known=proposed)


def test_there_is_an_end_to_the_streams_that_may_be_open() -> None:
    room, known = prompted()
    house = ServerPolicy(limits=Limits(streams=1))
    room = after(room, when(room, CLAUDE, ResponseStart("claude", "for-claude"), known=known))

    with expect_refusal(Reason.WRONG_STATE, "1 streams are open"):
        when(room, CODEX, ResponseStart("codex", "for-codex"), known=known, policy=house)


@proves("PVP-12.2-2", "PVP-4.2-7")
def test_a_chunk_belongs_to_the_stream_its_ref_names() -> None:
    room = answering("one", "two")

    facts = when(room, CLAUDE, CHUNK, ref="two")

    assert facts == [ResponseChunked(said=CHUNK, ref="two")]
    assert refs(facts) == ["two"]


@proves("PVP-12.2-2")
def test_a_chunk_without_ref_belongs_to_the_only_stream_of_its_sender() -> None:
    assert refs(when(answering("one"), CLAUDE, CHUNK)) == ["one"]


def test_chunk_does_not_change_the_state() -> None:
    room = answering("one")

    assert after(room, when(room, CLAUDE, CHUNK)) is room


@pytest.mark.parametrize("body", [CHUNK, END])
@pytest.mark.parametrize(("starts", "count"), [((), "no"), (("one", "two"), "2")])
def test_without_ref_and_without_a_single_stream_nothing_is_guessed(
    body: Body, starts: tuple[str, ...], count: str
) -> None:
    with expect_refusal(
        Reason.WRONG_STATE,
        f"claude has {count} open responses; set `ref` to the message that started it",
    ):
        when(answering(*starts), CLAUDE, body)


@pytest.mark.parametrize("body", [CHUNK, END])
def test_nobody_writes_into_the_stream_of_another(body: Body) -> None:
    with expect_refusal(Reason.WRONG_STATE, "other is not an open response of claude"):
        when(answering("one"), CLAUDE, body, ref="other")


@pytest.mark.parametrize("body", [CHUNK, END])
def test_a_ref_to_anything_but_an_open_stream_is_refused(body: Body) -> None:
    room, known = prompted()
    room = after(room, when(room, CLAUDE, ResponseStart("claude", "for-claude"), known=known))

    with expect_refusal(Reason.WRONG_STATE, "for-claude is not an open response of claude"):
        when(room, CLAUDE, body, ref="for-claude", known=known)


@proves("PVP-12.2-3", "PVP-12.2-4", "PVP-12.2-5")
@pytest.mark.parametrize("ref", [None, "one"])
def test_an_end_closes_the_stream_and_says_why_and_what_it_cost(ref: str | None) -> None:
    room = answering("one")
    end = ResponseEnd("max_tokens", UsageStats(1, 2, 3, 0.25, "m", 4))

    facts = when(room, CLAUDE, end, ref=ref)
    room = after(room, facts)

    assert facts == [ResponseEnded(said=end, ref="one")]
    assert list(room.streams) == ["other"]
    assert room.past["one"] == "max_tokens"


def test_what_has_ended_is_not_written_into_any_more() -> None:
    room, known = prompted()
    started = when(room, CLAUDE, ResponseStart("claude", "for-claude"), id="one", known=known)
    room = after(room, started)
    room = after(room, when(room, CLAUDE, END))

    for body in (CHUNK, END):
        with expect_refusal(Reason.WRONG_STATE):
            when(room, CLAUDE, body, ref="one", known=started.records)


def test_an_answer_may_be_begun_again() -> None:
    room, known = prompted()
    start = ResponseStart("claude", "for-claude")
    room = after(room, when(room, CLAUDE, start, id="one", known=known))
    room = after(room, when(room, CLAUDE, END))

    assert "two" in after(room, when(room, CLAUDE, start, id="two", known=known)).streams


@proves("OPEN-10")
@pytest.mark.parametrize("body", [ResponseStart("bob", "for-claude"), CHUNK, END])
def test_only_agents_answer(body: Body) -> None:
    room, known = prompted()

    with expect_refusal(Reason.FORBIDDEN, "act as an agent"):
        when(room, BOB, body, known=known)


@proves("OPEN-10")
def test_an_agent_that_only_watches_does_not_answer() -> None:
    room = given(create_step(), join_step(CLAUDE, R.OBSERVER))

    with expect_refusal(Reason.FORBIDDEN, "act as an agent"):
        when(room, CLAUDE, CHUNK)


def test_the_outcomes_that_are_remembered_are_bounded() -> None:
    room = given(
        create_step(), join_step(CLAUDE, R.DRIVER), script_step(ALICE, prompt_submit(), id="p")
    )
    known = when(room, ALICE, prompt_submit(), id="p").records
    for number in range(600):
        start = ResponseStart("claude", "p")
        room = after(room, when(room, CLAUDE, start, id=f"s{number}", known=known))
        room = after(room, when(room, CLAUDE, END))

    assert len(room.past) == 512
    assert "s599" in room.past
    assert "s0" not in room.past
