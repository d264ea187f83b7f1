"""Reading over HTTP, without a WebSocket connection."""

from collections.abc import Awaitable, Callable

import pytest

from accord.client import Client, ServerRefused, Unreachable
from accord.core.kernel.ballot import AnyOf
from accord.core.room.approval.votes import GateApprove
from accord.core.room.conversation.prompts import PromptSubmit
from tests.client.connection.test_backoff import unused_url
from tests.helpers.clients.three_member_session import make_client, open_session
from tests.helpers.servers.scripted_http import answering
from tests.helpers.servers.server_process import ServerProcess

Reading = Callable[[Client], Awaitable[object]]
READINGS: dict[str, Reading] = {
    "sessions": lambda client: client.sessions(),
    "session": lambda client: client.session("s"),
    "transcript": lambda client: client.transcript("s"),
}


async def test_session_list_detail_and_transcript_can_be_read(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room:
        await room.alice.prompt("Hello", "claude")
        proposal = await room.claude.propose(
            "sh", {"command": ["ls"]}, category="shell_execute", risk="high", description="Look"
        )
        reader = make_client(shared_server, "bob")

        (line,) = [item for item in await reader.sessions() if item.id == room.alice.id]
        detail = await reader.session(room.alice.id)
        page = await reader.transcript(room.alice.id, after=2, limit=3)
        message = [envelope async for envelope in reader.history(room.alice.id)]

        assert (line.id, line.status, line.standing) == (room.alice.id, "active", "member")
        assert [member.id for member in detail.members] == ["alice", "bob", "claude"]
        (gate,) = detail.gates
        assert (gate.initiator, gate.request.action_ref) == ("claude", proposal)
        assert (gate.request.quorum, gate.approvals_required) == (AnyOf(1), 1)
        assert gate.action is not None
        assert gate.action.arguments == {"command": ["ls"]}
        assert [tool.id for tool in detail.tools] == [proposal]
        assert ([item.seq for item in page.messages], page.next, page.has_more) == (
            [3, 4, 5],
            5,
            True,
        )
        await room.bob_listener.wait_for_seq(message[-1].seq)
        assert room.bob_listener.sequenced == [
            item for item in message if item.seq >= room.bob_listener.sequenced[0].seq
        ]


async def test_post_votes_on_a_gate_without_joining(shared_server: ServerProcess) -> None:
    """`accord approve` does this."""
    async with open_session(shared_server) as room:
        proposal = await room.claude.propose("sh", {}, category="shell_execute")
        async with make_client(shared_server, "bob") as shell:
            (gate,) = (await shell.session(room.alice.id)).gates
            vote = await shell.post(room.alice.id, GateApprove(gate.id, "bob", "From a shell"))

            with pytest.raises(ServerRefused, match="is already closed"):
                await shell.post(room.alice.id, GateApprove(gate.id, "bob"))
        assert (await room.claude.decision(proposal)).approved_by == ("bob",)
        received = await room.alice_listener.wait_for(lambda message: message.id == vote.id)
        assert received.seq == vote.seq


async def test_post_to_a_joined_session_is_received_in_it(shared_server: ServerProcess) -> None:
    async with make_client(shared_server, "alice") as alice:
        session = await alice.create()
        with pytest.raises(ServerRefused, match="not an agent"):
            await alice.post(session.id, PromptSubmit("Hi", "claude", ("alice",), ()))


async def test_post_by_a_non_member_is_refused(shared_server: ServerProcess) -> None:
    async with open_session(shared_server) as room, make_client(shared_server, "olga") as olga:
        with pytest.raises(ServerRefused, match="SESSION_NOT_FOUND"):
            await olga.post(room.alice.id, PromptSubmit("Hi", "claude", ("olga",), ()))
        with pytest.raises(ServerRefused, match="SESSION_NOT_FOUND") as refusal:
            await olga.session(room.alice.id)
        assert not refusal.value.recoverable
        assert room.alice.id not in {item.id for item in await olga.sessions()}


async def test_open_server_reads_as_the_given_id(shared_open_server: ServerProcess) -> None:
    async with Client(shared_open_server.url, id="ann") as ann:
        session = await ann.create(name="Mine")

        assert [line.name for line in await ann.sessions()] == ["Mine"]
        with pytest.raises(ServerRefused, match="There is no session"):
            await Client(shared_open_server.url, id="eve").session(session.id)


@pytest.mark.parametrize("what", READINGS)
async def test_reading_with_an_invalid_token_is_refused(
    shared_server: ServerProcess, what: str
) -> None:
    stranger = Client(shared_server.url, token="e30.e30.e30", id="alice")

    with pytest.raises(ServerRefused, match="UNAUTHORIZED"):
        await READINGS[what](stranger)


@pytest.mark.parametrize("what", READINGS)
async def test_reading_from_an_unused_address_raises_unreachable(what: str) -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        await READINGS[what](Client(unused_url(), id="alice"))


async def test_redirect_is_not_followed_so_the_token_stays(shared_server: ServerProcess) -> None:
    """The redirect points to a working server, which must not receive the token."""
    token = shared_server.issue_token("bob")
    moved = ("HTTP/1.1 302 Found", f"Location: {shared_server.url}/sessions", "", "")
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
async def test_response_of_another_server_raises_unreachable(lines: tuple[str, ...]) -> None:
    async with answering(*lines) as url:
        with pytest.raises(Unreachable, match=r"not from an Accord server|cannot be reached"):
            await Client(url, id="alice").sessions()
