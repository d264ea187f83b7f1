"""Findings in a session, and its resolution, by the rules of threads."""

import pytest
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.role_permissions import Role
from accord.core.room.discussion import Discussion, Finding
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.threads.message_tags import tags_of
from accord.core.room.threads.session_events import discussion_in
from accord.core.room.threads.state import MessageKind, ThreadStatus
from accord.core.room.threads.thread_findings import MAX_OPEN_FINDINGS
from accord.core.views.session_threads import SessionThread
from tests.helpers.room.logged_room import LoggedRoom
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    CODEX,
    gate_request,
    prompt_submit,
)
from tests.spec import proves


@pytest.fixture
def logged() -> LoggedRoom:
    """Alice leads, Bob reviews, and two agents work."""
    return LoggedRoom.with_members(
        (ALICE, Role.ADMIN), (BOB, Role.NAVIGATOR), (CLAUDE, Role.DRIVER), (CODEX, Role.DRIVER)
    )


def event(
    logged: LoggedRoom,
    actor: Actor,
    type: str,
    *,
    ref: str | None = None,
    fork: str | None = None,
    **metadata: str,
) -> str:
    """Post an event as `post_message` does; its id."""
    tags = tags_of(MessageKind.EVENT, {"event_type": type, **metadata})
    key = f"event:{type}{len(logged.room.shelf.get(fork or '', {}))}"
    said = ContextAdd(key=key, content_type="text", content=f"about {type}", tags=tags)
    [record] = logged.send(actor, said, ref=ref, fork=fork).records
    return record.id


def open_in(logged: LoggedRoom, fork: str | None = None) -> list[str]:
    return list(discussion_in(logged.room, fork).findings)


@proves("UNI-6", "OPEN-131")
def test_findings_are_closed_by_those_who_may(logged: LoggedRoom) -> None:
    first = event(logged, CLAUDE, "finding_reported", severity="high", task_id="T1")
    second = event(logged, BOB, "finding_reported")
    assert open_in(logged) == [first, second]
    found = discussion_in(logged.room, None).findings[first]
    assert (found.reporter, found.severity, found.task_id) == ("claude", "high", "T1")
    event(logged, CODEX, "finding_verified", ref=first)
    assert open_in(logged) == [first, second], "a worker that did not report it"
    event(logged, BOB, "fix_pushed", ref=first)
    event(logged, BOB, "finding_verified", ref=first)
    assert open_in(logged) == [first, second], "who pushed the fix"
    event(logged, CLAUDE, "finding_verified", task_id="T1")
    assert open_in(logged) == [second]
    event(logged, ALICE, "finding_rejected", ref=second)
    assert open_in(logged) == []
    event(logged, ALICE, "deployment_started")


@proves("UNI-12")
def test_a_fork_has_findings_of_its_own(logged: LoggedRoom) -> None:
    fork = logged.fork("try", CLAUDE, by=ALICE)
    inside = event(logged, CLAUDE, "finding_reported", fork=fork)
    assert (open_in(logged), open_in(logged, fork)) == ([], [inside])
    event(logged, CLAUDE, "thread_escalated", fork=fork)
    assert discussion_in(logged.room, fork).escalated
    assert not discussion_in(logged.room, None).escalated


def test_an_item_that_is_no_event_opens_nothing(logged: LoggedRoom) -> None:
    tags = ("event:finding_reported",)
    for key, content in (("notes", "x"), ("event:1", {"a": 1})):
        kind = "text" if isinstance(content, str) else "structured"
        said = ContextAdd(key=key, content_type=kind, content=content, tags=tags)  # type: ignore[arg-type]
        logged.send(CLAUDE, said)
    untagged = ContextAdd(key="event:2", content_type="text", content="x", tags=("Event:x",))
    logged.send(CLAUDE, untagged)
    assert logged.room.discussions == {}


def test_findings_beyond_the_limit_are_not_kept(logged: LoggedRoom) -> None:
    many = {str(number): Finding(number, "claude") for number in range(MAX_OPEN_FINDINGS)}
    logged.room = replace(logged.room, discussions={"": Discussion(findings=many)})
    event(logged, CLAUDE, "finding_reported")
    assert len(open_in(logged)) == MAX_OPEN_FINDINGS


@proves("UNI-6")
def test_an_operator_resolves_a_session_until_the_next_prompt_or_finding(
    logged: LoggedRoom,
) -> None:
    def status() -> ThreadStatus:
        return SessionThread(logged.room).status

    finding = event(logged, CLAUDE, "finding_reported")
    event(logged, CLAUDE, "thread_resolved")
    assert open_in(logged) == [finding], "a worker resolves nothing"
    event(logged, BOB, "thread_resolved")
    assert (open_in(logged), status()) == ([], ThreadStatus.ACTIVE), "a reviewer is no operator"
    event(logged, ALICE, "thread_resolved")
    assert status() is ThreadStatus.RESOLVED
    before = logged.room.discussions
    event(logged, ALICE, "thread_resolved")
    assert logged.room.discussions is before
    event(logged, CLAUDE, "finding_reported")
    assert status() is ThreadStatus.ACTIVE
    event(logged, ALICE, "thread_resolved")
    assert status() is ThreadStatus.RESOLVED
    logged.send(ALICE, prompt_submit(CLAUDE))
    assert status() is ThreadStatus.ACTIVE
    logged.send(ALICE, prompt_submit(CLAUDE))


def test_what_waits_for_a_decision_is_not_resolved(logged: LoggedRoom) -> None:
    asked = event(logged, CLAUDE, "finding_reported")
    logged.send(CLAUDE, gate_request(asked))
    event(logged, ALICE, "thread_resolved")
    assert not discussion_in(logged.room, None).resolved
