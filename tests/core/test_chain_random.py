"""Whatever happens in a room, a commit tells nothing that not everybody at its place has heard."""

import re
from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Refused
from accord.core.room.secrets import SecretShare
from accord.core.room.streams import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.core.room.tools import ToolResult
from tests.helpers.chain import a_talk, decided, words
from tests.helpers.forks import START, Talk, adds, executes_merge, forks, merges
from tests.helpers.room import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    approves_tool,
    prints,
    prompts,
    proposes,
    rejects_tool,
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
    "prompt": lambda _, place: (CAROL, prompts(content=mark("prompt", place))),
    "propose": lambda _, place: (
        CLAUDE,
        proposes(tool_name=mark("propose", place), arguments={"path": "a", "text": PRIVATE}),
    ),
    "approve": lambda tool, _: (BOB, approves_tool(BOB, tool)),
    "reject": lambda tool, _: (BOB, rejects_tool(BOB, tool)),
    "print": lambda tool, _: (CLAUDE, prints(tool, PRIVATE)),
    "finish": lambda tool, _: (
        CLAUDE,
        ToolResult(tool, success=True, duration_ms=1, result=PRIVATE),
    ),
    "answer": lambda _, __: (CLAUDE, ResponseStart("claude", START)),
    "say": lambda _, place: (CLAUDE, ResponseChunk(mark("say", place))),
    "end": lambda _, __: (
        CLAUDE,
        ResponseEnd("complete", metadata={"confidence": 0.5, "x": PRIVATE}),
    ),
    "think": lambda _, __: (CLAUDE, ThinkingStart("claude", START, "approvers_only")),
    "thought": lambda _, __: (CLAUDE, ThinkingChunk(PRIVATE)),
    "thought over": lambda _, __: (CLAUDE, ThinkingEnd(PRIVATE)),
    "context": lambda _, place: (CAROL, adds(f"{PRIVATE}-{place}", PRIVATE, to=["bob"])),
    "open context": lambda _, __: (CAROL, adds("open", PRIVATE)),
    "secret": lambda _, __: (CAROL, SecretShare(PRIVATE, ("claude",), PRIVATE)),
    "fork one": lambda _, __: (ALICE, forks("one", BOB, CLAUDE, CAROL)),
    "fork two": lambda _, __: (CAROL, forks("two", BOB, CLAUDE)),
    "merge": lambda tool, _: (ALICE, merges("one")),
    "merge two": lambda tool, _: (CAROL, merges("two", "one")),
    "merge now": lambda tool, _: (ALICE, executes_merge(tool)),
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

    talk: Talk
    said: list[Move]


def play(moves: list[Move]) -> Played:
    """A room in which as much of it happened as the rules allow."""
    talk, last, said = a_talk(), START, list[Move]()
    for number, (name, place) in enumerate(moves):
        actor, body = MOVES[name](last, place)
        where = place if body.scoped else None
        try:
            talk.says(actor, body, id=f"m{number}", fork=where)
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
        if decided(talk, fork=place) is None:
            continue
        told = words(talk, fork=place)
        assert PRIVATE not in told
        assert set(re.findall(MARK, told)) <= marks[place]
        assert ("prompt", place) not in said or mark("prompt", place) in told, (
            "what was asked is told"
        )
        assert told == words(talk, fork=place)
