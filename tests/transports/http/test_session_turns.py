"""Turns backwards over HTTP: each message once, chunks joined, only what the reader may see."""

from collections.abc import Callable
from typing import Any

from accord.client import Envelope
from tests.helpers.attacks.approval_scene import get
from tests.helpers.clients.three_member_session import open_session
from tests.helpers.servers.server_process import ServerProcess


async def read_pages(server: ServerProcess, session: str, who: str, limit: int) -> list[Any]:
    token = server.issue_token(who)
    pages: list[Any] = []
    before, more = 0, True
    while more:
        url = f"{server.url}/sessions/{session}/turns?before={before}&limit={limit}"
        status, page = await get(url, token)
        assert status == 200
        pages.insert(0, page)
        before, more = page["first"], page["has_more"]
    return pages


def texts(pages: list[Any], type: str) -> list[str]:
    return [
        message["payload"]["text"]
        for page in pages
        for message in page["messages"]
        if message["type"] == type
    ]


def is_message(id: str) -> Callable[[Envelope], bool]:
    return lambda item: item.id == id


async def test_turns_backwards_have_every_answer_whole_and_once(
    server: ServerProcess,
) -> None:
    async with open_session(server) as room:
        for number in range(5):
            prompt = await room.alice.prompt(f"Question {number}", "claude")
            await room.claude_listener.wait_for(is_message(prompt))
            async with room.claude.respond(prompt) as out:
                for word in ("Answer", " number", f" {number}"):
                    await out.write(word)
        session = room.alice.id
        for limit in (1, 2, 100):
            pages = await read_pages(server, session, "alice", limit)
            assert texts(pages, "response.chunk") == [f"Answer number {n}" for n in range(5)]
        newest = (await read_pages(server, session, "alice", 1))[-1]
        status, refused = await get(
            f"{server.url}/sessions/{session}/turns?limit=0",
            server.issue_token("alice"),
        )

    assert newest["messages"][0]["type"] == "prompt.submit"
    assert newest["messages"][0]["seq"] == newest["first"]
    assert newest["last_id"] == newest["messages"][-1]["id"]
    chunk = next(item for item in newest["messages"] if item["type"] == "response.chunk")
    assert chunk["payload"]["folded"]["chunks"] == 3
    assert (status, refused["error"]["code"]) == (400, "INVALID_MESSAGE")


async def test_turns_leave_out_what_the_reader_may_not_see(server: ServerProcess) -> None:
    async with open_session(server) as room:
        fork = await room.alice.fork("Aside", ["claude"], reason="Quietly")
        aside = room.alice.within(fork)
        await aside.prompt("Between us", "claude")
        mine = await read_pages(server, room.alice.id, "alice", 100)
        theirs = await read_pages(server, room.alice.id, "bob", 100)
        status, _ = await get(
            f"{server.url}/sessions/{room.alice.id}/turns",
            server.issue_token("mallory"),
        )

    assert "Between us" in str(mine)
    assert "Between us" not in str(theirs)
    assert status == 404
