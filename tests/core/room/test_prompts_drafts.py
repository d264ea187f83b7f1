"""Drafts, amendments, and the context that a prompt names."""

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Lifetime, Say
from accord.core.kernel.refusal import Why
from accord.core.room.prompts import PromptAmend, PromptAmended, PromptDraft, PromptSubmit
from accord.core.room.streams import ResponseEnd, ResponseStart
from tests.helpers.forks import START, Talk, adds, switches
from tests.helpers.room import ALICE, BOB, CAROL, CLAUDE, CODEX, left, prompts, proposes, refused
from tests.spec import proves

R = Role


def a_talk() -> Talk:
    """Alice, two who may prompt, one of whom watches the tests, and two agents."""
    return Talk.of((BOB, R.DRIVER), (CAROL, R.DRIVER), (CLAUDE, R.DRIVER), (CODEX, R.DRIVER))


def drafts(*who: Actor, agent: Actor | None = None, text: str = "Plea") -> PromptDraft:
    return PromptDraft(text, tuple(each.seat for each in who), agent.seat if agent else None)


def amends(prompt: str = START) -> PromptAmend:
    return PromptAmend(prompt, "And add tests", "Forgot them")


# Drafts


@proves("PVP-11.1-1", "PVP-11.1-2", "PVP-4.3-7", "OPEN-43")
def test_a_draft_is_shown_to_all_who_are_there_and_kept_by_nobody() -> None:
    talk = a_talk()
    draft = drafts(BOB, CAROL, agent=CLAUDE)
    before = talk.room

    facts = talk.says(BOB, draft)

    assert PromptDraft.lifetime is Lifetime.SIGNAL
    assert facts == [Say(draft)]
    assert facts.records == ()
    assert talk.room is before


@proves("PVP-11.1-1")
def test_a_draft_need_not_say_whom_it_is_for() -> None:
    assert a_talk().tries(BOB, drafts(BOB)) == [Say(drafts(BOB))]


@proves("OPEN-43")
def test_whoever_sends_a_draft_contributes_to_it() -> None:
    with refused(Why.MALFORMED, "one of its contributors"):
        a_talk().tries(BOB, drafts(CAROL))


def test_a_draft_is_by_people_who_are_here() -> None:
    talk = a_talk()
    talk.says(CAROL, left(CAROL).body)

    with refused(Why.NO_MEMBER, "Not here: carol, zoe"):
        talk.tries(BOB, drafts(BOB, replace(BOB, seat="zoe"), CAROL))


@proves("OPEN-43")
@pytest.mark.parametrize("target", [ALICE, Actor("nobody", CLAUDE.kind)])
def test_a_draft_is_for_an_agent(target: Actor) -> None:
    with refused(Why.NO_MEMBER, "is not an agent in this session"):
        a_talk().tries(BOB, drafts(BOB, agent=target))


def test_an_observer_drafts_nothing() -> None:
    talk = Talk.of((BOB, R.OBSERVER), (CLAUDE, R.DRIVER))

    with refused(Why.FORBIDDEN):
        talk.tries(BOB, drafts(BOB))


@proves("PVP-16.1-3")
def test_a_draft_in_a_fork_is_for_the_fork() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)

    facts = talk.tries(BOB, drafts(BOB, agent=CLAUDE), fork=fork)

    assert facts == [Say(drafts(BOB, agent=CLAUDE), frozenset({"alice", "bob", "claude"}))]
    with refused(Why.NO_MEMBER, "Not here: carol"):
        talk.tries(BOB, drafts(BOB, CAROL), fork=fork)
    with refused(Why.NO_MEMBER, f"codex is not an agent in the fork {fork}"):
        talk.tries(BOB, drafts(BOB, agent=CODEX), fork=fork)


# Amendments


def asked(by: Actor = BOB, *with_: Actor) -> Talk:
    """A prompt `q` for Claude by Bob and others."""
    talk = a_talk()
    seats = tuple(each.seat for each in with_)
    talk.says(by, replace(prompts(), contributors=seats), id="q")
    return talk


@proves("PVP-11.3-1", "PVP-4.3-7", "OPEN-43")
@pytest.mark.parametrize("who", [ALICE, BOB, CAROL])
def test_its_authors_and_an_admin_amend_a_prompt(who: Actor) -> None:
    facts = asked(BOB, CAROL).says(who, amends("q"))

    assert facts == [PromptAmended(said=amends("q"), agent="claude")]


@proves("OPEN-43")
def test_nobody_else_amends_it() -> None:
    with refused(Why.FORBIDDEN, "Only its authors or an admin"):
        asked(BOB).tries(CAROL, amends("q"))


def test_without_the_right_to_prompt_nobody_amends() -> None:
    talk = Talk.of((BOB, R.NAVIGATOR), (CLAUDE, R.DRIVER))
    talk.says(ALICE, replace(prompts(), contributors=("bob",)), id="q")

    with refused(Why.FORBIDDEN, "prompt"):
        talk.tries(BOB, amends("q"))


def test_only_a_prompt_is_amended() -> None:
    talk = a_talk()
    talk.says(CLAUDE, proposes(), id="p")

    with refused(Why.MALFORMED, "p is not a prompt.submit"):
        talk.tries(ALICE, amends("p"))


@proves("PVP-11.3-2", "OPEN-43")
@pytest.mark.parametrize("reason", ["complete", "interrupted", "error", "max_tokens"])
def test_an_answered_prompt_is_not_amended(reason: str) -> None:
    talk = asked()
    talk.says(CLAUDE, ResponseStart("claude", "q"), id="answer")
    assert talk.allows(BOB, amends("q"))

    talk.says(CLAUDE, ResponseEnd(reason))  # type: ignore[arg-type]

    with refused(Why.WRONG_STATE, "q is answered already"):
        talk.tries(BOB, amends("q"))


@proves("PVP-11.3-2")
def test_an_answer_that_waits_for_a_tool_is_not_over() -> None:
    talk = asked()
    talk.says(CLAUDE, ResponseStart("claude", "q"))
    talk.says(CLAUDE, ResponseEnd("tool_use"))

    assert talk.allows(BOB, amends("q"))


def test_the_answer_of_another_agent_is_not_the_one_that_was_asked_for() -> None:
    talk = asked()
    talk.says(CODEX, ResponseStart("codex", "q"))
    talk.says(CODEX, ResponseEnd("complete"))

    assert talk.allows(BOB, amends("q"))


@proves("OPEN-43")
def test_there_is_nothing_to_amend_when_the_agent_is_gone() -> None:
    talk = asked()
    talk.says(CLAUDE, left(CLAUDE).body)

    with refused(Why.NO_MEMBER, "claude is not an agent in this session"):
        talk.tries(BOB, amends("q"))


@proves("PVP-16.1-3")
def test_an_amendment_stays_in_the_fork_of_its_prompt() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.says(BOB, replace(prompts(), contributors=("carol",)), id="q", fork=fork)

    talk.says(BOB, amends("q"), id="amended")

    assert talk.readers("amended") == {"alice", "bob", "claude"}
    with refused(Why.MALFORMED, "No such message"):
        talk.tries(CAROL, amends("q"))


def test_a_prompt_of_the_trunk_is_not_amended_from_within_a_fork() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE)

    with refused(Why.WRONG_STATE, f"{START} is not in the fork {fork}"):
        talk.tries(ALICE, amends(), fork=fork)


@proves("OPEN-48")
def test_what_was_asked_in_a_merged_fork_is_not_amended() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.says(BOB, prompts(), id="q", fork=fork)
    talk.merges(fork)

    with refused(Why.WRONG_STATE, "can only be read"):
        talk.tries(BOB, amends("q"))


# Context


def naming(*keys: str, agent: Actor = CLAUDE) -> PromptSubmit:
    return replace(prompts(agent), context_keys=keys)


@proves("OPEN-39")
def test_a_prompt_names_context_that_its_sender_can_see() -> None:
    talk = a_talk()
    talk.says(CAROL, adds("private", to=["carol", "claude"]))

    with refused(Why.FORBIDDEN, "You cannot see the context private"):
        talk.tries(BOB, naming("private"))
    assert talk.allows(CAROL, naming("private"))


@proves("OPEN-39")
def test_the_agent_is_given_only_what_it_can_see_and_unknown_keys_pass() -> None:
    talk = a_talk()
    talk.says(BOB, adds("open"))
    talk.says(BOB, adds("ours", to=["carol"]))
    talk.says(BOB, adds("claude's", to=["claude"]))

    facts = talk.says(BOB, naming("open", "ours", "claude's", "unknown"), id="q")

    assert isinstance(facts.records[0].said, PromptSubmit)
    assert facts.records[0].said.context_keys == ("open", "claude's", "unknown")


@proves("OPEN-36", "OPEN-39")
def test_a_prompt_sent_again_is_the_same_prompt_whatever_was_taken_out() -> None:
    sent = naming("open", "ours")

    assert sent.repeats(naming("open"))
    assert sent.repeats(sent)
    assert not sent.repeats(naming("other"))
    assert not sent.repeats(replace(naming("open"), content="Something else"))
    assert not sent.repeats(amends())


@proves("OPEN-47")
def test_inside_a_fork_its_own_context_counts() -> None:
    talk = a_talk()
    talk.says(CAROL, adds("key", to=["carol"]))
    fork = talk.fork("Aside", BOB, CLAUDE, copy=True)
    talk.says(BOB, adds("key", to=["bob"]), fork=fork)

    facts = talk.tries(BOB, naming("key"), fork=fork)

    assert facts.records[0].said == naming()
    with refused(Why.FORBIDDEN):
        talk.tries(BOB, naming("key"))


@proves("OPEN-43", "OPEN-47")
def test_a_prompt_in_a_fork_is_for_an_agent_in_it() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)

    talk.says(BOB, prompts(), id="q", fork=fork)

    assert talk.readers("q") == {"alice", "bob", "claude"}
    with refused(Why.NO_MEMBER, f"codex is not an agent in the fork {fork}"):
        talk.tries(BOB, prompts(CODEX), fork=fork)


def test_being_somewhere_does_not_change_where_one_speaks() -> None:
    """OPEN-47: a message without `fork` always means the trunk."""
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.says(BOB, switches(fork))

    talk.says(BOB, prompts(CODEX), id="q")

    assert len(talk.readers("q")) == 5
