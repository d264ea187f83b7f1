"""The tasks of a pact in a session's timeline."""

from typing import Any

from accord.show.timeline.timeline import Timeline


def told(*tasks: tuple[str, str]) -> dict[str, Any]:
    content = {
        "goal": "shop",
        "tasks": [
            {"id": id, "pact": {"status": status, "owner": "bob", "reviewer": "ann"}}
            for id, status in tasks
        ],
    }
    payload = {"key": "session:tasks", "content_type": "structured", "content": content}
    at = "2026-01-30T20:00:00Z"
    return {"id": "m", "type": "context.add", "sender": "system", "ts": at, "payload": payload}


def test_only_what_is_new_is_listed_and_in_words() -> None:
    timeline = Timeline()
    timeline.add(told(("T1", "assigned"), ("T2", "assigned")))
    timeline.add(told(("T1", "awaiting_review"), ("T2", "assigned")))
    timeline.add(told(("T1", "assigned"), ("T2", "assigned"), ("T3", "in_progress")))

    assert [turn.title for turn in timeline.turns] == [
        *("The pact has 2 tasks", "The pact has 2 tasks", "The pact has 3 tasks"),
    ]
    assert [turn.code.splitlines() for turn in timeline.turns] == [
        ["T1           assigned           bob → ann", "T2           assigned           bob → ann"],
        ["T1           awaiting review    bob → ann"],
        ["T1           assigned           bob → ann", "T3           in progress        bob → ann"],
    ]


def test_a_pact_that_is_shown_no_longer_is_listed_whole_when_it_comes_back() -> None:
    timeline = Timeline()
    shown = told(("T1", "assigned"))
    gone = {"key": "session:tasks", "reason": "The session left"}
    for said in (shown, shown | {"type": "context.remove", "payload": gone}, shown):
        timeline.add(said)

    first, over, again = timeline.turns
    assert (over.title, over.text) == ("The pact is no longer shown here", "The session left")
    assert first.code == again.code != ""
