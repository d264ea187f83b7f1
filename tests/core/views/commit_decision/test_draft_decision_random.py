"""Whatever happens in a room, a commit tells nothing that not everybody at its place has heard."""

import re
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Refused
from accord.core.room.approval.tool_proposals import ToolResult
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.conversation.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.core.room.shared_context.secrets import SecretShare
from tests.helpers.room.commit_decisions import (
    draft_commit_decision,
    room_with_approver_and_agent,
    written_text,
)
from tests.helpers.room.logged_room import (
    START_ID,
    LoggedRoom,
    context_add,
    fork_create,
    merge_execute,
    merge_propose,
)
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    prompt_submit,
    tool_approve,
    tool_output,
    tool_propose,
    tool_reject,
)
from tests.spec import proves

# What is for some alone carries the first mark; what is said in a place carries its name.
PRIVATE = "PRIVATE"
PLACES = (None, "one", "two")
MARK = r"AT-\w+-END"
Say = tuple[Actor, Body]


def mark(move: str, place: str | None) -> str:
    """Words that are said by such a move at that place, and nowhere else."""
    return f"AT-{place or 'trunk'}_{move}-END"


# What may be said, given the last proposal and the place.
MOVES: dict[str, Callable[[str, str | None], Say]] = {
    "prompt": lambda _, place: (CAROL, prompt_submit(content=mark("prompt", place))),
    "propose": lambda _, place: (
        CLAUDE,
        tool_propose(
            tool_name=mark("propose", place),
            arguments={"path": "a", "text": mark("propose", place)},
        ),
    ),
    "approve": lambda tool, _: (BOB, tool_approve(BOB, tool)),
    "reject": lambda tool, _: (BOB, tool_reject(BOB, tool)),
    "print": lambda tool, _: (CLAUDE, tool_output(tool, PRIVATE)),
    "finish": lambda tool, _: (
        CLAUDE,
        ToolResult(tool, success=True, duration_ms=1, result=PRIVATE),
    ),
    "answer": lambda _, __: (CLAUDE, ResponseStart("claude", START_ID)),
    "say": lambda _, place: (CLAUDE, ResponseChunk(mark("say", place))),
    "end": lambda _, __: (
        CLAUDE,
        ResponseEnd("complete", metadata={"confidence": 0.5, "x": PRIVATE}),
    ),
    "think": lambda _, __: (CLAUDE, ThinkingStart("claude", START_ID, "approvers_only")),
    "thought": lambda _, __: (CLAUDE, ThinkingChunk(PRIVATE)),
    "thought over": lambda _, __: (CLAUDE, ThinkingEnd(PRIVATE)),
    "context": lambda _, place: (CAROL, context_add(f"{PRIVATE}-{place}", PRIVATE, to=["bob"])),
    "open context": lambda _, __: (CAROL, context_add("open", PRIVATE)),
    "secret": lambda _, __: (CAROL, SecretShare(PRIVATE, ("claude",), PRIVATE)),
    "fork one": lambda _, __: (ALICE, fork_create("one", BOB, CLAUDE, CAROL)),
    "fork two": lambda _, __: (CAROL, fork_create("two", BOB, CLAUDE)),
    "merge": lambda tool, _: (ALICE, merge_propose("one")),
    "merge two": lambda tool, _: (CAROL, merge_propose("two", "one")),
    "merge now": lambda tool, _: (ALICE, merge_execute(tool)),
}


# Often one after the other, because only then there is something to tell.
USUAL = (
    ("propose", "approve", "print", "finish"),
    ("answer", "say", "end"),
    ("think", "thought", "thought over"),
    ("merge", "merge now"),
)
Move = tuple[str, str | None]
LONGER = st.tuples(st.sampled_from(USUAL), st.sampled_from(PLACES)) | st.tuples(
    st.sampled_from([(name,) for name in sorted(MOVES)]), st.sampled_from(PLACES)
)


class Played(NamedTuple):
    """A room, and what was said in it as its people would tell: what, and where they said it."""

    talk: LoggedRoom
    said: list[Move]


def play(moves: list[Move]) -> Played:
    """A room in which as much of it happened as the rules allow."""
    talk, last, said = room_with_approver_and_agent(), START_ID, list[Move]()
    for number, (name, place) in enumerate(moves):
        actor, body = MOVES[name](last, place)
        where = place if body.forkable else None
        try:
            talk.send(actor, body, id=f"m{number}", fork=where)
        except Refused:
            continue
        said.append((name, place))
        last = f"m{number}" if name in {"propose", "merge", "merge two"} else last
    return Played(talk, said)


def heard(said: list[Move]) -> dict[str | None, set[str]]:
    """Which words everybody at a place has heard, by what was said alone and not by the log.

    Whoever speaks in a place is heard there; more of an answer is heard where the answer began,
    and an agent has one under way at a time.
    """
    marks: dict[str | None, set[str]] = {place: set() for place in PLACES}
    answer: str | None = None
    for name, place in said:
        if name == "answer":
            answer = place
        if name in {"prompt", "propose"}:
            marks[place].add(mark(name, place))
        elif name == "say":
            marks[answer].add(mark(name, place))
    return marks


@proves("OPEN-42", "OPEN-44", "OPEN-74", "UNI-29")
@settings(max_examples=150, deadline=None)
@given(st.lists(LONGER, max_size=12))
def test_nothing_is_told_that_some_at_the_place_have_not_heard(
    turns: list[tuple[tuple[str, ...], str | None]],
) -> None:
    moves: list[Move] = [("fork one", None), ("fork two", None)]
    moves += [(name, place) for names, place in turns for name in names]
    talk, said = play(moves)
    marks = heard(said)
    for place in PLACES:
        if draft_commit_decision(talk, fork=place) is None:
            continue
        told = written_text(talk, fork=place)
        assert PRIVATE not in told
        assert set(re.findall(MARK, told)) <= marks[place]
        assert ("prompt", place) not in said or mark("prompt", place) in told, (
            "what was asked is told"
        )
        assert told == written_text(talk, fork=place)
