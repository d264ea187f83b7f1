"""A session in which two forks try two ways, and the shelf changed on both sides."""

from typing import Any

from accord.client import Session
from tests.helpers.page.team import Team

BEFORE = "def take(key: bytes, now: float) -> bool:\n    return True  # TODO\n"
BUCKET = """def take(key: bytes, now: float) -> bool:
    tokens, seen = store.get(key, (BURST, now))
    tokens = min(BURST, tokens + (now - seen) * RATE)
    if tokens < 1:
        return False
    store.set(key, (tokens - 1, now))
    return True
"""
WINDOW = """def take(key: bytes, now: float) -> bool:
    start = now - WINDOW
    with store.pipeline() as p:
        p.zremrangebyscore(key, 0, start)
        p.zadd(key, {token(): now})
        _, _, seen = p.zcard(key).execute()
    return seen <= LIMIT
"""
PLAN_OF_THE_FORK = "Limit: 5 tries a minute\nStore: Redis, a sorted set\n"
PLAN_OF_MAIN = "Limit: 5 tries a minute\nStore: Redis 7\n"
OPEN: dict[str, Any] = {"require_approval_for": []}


async def two_ways(team: Team) -> dict[str, Session]:
    """Returns the session by member; its forks are `token-bucket` and `sliding-window`."""
    room = await team.session("Which limiter", "jonas", "maya", "claude", "codex", **OPEN)
    jonas = room["jonas"]
    await jonas.prompt("Logins are being brute-forced. Count the tries of each account.", "claude")
    await jonas.add_context("plan.md", "Limit: 5 tries a minute\nStore: Redis\n")
    await jonas.prompt(
        "Which limiter holds when one address tries many accounts? Measure, don't argue.", "claude"
    )
    for name, agent, code, reached, took in (
        ("token-bucket", "claude", BUCKET, 2, "0.41"),
        ("sliding-window", "codex", WINDOW, 0, "0.63"),
    ):
        fork = await jonas.fork(name, ["maya", agent], reason=f"Does a {name} hold?")
        await work_in(room, fork, agent, code, f"reached {reached}   p99 {took} ms\n")
    await say(room, "token-bucket", "claude", "Fast. But it refills while they walk on.")
    await say(
        room,
        "sliding-window",
        "codex",
        "Counts what happened in the last minute, exactly. It costs one sorted set per key and "
        "0.2 ms, and **no account was reached**.",
    )
    await jonas.within("sliding-window").update_context("plan.md", PLAN_OF_THE_FORK)
    await jonas.update_context("plan.md", PLAN_OF_MAIN)
    return room


async def work_in(room: dict[str, Session], fork: str, agent: str, code: str, out: str) -> None:
    """An edit and a trial in the fork."""
    worker = room[agent].within(fork)
    prompt = await room["jonas"].within(fork).prompt(f"Try a {fork}.", agent)
    edit = {"path": "src/auth/limits.py", "old_string": BEFORE, "new_string": code}
    await run(worker, prompt, "edit", edit, "file_write", "")
    trial = {"command": "uv run python bench/walk.py --accounts 400"}
    await run(worker, prompt, "shell", trial, "shell_execute", f"400 accounts  60.0 s\n{out}")


async def run(
    worker: Session, prompt: str, tool: str, call: dict[str, str], category: str, out: str
) -> None:
    proposal = await worker.propose(tool, call, category=category, prompt=prompt)
    granted = await worker.decision(proposal)
    await worker.execute(granted)
    if out:
        await worker.output(granted, out)
    await worker.result(granted, success=True, duration_ms=61_000)


async def say(room: dict[str, Session], fork: str, agent: str, words: str) -> None:
    prompt = await room["jonas"].within(fork).prompt("And?", agent)
    async with room[agent].within(fork).respond(prompt) as answer:
        await answer.write(words)
