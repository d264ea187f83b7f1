"""A finding, a fix and a review request wake the reviewer, though they name nobody."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.role_permissions import ThreadRole
from tests.helpers.threads.thread_rules import agent
from tests.transports.msg.waking.test_interrupted_wakes import Place

REVIEWER, SECOND = agent("rita", ThreadRole.REVIEWER), agent("rob", ThreadRole.REVIEWER)
PEOPLE = ["planner", "coder", "rita", "rob"]


class Review:
    """A thread of a coder and two reviewers, of whom `rita` has reported a finding."""

    def __init__(self, place: Place) -> None:
        self.place = place
        place.program.goes_on.set()  # every program that is started ends at once
        made = {"title": "T", "participants": PEOPLE}
        self.thread = place.run(
            place.local.call(agent("planner"), "create_thread", **made)
        ).thread_id
        self.finding = self.event(REVIEWER, "finding_reported", task_id="T-1")

    def event(self, who: Any, kind: str, reply: str | None = None, **about: str) -> str:
        metadata = {"event_type": kind, **about}
        more = {"kind": "event", "metadata": metadata}
        if reply:
            more["in_reply_to"] = reply
        posted = self.place.run(self.place.local.post(who, self.thread, "look", **more))
        self.place.react()
        return str(posted.message_id)

    def woken(self, act: Callable[[], object]) -> list[str]:
        """Whom it wakes, once every cool-down is over."""
        self.place.local.clock.at += 61 * 60_000
        before = len(self.place.program.jobs)
        act()
        return [job.target.agent for job in self.place.program.jobs[before:]]


@pytest.fixture
def review(tmp_path: Path) -> Iterator[Review]:
    place = Place(tmp_path / "keys")
    yield Review(place)
    place.run(place.wakes.stop())
    place.run(place.local.stop())
    place.runner.close()


def test_a_fix_wakes_the_reporter_of_the_finding_that_it_names(review: Review) -> None:
    review.event(SECOND, "finding_reported", task_id="T-2")
    coder = agent("coder")
    assert review.woken(lambda: review.event(coder, "fix_pushed", review.finding)) == ["rita"]
    assert review.woken(lambda: review.event(coder, "fix_pushed", task_id="T-2")) == ["rob"]
    request = "re_review_requested"
    assert review.woken(lambda: review.event(coder, request, task_id="T-1")) == ["rita"]


def test_what_names_no_finding_wakes_all_who_review(review: Review) -> None:
    review.place.run(review.place.local.post(SECOND, review.thread, "I look too"))
    review.place.react()
    for kind in ("fix_pushed", "re_review_requested", "finding_reported"):
        woken = review.woken(lambda event=kind: review.event(agent("coder"), event))  # type: ignore[misc]
        assert sorted(woken) == ["rita", "rob"], kind


def test_a_finding_of_a_reviewer_wakes_the_other_one_and_chat_wakes_nobody(
    review: Review,
) -> None:
    review.place.run(review.place.local.post(SECOND, review.thread, "I look too"))
    assert review.woken(lambda: review.event(REVIEWER, "finding_reported")) == ["rob"]
    assert review.woken(lambda: review.event(REVIEWER, "finding_verified", review.finding)) == []
