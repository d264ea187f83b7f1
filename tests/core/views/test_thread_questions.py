"""What waits for a participant of a thread."""

from accord.core.kernel.actor import Actor
from accord.core.room.threads.state import ThreadStatus
from accord.core.views.thread_questions import questions_in
from tests.helpers.threads.thread_rules import (
    OPERATOR,
    OTHER,
    OUTSIDER,
    REVIEWER,
    WORKER,
    ThreadRules,
)


def asked(rules: ThreadRules, who: Actor) -> list[tuple[str, int, str]]:
    return [(each["kind"], each["seq"], each["by"]) for each in questions_in(rules.state, who)]


def test_a_message_waits_for_those_it_names_until_they_post() -> None:
    rules = ThreadRules()
    rules.chat(WORKER, "who can look?", to=["other", "reviewer", "worker"])
    rules.chat(REVIEWER, "and this?", to=["other"])
    assert asked(rules, OTHER) == [("addressed", 1, "worker")], "the first one counts"
    assert asked(rules, REVIEWER) == [], "a post is an answer"
    assert asked(rules, WORKER) == [], "nobody waits for oneself"
    [entry] = questions_in(rules.state, OTHER)
    assert (entry["thread"], entry["title"], entry["message_id"]) == ("th_1", "Review", "m2")
    assert entry["since"]
    rules.chat(OTHER, "done")
    assert asked(rules, OTHER) == []


def test_a_finding_waits_for_a_fix_and_then_for_a_verdict() -> None:
    rules = ThreadRules()
    finding = rules.event(REVIEWER, "finding_reported", severity="high", task_id="F1")
    assert asked(rules, WORKER) == asked(rules, OTHER) == [("finding_open", 1, "reviewer")]
    assert asked(rules, REVIEWER) == []
    [entry] = questions_in(rules.state, WORKER)
    assert (entry["severity"], entry["task_id"], entry["since"]) == ("high", "F1", None)
    rules.event(WORKER, "fix_pushed", finding.id)
    assert asked(rules, REVIEWER) == [("finding_fixed", 1, "reviewer")]
    assert asked(rules, WORKER) == asked(rules, OTHER) == []
    rules.event(REVIEWER, "finding_verified", finding.id)
    assert asked(rules, REVIEWER) == []


def test_another_reviewer_may_verify_a_fix_and_who_pushed_it_may_not() -> None:
    rules = ThreadRules()
    finding = rules.event(WORKER, "finding_reported")
    rules.event(REVIEWER, "fix_pushed", finding.id)
    assert asked(rules, WORKER) == [("finding_fixed", 1, "worker")]
    assert asked(rules, REVIEWER) == []


def test_threads_of_others_and_threads_that_are_over_ask_nothing() -> None:
    rules = ThreadRules()
    rules.chat(WORKER, "?", to=["other"])
    rules.event(WORKER, "finding_reported")
    assert asked(rules, OUTSIDER) == asked(rules, OPERATOR) == []
    rules.set(REVIEWER, ThreadStatus.RESOLVED)
    assert asked(rules, OTHER) == []
