"""The approval of a merge covers the fork as it was proposed."""

from typing import Any

import pytest

from accord.core.kernel.actor import POLICY_ACTOR
from accord.core.kernel.refusal import Reason
from accord.core.room.approval.votes import GateRejected
from accord.core.room.conversation.responses import ResponseChunk, ResponseStart
from accord.core.room.forking.conflicts import MergeResolution
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.merge_approval import CommitReport
from accord.core.room.forking.merges import MergeExecute, MergeExecuted, MergePropose
from accord.core.room.state import Room
from accord.core.views import sessions
from tests.helpers.room.logged_room import LoggedRoom, context_add
from tests.helpers.room.merge_scenarios import room_with_fork, with_conflict
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    expect_refusal,
    gate_approve,
    gate_on,
    prompt_submit,
    tool_approve,
    tool_propose,
)
from tests.spec import proves

HEAD = "0123456789abcdef0123456789abcdef01234567"


def propose(talk: LoggedRoom, id: str = "m", head: Any = None) -> None:
    """Claude proposes to merge the fork, which needs approval."""
    metadata = None if head is None else {"head": head}
    body = MergePropose("aside", "", MergeStrategy.APPEND, "Done", metadata)
    talk.send(CLAUDE, body, id=id)


def approved(talk: LoggedRoom) -> LoggedRoom:
    """The fork's merge `m` is proposed and approved."""
    propose(talk)
    talk.send(ALICE, gate_approve(ALICE, "m"))
    return talk


@proves("OPEN-48")
@pytest.mark.parametrize(
    "change",
    [context_add("new", "x"), prompt_submit(), tool_propose()],
    ids=lambda body: body.type,
)
@pytest.mark.parametrize("when", ["before the vote", "after the vote"])
def test_a_later_message_of_the_fork_voids_the_approval(change: Any, when: str) -> None:
    talk = room_with_fork()
    propose(talk)
    sender = CLAUDE if change.type == "tool.propose" else BOB
    if when == "after the vote":
        talk.send(ALICE, gate_approve(ALICE, "m"))
    talk.send(sender, change, fork="aside")

    sentence = f"aside changed after the merge was proposed \\({change.type} "
    if when == "before the vote":
        with expect_refusal(Reason.GATE_FAILED, sentence):
            talk.decide(ALICE, gate_approve(ALICE, "m"))
    else:
        with expect_refusal(Reason.GATE_FAILED, sentence):
            talk.decide(BOB, MergeExecute("m"))
    (merge,) = sessions.session_detail(talk.room, "bob")["merges"]
    assert merge["changed"].startswith(change.type)


@proves("OPEN-48")
def test_a_void_merge_is_proposed_again() -> None:
    talk = room_with_fork()
    propose(talk)
    talk.send(BOB, context_add("new", "x"), fork="aside")

    facts = talk.send(CLAUDE, MergePropose("aside", "", MergeStrategy.APPEND, "Again"), id="again")

    assert any(isinstance(fact, GateRejected) for fact in facts)
    assert {*talk.room.merges} == {"again"}
    talk.send(ALICE, gate_approve(ALICE, "again"))
    talk.send(BOB, MergeExecute("again"))
    with expect_refusal(Reason.GATE_FAILED, "The merge m was rejected"):
        talk.decide(BOB, MergeExecute("m"))


@proves("OPEN-48")
def test_votes_and_gates_in_the_fork_leave_the_approval() -> None:
    talk = room_with_fork()
    talk.send(CLAUDE, tool_propose(), id="p", fork="aside")
    approved(talk)
    from tests.helpers.room.scenario import tool_reject

    talk.send(BOB, tool_reject(BOB, "p"), fork="aside")

    assert any(isinstance(fact, MergeExecuted) for fact in talk.send(BOB, MergeExecute("m")))


@proves("OPEN-48")
def test_messages_elsewhere_leave_the_approval() -> None:
    talk = approved(room_with_fork())
    talk.send(BOB, context_add("new", "x"))

    assert any(isinstance(fact, MergeExecuted) for fact in talk.send(BOB, MergeExecute("m")))


@proves("OPEN-48")
def test_an_answer_that_is_open_in_the_fork_voids_the_approval() -> None:
    talk = room_with_fork()
    talk.send(BOB, prompt_submit(), id="q", fork="aside")
    talk.send(CLAUDE, ResponseStart("claude", "q"), id="answer", fork="aside")
    approved(talk)
    talk.send(CLAUDE, ResponseChunk("more"), ref="answer", fork="aside")

    with expect_refusal(Reason.GATE_FAILED, "an answer that is still open"):
        talk.decide(BOB, MergeExecute("m"))


@proves("OPEN-48")
def test_a_grant_that_is_issued_in_the_fork_later_voids_the_approval() -> None:
    talk = room_with_fork()
    talk.send(CLAUDE, tool_propose(), id="p", fork="aside")
    approved(talk)
    talk.send(BOB, tool_approve(BOB, "p"), fork="aside")

    with expect_refusal(Reason.GATE_FAILED, "tool.execute"):
        talk.decide(BOB, MergeExecute("m"))


def test_a_merge_that_needs_no_approval_takes_the_fork_as_it_is() -> None:
    talk = room_with_fork()
    talk.send(BOB, MergePropose("aside", "", MergeStrategy.APPEND, "Done"), id="m")
    talk.send(BOB, context_add("new", "x"), fork="aside")

    assert any(isinstance(fact, MergeExecuted) for fact in talk.send(BOB, MergeExecute("m")))


@proves("OPEN-48")
def test_the_gate_shows_the_commit_that_is_to_be_merged() -> None:
    talk = room_with_fork()
    propose(talk, head=HEAD)

    assert "wants to merge aside at commit 0123456789ab into" in gate_on(talk.room, "m").message
    (merge,) = sessions.session_detail(talk.room, "bob")["merges"]
    assert merge["head"] == HEAD


@pytest.mark.parametrize("head", ["HEAD", "abc", HEAD.upper(), HEAD + "0", 7, ""])
def test_a_head_that_is_no_commit_is_refused(head: Any) -> None:
    with expect_refusal(Reason.MALFORMED, r"metadata\.head must be a whole commit id"):
        propose(room_with_fork(), head=head)


@proves("OPEN-48")
@pytest.mark.parametrize("when", ["before the vote", "after the vote"])
def test_a_later_commit_on_the_fork_s_branch_voids_the_approval(when: str) -> None:
    talk = room_with_fork()
    propose(talk, head=HEAD)
    if when == "after the vote":
        talk.send(ALICE, gate_approve(ALICE, "m"))
    talk.send(POLICY_ACTOR, CommitReport("repo", "f" * 40, "aside"))
    talk.send(POLICY_ACTOR, CommitReport("repo", "e" * 40, "aside"))

    sentence = (
        r"aside changed after the merge was proposed \(commit ffffffffffff\); propose it again"
    )
    with expect_refusal(Reason.GATE_FAILED, sentence):
        if when == "before the vote":
            talk.decide(ALICE, gate_approve(ALICE, "m"))
        else:
            talk.decide(BOB, MergeExecute("m"))
    propose(talk, "again", "f" * 40)
    talk.send(ALICE, gate_approve(ALICE, "again"))
    assert any(isinstance(fact, MergeExecuted) for fact in talk.send(BOB, MergeExecute("again")))


@proves("OPEN-48")
@pytest.mark.parametrize(
    ("head", "report"),
    [
        (HEAD, CommitReport("repo", HEAD, "aside")),
        (HEAD, CommitReport("repo", "f" * 40)),
        (HEAD, CommitReport("repo", "f" * 40, "other")),
        (None, CommitReport("repo", "f" * 40, "aside")),
    ],
    ids=["its head", "the trunk", "another fork", "no head shown"],
)
def test_a_commit_that_is_no_change_of_what_was_shown_leaves_the_approval(
    head: str | None, report: CommitReport
) -> None:
    talk = room_with_fork()
    propose(talk, head=head)
    talk.send(ALICE, gate_approve(ALICE, "m"))
    talk.send(POLICY_ACTOR, report)

    assert any(isinstance(fact, MergeExecuted) for fact in talk.send(BOB, MergeExecute("m")))


def test_a_commit_of_a_session_that_does_not_exist_is_not_noted() -> None:
    talk = LoggedRoom(Room(id="ghost"))

    assert talk.send(POLICY_ACTOR, CommitReport("repo", HEAD)) == []


@proves("OPEN-48")
def test_values_of_one_s_own_are_marked_as_not_approved() -> None:
    talk = approved(with_conflict(room_with_fork()))
    own = MergeResolution("a", "custom", "mine")

    facts = talk.send(BOB, MergeExecute("m", (own,), not_approved=("forged",)))

    (executed,) = (fact for fact in facts if isinstance(fact, MergeExecuted))
    assert executed.said.not_approved == ("a",)


@proves("OPEN-48")
def test_an_unresolved_conflict_names_the_flags_that_resolve_it() -> None:
    talk = approved(with_conflict(room_with_fork()))

    with expect_refusal(Reason.WRONG_STATE, "`--use-source a` or `--use-target a`"):
        talk.decide(BOB, MergeExecute("m"))
