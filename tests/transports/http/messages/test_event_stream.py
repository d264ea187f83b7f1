"""Server-sent events, from a real server process."""

import asyncio

import httpx
import pytest

from tests.helpers.clients.http_client import HttpClient, envelope
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.transports.http.messages.plain_http import MIB, PATIENCE, Plug, note, until_logged


async def test_events_have_the_messages_ids_and_types(alice: HttpClient, bob: HttpClient) -> None:
    session = await alice.create()
    await bob.join(session)
    async with alice.open_events(session) as stream:
        await stream.wait_for("session.join")
        told = await bob.send("context.add", session, note())
        event = await stream.wait_for("context.add")

    assert event.id == event.envelope["id"] == told["id"]
    assert event.envelope["seq"] == told["seq"]


async def test_events_resume_after_the_last_event_id(alice: HttpClient) -> None:
    session = await alice.create()
    said = [(await alice.send("context.add", session, note(f"k{n}")))["id"] for n in range(3)]

    async with alice.open_events(session, said[0]) as stream:
        behind = [(await stream.wait_for("context.add")).id for _ in range(2)]

    assert behind == said[1:]


async def test_signals_are_events_without_an_id(alice: HttpClient, bob: HttpClient) -> None:
    session = await alice.create()
    await bob.join(session)
    async with alice.open_events(session) as stream:
        await stream.wait_for("participant.announce")
        draft = {"content": "Add a tes", "target_agent": None, "contributors": ["bob"]}
        answer = await bob.post(session, envelope("prompt.draft", session, "bob", draft))
        assert answer.status_code == 200, answer.text
        event = await stream.wait_for("prompt.draft")

    assert (event.id, event.envelope["sender"]) == ("", "bob")
    assert "prompt.draft" not in [m["type"] for m in (await alice.poll(session))["messages"]]


async def test_events_are_for_members(alice: HttpClient, bob: HttpClient) -> None:
    session = await alice.create()

    stranger = await bob.http.get(f"/sessions/{session}/events")
    await bob.join(session)
    await bob.send("session.leave", session, {})
    former = await bob.http.get(f"/sessions/{session}/events")
    unknown = await alice.http.get(
        f"/sessions/{session}/events", headers={"Last-Event-ID": "nothing"}
    )

    assert [each.status_code for each in (stranger, former, unknown)] == [404, 404, 404]


async def test_events_end_with_a_leave(alice: HttpClient, bob: HttpClient) -> None:
    session = await alice.create()
    await bob.join(session)
    async with bob.open_events(session) as stream:
        await bob.send("session.leave", session, {})
        await stream.wait_for("session.leave")

        assert await stream.next_event() is None


async def test_events_end_with_the_token(signed: ServerProcess, alice: HttpClient) -> None:
    session = await alice.create()
    wish = {"id": "eve", "type": "human", "roles": ["driver"]}
    issued = signed.admin_request("POST", "/admin/tokens", wish)
    eve = HttpClient(signed.url, "eve", issued["token"])
    await eve.join(session)
    async with eve.open_events(session) as stream:
        await stream.wait_for("session.join")
        await asyncio.to_thread(
            signed.admin_request, "DELETE", f"/admin/tokens/{issued['claims']['jti']}"
        )

        async with asyncio.timeout(PATIENCE):
            while await stream.next_event() is not None:
                pass
    await eve.close()


async def test_no_token_is_taken_from_the_address(signed: ServerProcess, alice: HttpClient) -> None:
    session = await alice.create()
    token = alice.http.headers["authorization"].removeprefix("Bearer ")
    bare = HttpClient(signed.url, "alice")

    answer = await bare.http.get(f"/sessions/{session}/events", params={"token": token})

    assert answer.status_code == 401
    await bare.close()


async def test_whoever_does_not_read_is_cut_off_and_holds_up_nobody(
    signed: ServerProcess, alice: HttpClient
) -> None:
    session = await alice.create()
    host, port = signed.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    head = f"GET /sessions/{session}/events HTTP/1.1\r\nHost: {host}:{port}\r\n"
    token = alice.http.headers["authorization"]
    writer.write(f"{head}Authorization: {token}\r\n\r\n".encode())
    await writer.drain()
    await reader.readuntil(b"session.create")
    reader._transport.pause_reading()  # type: ignore[attr-defined]

    for n in range(30):
        content = {"key": f"big{n}", "content_type": "text", "content": "x" * (MIB // 2)}
        await alice.send("context.add", session, content)

    cut = '"event": "reader.cut_off", "principal": "alice"'
    assert cut in await until_logged(signed, cut)
    writer.transport.abort()


async def test_the_end_of_a_stream_does_not_end_the_next_request_on_its_connection(
    signed: ServerProcess, alice: HttpClient
) -> None:
    session = await alice.create()
    wish = {"id": "eve", "type": "human", "roles": ["driver"]}
    issued = signed.admin_request("POST", "/admin/tokens", wish)
    eve = HttpClient(signed.url, "eve", issued["token"])
    await eve.join(session)
    await eve.close()
    fresh = signed.issue_token("eve")
    plug = await Plug.into(signed)
    await plug.ask(f"GET /sessions/{session}/events HTTP/1.1", issued["token"])
    await plug.reader.readuntil(b"session.join")

    await asyncio.to_thread(
        signed.admin_request, "DELETE", f"/admin/tokens/{issued['claims']['jti']}"
    )
    await plug.reader.readuntil(b"\r\n0\r\n\r\n")
    last = (await alice.poll(session))["next"]
    await plug.ask(f"GET /sessions/{session}/messages?after={last}&wait=2 HTTP/1.1", fresh)

    assert await asyncio.wait_for(plug.status(), PATIENCE) == 200
    plug.writer.close()


async def test_a_server_that_stops_lets_everybody_go(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    # A server that waits for them does so for half of the time that it has.
    flags = ("--stop-timeout", "100", "--limit", "polls_per_principal=1")
    with run_server(tmp_path_factory.mktemp("stops"), "token", *flags) as server:
        alice = HttpClient.with_token(server, "alice", roles=["admin"])
        session = await alice.create()
        last = (await alice.poll(session))["next"]
        async with alice.open_events(session) as stream:
            await stream.wait_for("session.create")
            waiting = await a_waiting_poll(alice, session, last)

            async with asyncio.timeout(25):
                await asyncio.to_thread(server.stop)
                answer = await waiting
                assert (answer.status_code, answer.json()["messages"]) == (200, [])
                while await stream.next_event() is not None:
                    pass
        await alice.close()


async def a_waiting_poll(
    web: HttpClient, session: str, last: str
) -> "asyncio.Task[httpx.Response]":
    """A poll that the server knows of, where one principal has no more than one that waits."""

    def ask(wait: int) -> "asyncio.Task[httpx.Response]":
        query = {"after": last, "wait": str(wait)}
        return asyncio.create_task(web.http.get(f"/sessions/{session}/messages", params=query))

    waiting = ask(50)
    while (await ask(1)).status_code != 429:
        if waiting.done():
            waiting = ask(50)
    return waiting
