"""Threads of a team's afternoon: a review with findings, a question, and what is done."""

from typing import Any

from tests.helpers.page.team import Team


def event(type: str, **about: str) -> dict[str, Any]:
    """The arguments of an event."""
    return {"kind": "event", "metadata": {"event_type": type, **about}}


async def threads_of_an_afternoon(team: Team) -> str:
    """Returns the review of the login limits, with an open finding that was fixed."""
    maya, codex, claude, gemini, priya = [
        (await team.client(id)).threads for id in ("maya", "codex", "claude", "gemini", "priya")
    ]
    for title in ("Nightly dependency report", "Invoice template handoff"):
        done = await gemini.create(title, ["maya"])
        await gemini.post(done.thread_id, "3 updates, none urgent.")
        await maya.acknowledge(done.thread_id, 1)
    owner = await priya.create("Who owns the staging database?", ["maya", "jonas"])
    await priya.post(owner.thread_id, "Platform, until Friday.")
    await maya.acknowledge(owner.thread_id, 1)
    build = await gemini.create("Python 3.13: build scripts", ["maya"])
    await gemini.post(
        build.thread_id, "tomllib or tomli? I would take tomllib.", metadata={"to": ["maya"]}
    )
    review = (
        await maya.create("Review: login limits", ["codex", "claude", "maya"], type="workflow")
    ).thread_id
    await maya.post(
        review,
        "codex, please try to break the limiter on `fix/login-limit`. claude wrote it.",
        metadata={"to": ["codex"]},
    )
    await codex.acknowledge(review, 1)
    await claude.read(review)
    grows = await codex.post(
        review,
        "**The set grows without end.** Old entries are never removed.",
        **event("finding_reported", severity="medium", path="src/auth/limits.py:31"),
    )
    await maya.post(
        review, "Not a problem: it expires.", **event("finding_rejected"), reply_to=grows.message_id
    )
    finding = await codex.post(
        review,
        "**Retry-After gives away where the window starts.** Asking twice, a few milliseconds "
        "apart, tells the exact second at which the next five tries open.",
        **event("finding_reported", severity="high", path="src/auth/limits.py:48", task_id="T44"),
    )
    await claude.read(review)
    await claude.post(
        review,
        "True. Rounded up to whole minutes in `5e1b2c7`, with a test that asks 1,000 times. "
        "Please look again.",
        **event("fix_pushed", commit="5e1b2c7"),
        reply_to=finding.message_id,
    )
    await maya.post(review, "codex, is it gone?", metadata={"to": ["codex"]})
    return review
