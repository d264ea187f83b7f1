"""Who may do what in a thread, and what each message changes."""

from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command
from accord.core.kernel.messages import Elapsed, Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.threads import CONTEXT
from accord.core.room.threads.state import (
    MessageKind,
    ThreadStatus,
    ThreadType,
    stream_of,
    version_of,
)
from accord.core.room.threads.thread_creation import MAX_PARTICIPANTS, ThreadAdd, ThreadCreate
from accord.core.room.threads.thread_findings import EVENT_TYPES, MAX_OPEN_FINDINGS
from accord.core.room.threads.thread_messages import (
    ThreadMessage,
    as_context_item,
    author_of,
    text_of,
)
from accord.core.room.threads.thread_posts import (
    MessagePosted,
    ThreadPost,
    addressees_of,
    is_same_post,
)
from accord.core.room.threads.thread_status import StatusChanged, ThreadSetStatus, is_same_change
from tests.helpers.threads.thread_rules import (
    OPERATOR,
    ORCHESTRATOR,
    OTHER,
    OUTSIDER,
    REVIEWER,
    SERVER,
    WORKER,
    ThreadRules,
    agent,
)
from tests.spec import proves

ACTIVE, BLOCKED, RESOLVED, CLOSED = ThreadStatus


def refusal(rules: ThreadRules, act: Any) -> Reason:
    """Why it is refused; nothing changes."""
    before = rules.state
    with pytest.raises(Refused) as refused:
        act()
    assert rules.state is before
    assert refused.value.detail
    return refused.value.reason


# Creating and access


@proves("MSG-2.1-1", "MSG-3.1-2", "MSG-2.1-2", "MSG-2.1-3")
def test_a_new_thread_is_active_and_has_the_given_fields() -> None:
    thread = ThreadRules().state
    assert (thread.status, thread.title, thread.type) == (ACTIVE, "Review", ThreadType.WORKFLOW)
    assert thread.participants == ("worker", "other", "reviewer")
    assert thread.created_by == "worker"
    assert thread.created_at == thread.updated_at
    assert thread.last_seq == 0
    assert set(ThreadType) == {"conversation", "workflow", "incident"}
    assert set(ThreadStatus) == {"active", "blocked", "resolved", "closed"}
    assert CONTEXT.initial_state(stream_of(thread.id)).id == thread.id


def test_a_thread_is_created_once() -> None:
    rules = ThreadRules()
    assert refusal(rules, rules.create) is Reason.KEY_REUSED
    assert refusal(rules, lambda: rules.create(OUTSIDER)) is Reason.FORBIDDEN


@proves("OPEN-123")
@pytest.mark.parametrize("actor", [WORKER, OTHER, REVIEWER, ORCHESTRATOR, OPERATOR, agent("boss")])
def test_participants_creator_operators_and_orchestrators_may_post(actor: Actor) -> None:
    rules = ThreadRules(created=False)
    rules.create(agent("boss"))
    assert rules.chat(actor).seq == 1


@proves("OPEN-123", "MSG-6-3")
def test_others_of_the_workspace_are_refused() -> None:
    rules = ThreadRules()
    assert refusal(rules, lambda: rules.chat(OUTSIDER)) is Reason.FORBIDDEN


@proves("OPEN-122", "MSG-6-4")
@pytest.mark.parametrize("role", ["worker", "lead", "olga"])
def test_to_another_workspace_a_thread_does_not_exist(role: str) -> None:
    rules = ThreadRules()
    from_there = {"worker": WORKER, "lead": ORCHESTRATOR, "olga": OPERATOR}[role]
    stranger = agent(from_there.principal, from_there.thread_role, "elsewhere")
    assert refusal(rules, lambda: rules.chat(stranger)) is Reason.NO_ROOM
    assert not CONTEXT.presence.is_member(rules.state, stranger)
    assert CONTEXT.presence.is_member(rules.state, WORKER)
    assert CONTEXT.presence.is_member(rules.state, SERVER)


def test_nothing_is_posted_to_a_thread_that_does_not_exist() -> None:
    rules = ThreadRules(created=False)
    assert refusal(rules, lambda: rules.chat(WORKER)) is Reason.NO_ROOM
    notice = ThreadPost(MessageKind.SYSTEM, "x")
    assert refusal(rules, lambda: rules.do(SERVER, notice)) is Reason.WRONG_STATE


def test_a_timer_changes_nothing() -> None:
    rules = ThreadRules()
    command = Command(Message("t", "", "th_1", "system", Elapsed()), SERVER, 0, {}, None)
    assert tuple(CONTEXT.decide[Elapsed](rules.state, command, Elapsed())) == ()


def test_participants_are_added_once_and_with_a_message() -> None:
    rules = ThreadRules()
    record = rules.do(WORKER, ThreadAdd(("new", "other")))
    assert rules.state.participants == ("worker", "other", "reviewer", "new")
    assert record.seq == rules.state.last_seq == 1
    assert isinstance(record.event, ThreadMessage)
    assert text_of(record.event) == "worker added new"
    again = ThreadAdd(("new",))
    assert refusal(rules, lambda: rules.do(WORKER, again)) is Reason.WRONG_STATE
    crowd = ThreadAdd(tuple(f"a{number}" for number in range(MAX_PARTICIPANTS)))
    assert refusal(rules, lambda: rules.do(WORKER, crowd)) is Reason.FULL
    rules.set(OPERATOR, CLOSED, "done")
    late = ThreadAdd(("late",))
    assert refusal(rules, lambda: rules.do(WORKER, late)) is Reason.WRONG_STATE


# Posting


@proves("MSG-2.2-2", "OPEN-132")
def test_seq_starts_at_one_and_has_no_gaps() -> None:
    rules = ThreadRules()
    numbers = [rules.chat(WORKER).seq, rules.set(WORKER, BLOCKED).seq, rules.chat(OTHER).seq]
    assert numbers == [1, 2, 3]
    assert [record.version for record in rules.records[1:]] == [version_of(n) for n in numbers]
    assert rules.state.posted == {"worker": 2, "other": 1}


@proves("MSG-2.2-4", "MSG-1.1-2")
def test_a_message_says_about_its_author_what_the_credential_says() -> None:
    event = ThreadRules().chat(REVIEWER).event
    assert isinstance(event, MessagePosted)
    told = (event.author_kind, event.role, event.session, event.verified)
    assert told == (Kind.AGENT, REVIEWER.thread_role, "run-reviewer", True)
    unchecked = ThreadRules().chat(Actor("worker", Kind.HUMAN, "http")).event
    assert isinstance(unchecked, MessagePosted)
    assert not unchecked.verified


@proves("UNI-8")
def test_pvp_clients_see_a_message_as_a_context_item() -> None:
    rules = ThreadRules()
    chat, event = rules.chat(WORKER), rules.event(WORKER, "fix_pushed")
    said = [record.said for record in (chat, event) if isinstance(record.said, ContextAdd)]
    assert said[0] == as_context_item(chat.id, MessageKind.CHAT, "hello")
    assert said[0].key == f"chat:{chat.id}"
    assert (said[0].content_type, said[0].tags) == ("text", ("chat",))
    assert said[1].tags == ("event:fix_pushed",)


@proves("OPEN-124", "MSG-2.2-3")
def test_only_the_server_posts_system_messages() -> None:
    rules = ThreadRules()
    notice = ThreadPost(MessageKind.SYSTEM, "no answer")
    assert refusal(rules, lambda: rules.do(OPERATOR, notice)) is Reason.FORBIDDEN
    assert author_of(rules.do(SERVER, notice)) == "system"


@proves("OPEN-124", "MSG-4-1", "MSG-1.2-3", "MSG-2.2-5")
def test_an_event_needs_a_type_and_unknown_types_are_stored() -> None:
    rules = ThreadRules()
    for name in (*EVENT_TYPES, "deployment_started"):
        event = rules.event(WORKER, name, event_version=2).event
        assert isinstance(event, ThreadMessage)
        assert event.metadata == {"event_type": name, "event_version": 2}
    assert rules.state.last_seq == len(EVENT_TYPES) + 1
    for metadata in (None, {}, {"event_type": 7}, {"event_type": "Not Snake"}):
        bad = ThreadPost(MessageKind.EVENT, "x", metadata)
        assert refusal(rules, lambda bad=bad: rules.do(WORKER, bad)) is Reason.MALFORMED


def test_a_message_is_addressed_to_participants_only() -> None:
    rules = ThreadRules()
    event = rules.chat(WORKER, to=["other", "reviewer"]).event
    assert isinstance(event, ThreadMessage)
    assert addressees_of(event) == ("other", "reviewer")
    plain = rules.chat(WORKER).event
    assert isinstance(plain, ThreadMessage)
    assert addressees_of(plain) == ()
    for to in (["outsider"], "other", [1]):
        assert refusal(rules, lambda to=to: rules.chat(WORKER, to=to)) is Reason.MALFORMED


@proves("OPEN-116")
def test_a_retry_is_the_same_in_every_field() -> None:
    rules = ThreadRules()
    event = rules.chat(WORKER, "hello", a=1).event
    assert isinstance(event, ThreadMessage)
    same = ThreadPost(MessageKind.CHAT, "hello", {"a": 1})
    assert is_same_post(event, same, None)
    assert same.is_retry_of(as_context_item("m", MessageKind.CHAT, "hello"))
    others = [
        (ThreadPost(MessageKind.CHAT, "hello!", {"a": 1}), None),
        (ThreadPost(MessageKind.CHAT, "hello", {"a": 2}), None),
        (ThreadPost(MessageKind.CHAT, "hello"), None),
        (ThreadPost(MessageKind.EVENT, "hello", {"a": 1}), None),
        (same, "m1"),
    ]
    assert not any(is_same_post(event, body, ref) for body, ref in others)


def test_an_item_without_text_reads_as_an_empty_one() -> None:
    item = as_context_item("m", MessageKind.CHAT, "x")
    event = MessagePosted(said=type(item)(key="k", content_type="structured", content={"a": 1}))
    assert text_of(event) == ""


# Findings


@proves("OPEN-120")
def test_a_finding_is_closed_by_its_reporter_a_reviewer_an_orchestrator_or_an_operator() -> None:
    for closer in (OTHER, REVIEWER, ORCHESTRATOR, OPERATOR):
        for verdict in ("finding_verified", "finding_rejected"):
            rules = ThreadRules()
            finding = rules.event(OTHER, "finding_reported", severity="high", task_id="T-1")
            assert rules.state.is_disputed
            rules.event(WORKER, verdict, finding.id)
            assert rules.state.findings, "a worker's verdict is stored and closes nothing"
            rules.event(closer, verdict, finding.id)
            assert not rules.state.findings


def test_a_finding_is_never_closed_by_who_pushed_its_fix() -> None:
    rules = ThreadRules()
    finding = rules.event(REVIEWER, "finding_reported", task_id="T-1")
    rules.event(REVIEWER, "fix_pushed", task_id="T-1")
    rules.event(REVIEWER, "finding_verified", finding.id)
    rules.event(REVIEWER, "thread_resolved")
    assert rules.state.findings[finding.id].fixed_by == {"reviewer"}
    rules.event(ORCHESTRATOR, "thread_resolved")
    assert not rules.state.findings


def test_a_task_id_names_a_finding_only_if_it_is_the_only_one() -> None:
    rules = ThreadRules()
    rules.event(OTHER, "finding_reported", task_id="T-1")
    rules.event(OTHER, "finding_reported", task_id="T-1")
    rules.event(REVIEWER, "finding_verified", task_id="T-1")
    rules.event(REVIEWER, "finding_verified")
    rules.event(WORKER, "fix_pushed", "m99")
    assert len(rules.state.findings) == 2
    rules.event(OTHER, "finding_reported", task_id="T-2", severity=5)
    rules.event(REVIEWER, "finding_rejected", task_id="T-2")
    assert len(rules.state.findings) == 2


def test_an_escalation_ends_with_thread_resolved_of_the_right_role() -> None:
    rules = ThreadRules()
    rules.event(WORKER, "thread_escalated")
    rules.event(WORKER, "thread_resolved")
    assert rules.state.is_disputed
    rules.event(REVIEWER, "thread_resolved")
    assert not rules.state.is_disputed


def test_open_findings_are_limited() -> None:
    rules = ThreadRules()
    for _ in range(MAX_OPEN_FINDINGS):
        rules.event(OTHER, "finding_reported")
    assert refusal(rules, lambda: rules.event(OTHER, "finding_reported")) is Reason.FULL
    rules.event(OTHER, "fix_pushed")


# Status


@proves("OPEN-120", "OPEN-121", "MSG-3.5-2", "MSG-6-13", "MSG-6-6")
@pytest.mark.parametrize("actor", [WORKER, REVIEWER, ORCHESTRATOR, OPERATOR])
@pytest.mark.parametrize("before", list(ThreadStatus))
@pytest.mark.parametrize("after", list(ThreadStatus))
def test_each_change_of_thread_status_is_allowed_or_refused_as_listed(
    actor: Actor, before: ThreadStatus, after: ThreadStatus
) -> None:
    rules = ThreadRules()
    if before is not ACTIVE:
        rules.set(OPERATOR, before, "set up", force=True)
    plain = {
        (ACTIVE, BLOCKED),
        (BLOCKED, ACTIVE),
        (ACTIVE, RESOLVED),
        (BLOCKED, RESOLVED),
        (RESOLVED, ACTIVE),
        (RESOLVED, CLOSED),
    }
    overrides = {(ACTIVE, CLOSED), (BLOCKED, CLOSED), (CLOSED, ACTIVE)}
    leads = actor in (ORCHESTRATOR, OPERATOR)
    if (before, after) in plain and not (actor is WORKER and before is BLOCKED):
        expected = None
    elif (before, after) in plain:
        expected = Reason.NO_AUTHORITY
    elif (before, after) in overrides:
        expected = None if leads else Reason.NO_AUTHORITY
    else:
        expected = Reason.WRONG_STATE
    if expected is not None:
        assert refusal(rules, lambda: rules.set(actor, after, "because")) is expected
        return
    record = rules.set(actor, after, "because")
    assert rules.state.status is after
    assert isinstance(record.event, StatusChanged)
    assert (record.event.kind, record.event.previous) == (MessageKind.SYSTEM, before)
    assert text_of(record.event).endswith(f"from {before} to {after}: because")


@proves("MSG-3.5-1")
def test_a_reason_is_needed_for_overrides_only() -> None:
    rules = ThreadRules()
    assert refusal(rules, lambda: rules.set(OPERATOR, CLOSED)) is Reason.MALFORMED
    rules.set(WORKER, RESOLVED)
    assert refusal(rules, lambda: rules.set(OPERATOR, BLOCKED, force=True)) is Reason.MALFORMED


def test_a_worker_ends_a_block_that_it_set_itself() -> None:
    rules = ThreadRules()
    rules.set(WORKER, BLOCKED)
    assert refusal(rules, lambda: rules.set(OTHER, ACTIVE)) is Reason.NO_AUTHORITY
    rules.set(WORKER, ACTIVE)
    assert rules.state.blocked_by == ""


@proves("MSG-3.5-3")
def test_a_worker_does_not_close_a_disputed_thread() -> None:
    rules = ThreadRules()
    finding = rules.event(OTHER, "finding_reported")
    rules.set(WORKER, RESOLVED)
    assert refusal(rules, lambda: rules.set(WORKER, CLOSED)) is Reason.NO_AUTHORITY
    rules.event(OTHER, "finding_verified", finding.id)
    rules.set(WORKER, CLOSED)
    assert rules.state.status is CLOSED


@proves("UNI-16")
def test_force_needs_a_human_operator() -> None:
    rules = ThreadRules()
    rules.set(ORCHESTRATOR, CLOSED, "done")
    forced = ThreadSetStatus(RESOLVED, "reopen", force=True)
    assert refusal(rules, lambda: rules.do(ORCHESTRATOR, forced)) is Reason.NO_AUTHORITY
    event = rules.do(OPERATOR, forced).event
    assert isinstance(event, StatusChanged)
    assert event.forced


def test_a_closed_thread_takes_no_messages() -> None:
    rules = ThreadRules()
    rules.set(OPERATOR, CLOSED, "done")
    assert refusal(rules, lambda: rules.chat(WORKER)) is Reason.WRONG_STATE


@proves("OPEN-117")
def test_a_retry_of_a_change_is_the_same_in_every_field() -> None:
    rules = ThreadRules()
    event = rules.set(WORKER, BLOCKED, "wait").event
    assert isinstance(event, StatusChanged)
    assert is_same_change(event, ThreadSetStatus(BLOCKED, "wait"))
    assert not is_same_change(event, ThreadSetStatus(BLOCKED, "other"))
    assert ThreadSetStatus(BLOCKED).is_retry_of(ThreadAdd(("x",)))
    assert ThreadAdd(("x",)).is_retry_of(ThreadCreate("w", "t", ThreadType.INCIDENT, ()))
