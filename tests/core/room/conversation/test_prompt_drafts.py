"""Drafts, amendments, and the context that a prompt names."""

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.effects import Relay
from accord.core.kernel.messages import Lifetime
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.room.conversation.prompts import (
    PromptAmend,
    PromptAmended,
    PromptDraft,
    PromptSubmit,
)
from accord.core.room.conversation.responses import ResponseEnd, ResponseStart
from tests.helpers.room.logged_room import START_ID, LoggedRoom, context_add, fork_switch
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    CODEX,
    expect_refusal,
    leave_step,
    prompt_submit,
    tool_propose,
)
from tests.spec import proves

R = Role


def a_talk() -> LoggedRoom:
    """Alice, two who may prompt, one of whom watches the tests, and two agents."""
    return LoggedRoom.with_members(
        (BOB, R.DRIVER), (CAROL, R.DRIVER), (CLAUDE, R.DRIVER), (CODEX, R.DRIVER)
    )


def drafts(*who: Actor, agent: Actor | None = None, text: str = "Plea") -> PromptDraft:
    return PromptDraft(
        text, tuple(each.principal for each in who), agent.principal if agent else None
    )


def amends(prompt: str = START_ID) -> PromptAmend:
    return PromptAmend(prompt, "And add tests", "Forgot them")


# Drafts


@proves("PVP-11.1-1", "PVP-11.1-2", "PVP-4.3-7", "OPEN-43")
def test_a_draft_is_shown_to_all_who_are_there_and_kept_by_nobody() -> None:
    talk = a_talk()
    draft = drafts(BOB, CAROL, agent=CLAUDE)
    before = talk.room

    facts = talk.send(BOB, draft)

    assert PromptDraft.lifetime is Lifetime.SIGNAL
    assert facts == [Relay(draft)]
    assert facts.records == ()
    assert talk.room is before


@proves("PVP-11.1-1")
def test_a_draft_need_not_say_whom_it_is_for() -> None:
    assert a_talk().decide(BOB, drafts(BOB)) == [Relay(drafts(BOB))]


@proves("OPEN-43")
def test_whoever_sends_a_draft_contributes_to_it() -> None:
    with expect_refusal(Reason.MALFORMED, "one of its contributors"):
        a_talk().decide(BOB, drafts(CAROL))


def test_a_draft_is_by_people_who_are_here() -> None:
    talk = a_talk()
    talk.send(CAROL, leave_step(CAROL).body)

    with expect_refusal(Reason.NO_MEMBER, "Contributors that are not here: carol, zoe"):
        talk.decide(BOB, drafts(BOB, replace(BOB, principal="zoe"), CAROL))


@proves("OPEN-43")
@pytest.mark.parametrize("target", [ALICE, Actor("nobody", CLAUDE.kind)])
def test_a_draft_is_for_an_agent(target: Actor) -> None:
    with expect_refusal(Reason.NO_MEMBER, "is not an agent in this session"):
        a_talk().decide(BOB, drafts(BOB, agent=target))


def test_an_observer_drafts_nothing() -> None:
    talk = LoggedRoom.with_members((BOB, R.OBSERVER), (CLAUDE, R.DRIVER))

    with expect_refusal(Reason.FORBIDDEN):
        talk.decide(BOB, drafts(BOB))


@proves("PVP-16.1-3")
def test_a_draft_in_a_fork_is_for_the_fork() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)

    facts = talk.decide(BOB, drafts(BOB, agent=CLAUDE), fork=fork)

    assert facts == [Relay(drafts(BOB, agent=CLAUDE), frozenset({"alice", "bob", "claude"}))]
    with expect_refusal(Reason.NO_MEMBER, "Contributors that are not here: carol"):
        talk.decide(BOB, drafts(BOB, CAROL), fork=fork)
    with expect_refusal(Reason.NO_MEMBER, f"codex is not an agent in the fork {fork}"):
        talk.decide(BOB, drafts(BOB, agent=CODEX), fork=fork)


# Amendments


def asked(by: Actor = BOB, *with_: Actor) -> LoggedRoom:
    """A prompt `q` for Claude by Bob and others."""
    talk = a_talk()
    seats = tuple(each.principal for each in with_)
    talk.send(by, replace(prompt_submit(), contributors=seats), id="q")
    return talk


@proves("PVP-11.3-1", "PVP-4.3-7", "OPEN-43")
@pytest.mark.parametrize("who", [ALICE, BOB, CAROL])
def test_its_authors_and_an_admin_amend_a_prompt(who: Actor) -> None:
    facts = asked(BOB, CAROL).send(who, amends("q"))

    assert facts == [PromptAmended(said=amends("q"), agent="claude")]


@proves("OPEN-43")
def test_only_sender_contributors_and_admins_amend_a_prompt() -> None:
    with expect_refusal(Reason.FORBIDDEN, "Only its sender, its contributors and admins"):
        asked(BOB).decide(CAROL, amends("q"))


def test_without_the_right_to_prompt_nobody_amends() -> None:
    talk = LoggedRoom.with_members((BOB, R.NAVIGATOR), (CLAUDE, R.DRIVER))
    talk.send(ALICE, replace(prompt_submit(), contributors=("bob",)), id="q")

    with expect_refusal(Reason.FORBIDDEN, "prompt"):
        talk.decide(BOB, amends("q"))


def test_only_a_prompt_is_amended() -> None:
    talk = a_talk()
    talk.send(CLAUDE, tool_propose(), id="p")

    with expect_refusal(Reason.MALFORMED, "p is not a prompt.submit"):
        talk.decide(ALICE, amends("p"))


@proves("PVP-11.3-2", "OPEN-43")
@pytest.mark.parametrize("reason", ["complete", "interrupted", "error", "max_tokens"])
def test_an_answered_prompt_is_not_amended(reason: str) -> None:
    talk = asked()
    talk.send(CLAUDE, ResponseStart("claude", "q"), id="answer")
    assert talk.allows(BOB, amends("q"))

    talk.send(CLAUDE, ResponseEnd(reason))  # type: ignore[arg-type]

    with expect_refusal(Reason.WRONG_STATE, "q is already answered"):
        talk.decide(BOB, amends("q"))


@proves("PVP-11.3-2")
def test_an_answer_that_waits_for_a_tool_is_not_over() -> None:
    talk = asked()
    talk.send(CLAUDE, ResponseStart("claude", "q"))
    talk.send(CLAUDE, ResponseEnd("tool_use"))

    assert talk.allows(BOB, amends("q"))


def test_the_answer_of_another_agent_is_not_the_one_that_was_asked_for() -> None:
    talk = asked()
    talk.send(CODEX, ResponseStart("codex", "q"))
    talk.send(CODEX, ResponseEnd("complete"))

    assert talk.allows(BOB, amends("q"))


@proves("OPEN-43")
def test_there_is_nothing_to_amend_when_the_agent_is_gone() -> None:
    talk = asked()
    talk.send(CLAUDE, leave_step(CLAUDE).body)

    with expect_refusal(Reason.NO_MEMBER, "claude is not an agent in this session"):
        talk.decide(BOB, amends("q"))


@proves("PVP-16.1-3")
def test_an_amendment_stays_in_the_fork_of_its_prompt() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.send(BOB, replace(prompt_submit(), contributors=("carol",)), id="q", fork=fork)

    talk.send(BOB, amends("q"), id="amended")

    assert talk.readers("amended") == {"alice", "bob", "claude"}
    with expect_refusal(Reason.MALFORMED, "No such message"):
        talk.decide(CAROL, amends("q"))


def test_a_prompt_of_the_trunk_is_not_amended_from_within_a_fork() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", CLAUDE)

    with expect_refusal(Reason.WRONG_STATE, f"{START_ID} is not in the fork {fork}"):
        talk.decide(ALICE, amends(), fork=fork)


@proves("OPEN-48")
def test_what_was_asked_in_a_merged_fork_is_not_amended() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.send(BOB, prompt_submit(), id="q", fork=fork)
    talk.merge(fork)

    with expect_refusal(Reason.WRONG_STATE, "is read-only"):
        talk.decide(BOB, amends("q"))


# Context


def naming(*keys: str, agent: Actor = CLAUDE) -> PromptSubmit:
    return replace(prompt_submit(agent), context_keys=keys)


@proves("OPEN-39")
def test_a_prompt_names_context_that_its_sender_can_see() -> None:
    talk = a_talk()
    talk.send(CAROL, context_add("private", to=["carol", "claude"]))

    with expect_refusal(Reason.FORBIDDEN, "You cannot read the context item private"):
        talk.decide(BOB, naming("private"))
    assert talk.allows(CAROL, naming("private"))


@proves("OPEN-39")
def test_the_agent_is_given_only_what_it_can_see_and_unknown_keys_pass() -> None:
    talk = a_talk()
    talk.send(BOB, context_add("open"))
    talk.send(BOB, context_add("ours", to=["carol"]))
    talk.send(BOB, context_add("claude's", to=["claude"]))

    facts = talk.send(BOB, naming("open", "ours", "claude's", "unknown"), id="q")

    assert isinstance(facts.records[0].said, PromptSubmit)
    assert facts.records[0].said.context_keys == ("open", "claude's", "unknown")


@proves("OPEN-36", "OPEN-39")
def test_a_prompt_sent_again_is_the_same_prompt_whatever_was_taken_out() -> None:
    sent = naming("open", "ours")

    assert sent.is_retry_of(naming("open"))
    assert sent.is_retry_of(sent)
    assert not sent.is_retry_of(naming("other"))
    assert not sent.is_retry_of(replace(naming("open"), content="Something else"))
    assert not sent.is_retry_of(amends())


@proves("OPEN-47")
def test_inside_a_fork_its_own_context_counts() -> None:
    talk = a_talk()
    talk.send(CAROL, context_add("key", to=["carol"]))
    fork = talk.fork("Aside", BOB, CLAUDE, copy=True)
    talk.send(BOB, context_add("key", to=["bob"]), fork=fork)

    facts = talk.decide(BOB, naming("key"), fork=fork)

    assert facts.records[0].said == naming()
    with expect_refusal(Reason.FORBIDDEN):
        talk.decide(BOB, naming("key"))


@proves("OPEN-43", "OPEN-47")
def test_a_prompt_in_a_fork_is_for_an_agent_in_it() -> None:
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)

    talk.send(BOB, prompt_submit(), id="q", fork=fork)

    assert talk.readers("q") == {"alice", "bob", "claude"}
    with expect_refusal(Reason.NO_MEMBER, f"codex is not an agent in the fork {fork}"):
        talk.decide(BOB, prompt_submit(CODEX), fork=fork)


def test_switching_forks_does_not_change_the_fork_of_a_message() -> None:
    """OPEN-47: a message without `fork` always means the trunk."""
    talk = a_talk()
    fork = talk.fork("Aside", BOB, CLAUDE)
    talk.send(BOB, fork_switch(fork))

    talk.send(BOB, prompt_submit(CODEX), id="q")

    assert len(talk.readers("q")) == 5
