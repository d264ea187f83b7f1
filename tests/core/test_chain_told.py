"""What a decision tells of a conversation, and what it never does."""

from collections.abc import Sequence

from msgspec.structs import replace

from accord.core.kernel.log import Record
from accord.core.room.prompts import PromptAmend
from accord.core.room.secrets import SecretShare
from accord.core.room.thinking import ThinkingChunk, ThinkingStart
from accord.core.room.tools import ToolResult
from accord.core.views.chain import drafted
from accord.core.views.stretch import Stretch, heard
from tests.helpers.chain import a_talk, a_tool, decision, numbered, words
from tests.helpers.forks import START, adds, forks
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


@proves("OPEN-74", "UNI-29")
def test_thinking_context_secrets_and_output_are_never_told() -> None:
    talk = a_talk()
    talk.says(CLAUDE, ThinkingStart("claude", START, ("bob",)), id="th")
    talk.says(CLAUDE, ThinkingChunk("HIDDEN-THOUGHT"), ref="th")
    talk.says(CAROL, adds("plan", "RESTRICTED-CONTEXT", to=["bob"]))
    talk.says(CAROL, adds("open", "OPEN-CONTEXT"))
    talk.says(CAROL, SecretShare("key", ("claude",), "SECRET-VALUE"))
    hidden = {"path": "a.py", "content": "ARGUMENT-CONTENT"}
    talk.says(CLAUDE, proposes(tool_name="write_file", arguments=hidden), id="t")
    talk.says(BOB, approves_tool(BOB, "t"))
    talk.says(CLAUDE, prints("t", "TOOL-OUTPUT"))
    talk.says(CLAUDE, ToolResult("t", success=True, duration_ms=1, result={"said": "TOOL-RESULT"}))

    text = words(talk)

    for word in ("THOUGHT", "CONTEXT", "SECRET", "ARGUMENT", "OUTPUT", "RESULT"):
        assert word not in text


def test_the_talk_of_a_fork_is_told_only_by_commits_of_that_fork() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try", BOB, CLAUDE), id="f")
    talk.says(CAROL, prompts(content="IN-THE-FORK"), id="p", fork="try")
    talk.says(CAROL, prompts(content="IN-THE-TRUNK"), id="q")
    a_tool(talk, "t", ref="q")

    inside, outside = words(talk, fork="try"), words(talk)

    assert "IN-THE-FORK" in inside
    assert "IN-THE-TRUNK" not in inside
    assert "IN-THE-FORK" not in outside
    assert decision(talk, fork="try").fork == "try"


def test_what_another_place_said_is_not_told_though_it_is_cited() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try", BOB, CLAUDE), id="f")
    a_tool(talk, "t")
    records = [replace(r, to=frozenset({"bob"})) if r.id == START else r for r in numbered(talk)]
    stretch = Stretch(talk.room, "repo", None, 1)
    told = heard(stretch, records)

    found = drafted(stretch, told, {START: records[0]})

    assert found is not None
    assert START not in found.decision.pvp_messages


def test_a_grant_for_what_nobody_knows_is_passed_by() -> None:
    talk = a_talk()
    a_tool(talk, "t")
    kept: Sequence[Record] = [r for r in numbered(talk) if r.id not in {"t", "t.yes"}]
    stretch = Stretch(talk.room, "repo")

    found = drafted(stretch, heard(stretch, kept), {})

    assert found is not None
    assert found.decision.tool_executions == ()


def test_a_no_to_what_nobody_knows_is_said_and_is_no_alternative() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="t")
    talk.says(BOB, rejects_tool(BOB, "t", "No"), id="no")
    kept = [r for r in numbered(talk) if r.event.name != "gate.opened"]
    stretch = Stretch(talk.room, "repo")

    found = drafted(stretch, heard(stretch, kept), {})

    assert found is not None
    assert found.decision.alternatives_considered == ()
    assert "no" in {each.id for each in found.thread.messages}


def test_amendments_count_and_agents_with_a_model_are_called_ai() -> None:
    talk = a_talk()
    talk.says(ALICE, PromptAmend(START, "And test it", "Forgot"), id="a")
    a_tool(talk, "t")
    claude = replace(talk.room.members["claude"], metadata={"model": "m-1"})
    talk.room = replace(talk.room, members={**talk.room.members, "claude": claude})

    made = decision(talk)

    assert made.pvp_messages[:2] == (START, "a")
    assert made.decided_by == ("ai:claude", "human:alice")
    gone = replace(talk.room, members={}, former={"alice": talk.room.members["alice"]})
    talk.room = gone
    assert decision(talk).decided_by == ("agent:claude", "human:alice")


@proves("OPEN-72")
def test_no_name_can_pass_for_two_people() -> None:
    talk = a_talk()
    a_tool(talk, "t")
    name = "alice,human:boss"
    alice = replace(talk.room.members["alice"], id=name)
    talk.room = replace(talk.room, members={**talk.room.members, name: alice})
    talk.log = [replace(each, sender=name) if each.id == START else each for each in talk.log]

    assert decision(talk).decided_by == ("agent:claude", "human:alice%2Chuman%3Aboss")


@proves("PVP-5.2-1")
def test_the_hash_of_a_tools_output_tells_a_changed_one() -> None:
    def sealed(*texts: str, result: object = None) -> str:
        talk = a_talk()
        talk.says(CLAUDE, proposes(tool_name="write_file"), id="t")
        talk.says(BOB, approves_tool(BOB, "t"))
        for text in texts:
            talk.says(CLAUDE, prints("t", text))
        talk.says(CLAUDE, ToolResult("t", success=True, duration_ms=1, result=result))
        (tool,) = decision(talk).tool_executions
        return tool.output_hash

    assert sealed() == ""
    assert sealed("a", "b").startswith("sha256:")
    assert sealed("a", "b") == sealed("a", "b")
    assert len({sealed("a", "b"), sealed("ab"), sealed("a", "c"), sealed("a", "b", result=1)}) == 4
