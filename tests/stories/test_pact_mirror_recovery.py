"""A long pact: a real server that dies while it copies, real branches that git merges."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.pacts import encode_line, event, generate_events
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves
from tests.stories.test_pact_task_to_merge import TASKS, Shop, nudge, opened, recorded

EVENTS = 4000  # several blocks


def go_on(shop: Shop, number: int) -> None:
    """Another tool writes so many events at once."""
    with (shop.folder / ".pact" / "log.jsonl").open("ab") as log:
        for each in list(generate_events(number + 1))[1:]:
            log.write(encode_line(each))


def more(shop: Shop, name: str, number: int) -> None:
    """Somebody comes."""
    with (shop.folder / ".pact" / "log.jsonl").open("ab") as log:
        log.write(encode_line(event(number, "join", "bot", {}) | {"event_id": name}))
    shop.git("add", ".")
    shop.git("commit", "-q", "-m", f"chore: {name}")


def merged(shop: Shop) -> None:
    """Two branches that both went on, as one."""
    shop.git("add", ".")
    shop.git("commit", "-q", "-m", "chore: much work")
    shop.git("switch", "-q", "-c", "side")
    more(shop, "on-the-side", 9001)
    shop.git("switch", "-q", "main")
    more(shop, "on-main", 9000)
    shop.git("merge", "-q", "--no-edit", "side")


async def followed(server: ServerProcess, shop: Shop, repo: str) -> None:
    """Until the log has what the file has."""
    found: dict[str, Any] = {}
    while found.get("events") != len(shop.events()):
        found = await asyncio.to_thread(nudge, server, shop, repo)
    assert (found["unread"], found["trouble"]) == ([], "")


@proves("UNI-11", "UNI-17", "OPEN-137")
async def test_a_long_pact_is_copied_once_whatever_happens_and_told_in_short(
    server: ServerProcess, tmp_path: Path
) -> None:
    shop, repo, work = await opened(server, tmp_path)
    await asyncio.to_thread(go_on, shop, EVENTS)

    nudging = asyncio.create_task(asyncio.to_thread(nudge, server, shop, repo))
    server.kill()  # at any moment of the copy
    with suppress(OSError, ValueError, AssertionError):
        await nudging
    await asyncio.to_thread(server.start)
    await followed(server, shop, repo)
    await asyncio.to_thread(merged, shop)
    await followed(server, shop, repo)

    server.kill()
    lines = [json.loads(each["fact"]["line"]) for each in await mirrored(server, repo)]
    assert len(lines) == len(shop.events()) == EVENTS + 3
    assert {each["event_id"] for each in lines} == {each["event_id"] for each in shop.events()}
    told = await recorded(server, f"room/{work.session}", "tasks.mirrored")
    content = told[-1]["said"]["payload"]["content"]
    assert told[-1]["said"]["payload"]["key"] == TASKS
    tasks = len({each["task_id"] for each in shop.events()} - {""})
    assert len(content["tasks"]) + content["left_out"] == tasks
    assert all(len(json.dumps(each)) < 200_000 for each in told)


async def mirrored(server: ServerProcess, repo: str) -> list[dict[str, Any]]:
    return await recorded(server, f"work/{repo}", "pact.mirrored")
