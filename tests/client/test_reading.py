"""What a client reads over HTTP, without a connection of its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from accord.client import Client, ServerRefused, Unreachable
from accord.client.web import refusal
from accord.core.kernel.ballot import AnyOf
from accord.core.room.prompts import PromptSubmit
from accord.core.room.votes import GateApprove
from tests.client.people import a_room, client
from tests.client.test_backoff import nobody_listens
from tests.helpers.server import ServerProcess

Reading = Callable[[Client], Awaitable[object]]
READINGS: dict[str, Reading] = {
    "sessions": lambda client: client.sessions(),
    "session": lambda client: client.session("s"),
    "transcript": lambda client: client.transcript("s"),
}


async def test_the_list_one_session_and_what_was_said(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        await room.alice.prompt("Hello", "claude")
        proposal = await room.claude.propose(
            "sh", {"command": ["ls"]}, category="shell_execute", risk="high", description="Look"
        )
        reader = client(hall, "bob")

        (line,) = [each for each in await reader.sessions() if each.id == room.alice.id]
        detail = await reader.session(room.alice.id)
        page = await reader.transcript(room.alice.id, after=2, limit=3)
        said = [envelope async for envelope in reader.history(room.alice.id)]

        assert (line.id, line.status, line.standing) == (room.alice.id, "active", "member")
        assert [member.id for member in detail.members] == ["alice", "bob", "claude"]
        (gate,) = detail.gates
        assert (gate.initiator, gate.request.action_ref) == ("claude", proposal)
        assert (gate.request.quorum, gate.approvals_required) == (AnyOf(1), 1)
        assert gate.action is not None
        assert gate.action.arguments == {"command": ["ls"]}
        assert [tool.id for tool in detail.tools] == [proposal]
        assert ([each.seq for each in page.messages], page.next, page.has_more) == (
            [3, 4, 5],
            5,
            True,
        )
        await room.his.until_seq(said[-1].seq)
        assert room.his.kept == [each for each in said if each.seq >= room.his.kept[0].seq]


async def test_a_vote_without_joining(hall: ServerProcess) -> None:
    """`accord approve` does this."""
    async with a_room(hall) as room:
        proposal = await room.claude.propose("sh", {}, category="shell_execute")
        async with client(hall, "bob") as shell:
            (gate,) = (await shell.session(room.alice.id)).gates
            vote = await shell.post(room.alice.id, GateApprove(gate.id, "bob", "From a shell"))

            with pytest.raises(ServerRefused, match="is closed already"):
                await shell.post(room.alice.id, GateApprove(gate.id, "bob"))
        assert (await room.claude.decision(proposal)).approved_by == ("bob",)
        heard = await room.hers.until(lambda said: said.id == vote.id)
        assert heard.seq == vote.seq


async def test_a_post_into_a_session_one_is_in_is_heard_there(hall: ServerProcess) -> None:
    async with client(hall, "alice") as alice:
        session = await alice.create()
        with pytest.raises(ServerRefused, match="not an agent"):
            await alice.post(session.id, PromptSubmit("Hi", "claude", ("alice",), ()))


async def test_a_stranger_posts_nothing(hall: ServerProcess) -> None:
    async with a_room(hall) as room, client(hall, "olga") as olga:
        with pytest.raises(ServerRefused, match="SESSION_NOT_FOUND"):
            await olga.post(room.alice.id, PromptSubmit("Hi", "claude", ("olga",), ()))
        with pytest.raises(ServerRefused, match="SESSION_NOT_FOUND") as no:
            await olga.session(room.alice.id)
        assert not no.value.recoverable
        assert room.alice.id not in {each.id for each in await olga.sessions()}


async def test_on_trust_one_says_who_reads(open_hall: ServerProcess) -> None:
    async with Client(open_hall.url, id="ann") as ann:
        session = await ann.create(name="Mine")

        assert [line.name for line in await ann.sessions()] == ["Mine"]
        with pytest.raises(ServerRefused, match="There is no session"):
            await Client(open_hall.url, id="eve").session(session.id)


@pytest.mark.parametrize("what", READINGS)
async def test_who_is_not_known_reads_nothing(hall: ServerProcess, what: str) -> None:
    stranger = Client(hall.url, token="e30.e30.e30", id="alice")

    with pytest.raises(ServerRefused, match="UNAUTHORIZED"):
        await READINGS[what](stranger)


@pytest.mark.parametrize("what", READINGS)
async def test_an_address_where_nobody_answers(what: str) -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        await READINGS[what](Client(nobody_listens(), id="alice"))


@asynccontextmanager
async def answering(*lines: str) -> AsyncIterator[str]:
    """A server that answers everything with these lines."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write("\r\n".join(lines).encode())
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"


async def test_a_redirect_does_not_carry_the_token_away(hall: ServerProcess) -> None:
    """A server that answers properly stands where the redirect points to."""
    token = hall.issue("bob")
    moved = ("HTTP/1.1 302 Found", f"Location: {hall.url}/sessions", "", "")
    async with answering(*moved) as url:
        with pytest.raises(Unreachable, match="302"):
            await Client(url, token=token).sessions()


@pytest.mark.parametrize(
    "lines",
    [
        ("HTTP/1.1 200 OK", "Content-Length: 2", "", "hi"),
        ("HTTP/1.1 200 OK", "Content-Length: 9", "", "hi"),
        ("What?",),
        ("",),
    ],
)
async def test_something_else_answers(lines: tuple[str, ...]) -> None:
    async with answering(*lines) as url:
        with pytest.raises(Unreachable, match=r"no Accord server|cannot be reached"):
            await Client(url, id="alice").sessions()


def test_a_page_of_somebody_else_is_no_refusal_of_ours() -> None:
    error = refusal(502, b"<html>Bad gateway</html>")

    assert isinstance(error, Unreachable)
    assert "502" in str(error)
