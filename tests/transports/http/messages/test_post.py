"""Posting messages over plain HTTP, to a real server process."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from accord.transports.rate_limit import BURST_SECONDS
from tests.helpers.clients.http_client import HttpClient, envelope, join_payload
from tests.helpers.clients.websocket_client import SESSION_CONFIG, WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves
from tests.transports.http.messages.plain_http import MIB, PATIENCE, Plug, ids, note, refused


@proves("PVP-19.3-1", "OPEN-50")
async def test_a_message_is_posted_and_answered_with_its_place(alice: HttpClient) -> None:
    session = await alice.create()

    told = await alice.send("context.add", session, note(), id="first-note")

    assert told == {"id": "first-note", "seq": 3, "session": session}


@proves("OPEN-50", "OPEN-36")
async def test_a_retry_gets_the_first_answer_and_changes_nothing(alice: HttpClient) -> None:
    session = await alice.create()
    first = await alice.send("context.add", session, note(), id="once")

    again = await alice.send("context.add", session, note(), id="once")

    assert again == first
    assert ids(await alice.poll(session)).count("once") == 1


@proves("OPEN-50")
async def test_the_path_must_name_the_envelopes_session(alice: HttpClient) -> None:
    one, other = await alice.create(), await alice.create()

    answer = await alice.post(one, envelope("context.add", other, "alice", note()))

    refused(answer, 400, "INVALID_MESSAGE")
    wrong = await alice.post("new", envelope("context.add", "new", "alice", note()))
    refused(wrong, 400, "INVALID_MESSAGE")
    assert len((await alice.poll(other))["messages"]) == 2


async def test_a_creator_may_choose_the_id(alice: HttpClient) -> None:
    message = envelope("session.create", "mine-alone", "alice", {"config": SESSION_CONFIG})

    assert (await alice.post("new", message)).json()["session"] == "mine-alone"
    assert (await alice.post("new", message)).json()["seq"] == 1


async def test_the_same_create_again_is_answered_with_the_first_one(
    alice: HttpClient, bob: HttpClient
) -> None:
    def create(by: str, name: str = "Release") -> dict[str, object]:
        content = {"config": SESSION_CONFIG, "name": name}
        return envelope("session.create", "created-twice", by, content)

    first = (await alice.post("new", create("alice"))).json()

    assert (await alice.post("new", create("alice"))).json() == first
    refused(await alice.post("new", create("alice", "Another")), 409, "INVALID_STATE")
    refused(await bob.post("new", create("bob")), 409, "INVALID_STATE")
    assert len((await alice.poll("created-twice"))["messages"]) == 2


@proves("OPEN-49", "UNI-26")
async def test_a_refusal_is_an_error_envelope_with_its_status(
    alice: HttpClient, bob: HttpClient
) -> None:
    session = await alice.create()
    message = envelope("context.add", session, "bob", note())

    problem = refused(await bob.post(session, message), 404, "SESSION_NOT_FOUND")

    assert problem["related_to"] == message["id"]
    forged = envelope("context.add", session, "bob", note())
    refused(await alice.post(session, forged), 403, "UNAUTHORIZED")


async def test_nobody_speaks_without_a_token(signed: ServerProcess) -> None:
    web = HttpClient(signed.url, "alice")
    message = envelope("session.create", "new", "alice", {"config": SESSION_CONFIG})

    answer = await web.post("new", message)

    refused(answer, 401, "UNAUTHORIZED")
    assert answer.headers["www-authenticate"] == "Bearer"
    await web.close()


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
async def test_what_a_form_could_send_is_refused(alice: HttpClient, kind: str) -> None:
    body = json.dumps(envelope("session.create", "new", "alice", {"config": SESSION_CONFIG}))

    answer = await alice.http.post(
        "/sessions/new/messages", content=body, headers={"content-type": kind}
    )

    problem = refused(answer, 415, "INVALID_MESSAGE")
    assert "application/json" in problem["message"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff\xfe", b'{"v":1}', b"[" * 100_000])
async def test_nonsense_is_answered_as_such(alice: HttpClient, body: bytes) -> None:
    answer = await alice.http.post(
        "/sessions/x/messages", content=body, headers={"content-type": "application/json"}
    )

    refused(answer, 400, "INVALID_MESSAGE")


@pytest.mark.parametrize("size", [MIB + 1, 5 * MIB])
async def test_a_message_over_a_mebibyte_is_refused(alice: HttpClient, size: int) -> None:
    session = await alice.create()
    message = envelope("context.add", session, "alice", {**note(), "content": "x" * size})

    problem = refused(await alice.post(session, message), 413, "CONTEXT_TOO_LARGE")

    assert problem["details"] == {"limit": "message", "most": MIB}
    assert len((await alice.poll(session))["messages"]) == 2


async def test_a_body_without_a_length_is_read_only_so_far(alice: HttpClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b" " * MIB

    try:
        answer = await alice.http.post(
            "/sessions/x/messages", content=endless(), headers={"content-type": "application/json"}
        )
    except httpx.TransportError:
        return  # hung up on while still sending
    refused(answer, 413, "CONTEXT_TOO_LARGE")


async def test_a_member_posts_once_without_joining_again(
    signed: ServerProcess, alice: HttpClient
) -> None:
    session = await alice.create()
    token = signed.issue_token("carol")
    carol, web = (
        await WebSocketClient.open(signed.ws_url, "carol", token),
        HttpClient(signed.url, "carol", token),
    )
    await carol.join(session)
    await carol.receive_until("session.join")

    told = await web.send("context.add", session, note())

    heard = await carol.receive_until("context.add")
    assert (heard["id"], heard["seq"]) == (told["id"], told["seq"])
    joins = [m for m in (await alice.poll(session))["messages"] if m["type"] == "session.join"]
    assert [m["payload"]["participant"]["transport"] for m in joins] == ["websocket"]
    await carol.socket.close()
    await web.close()


async def test_the_record_says_http_whatever_a_joiner_says(
    alice: HttpClient, bob: HttpClient
) -> None:
    session = await alice.create()
    payload = join_payload("bob")
    payload["participant"]["transport"] = "websocket"

    await bob.send("session.join", session, payload)

    last = (await alice.poll(session))["messages"][-1]
    assert (last["payload"]["id"], last["payload"]["transport"]) == ("bob", "http")


async def test_posted_signal_has_seq_zero(alice: HttpClient) -> None:
    session = await alice.create()

    told = await alice.send("heartbeat.pong", session, {})

    assert told["seq"] == 0


async def test_on_trust_callers_name_themselves(trusting: ServerProcess) -> None:
    alice = HttpClient(trusting.url, "alice")
    claude = HttpClient(trusting.url, "claude")
    session = await alice.create()
    await claude.join(session, kind="agent")

    forged = await claude.post(session, envelope("context.add", session, "alice", note()))

    refused(forged, 403, "UNAUTHORIZED")
    said = (await alice.poll(session))["messages"][-1]["payload"]
    assert (said["id"], said["type"]) == ("claude", "agent")
    await alice.close()
    await claude.close()


async def test_the_rate_counts_over_all_transports(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with run_server(tmp_path_factory.mktemp("slow"), "token", "--rate-limit", "1") as server:
        token = server.issue_token("alice", roles=["admin", "driver"])
        web, wire = (
            HttpClient(server.url, "alice", token),
            await WebSocketClient.open(server.ws_url, "alice", token),
        )
        began, times = time.monotonic(), range(20)
        session = await wire.create()
        for n in times:
            await wire.send("context.add", session, note(f"wire{n}"))
        announced, *told = [(await wire.receive())["type"] for _ in (0, *times)]
        said = [envelope("context.add", session, "alice", note(f"web{n}")) for n in times]
        # All at once: on a slow machine, one after the other would be slow enough for the rate.
        answers = await asyncio.gather(*(web.post(session, each) for each in said))
        passed = time.monotonic() - began
        await web.close()
        await wire.socket.close()

    assert announced == "participant.announce"
    taken = told.count("context.add") + sum(each.status_code == 200 for each in answers)
    assert 0 < taken < BURST_SECONDS + passed, "the session itself is one more"
    late = [each for each in answers if each.status_code != 200]
    assert late
    for each in late:
        refused(each, 429, "RATE_LIMITED")
        assert int(each.headers["retry-after"]) >= 1


async def test_one_principal_cannot_fill_the_memory_with_messages_that_never_end(
    signed: ServerProcess, alice: HttpClient
) -> None:
    session = await alice.create()
    token = signed.issue_token("mallory")
    head = (f"POST /sessions/{session}/messages HTTP/1.1", token)
    kind, length = "Content-Type: application/json", f"Content-Length: {4 * MIB}"
    large = [await Plug.into(signed) for _ in range(6)]

    for plug in large:
        await plug.ask(*head, kind, length, body=b" " * (4 * MIB - 1))
    refusals = [asyncio.create_task(plug.status()) for plug in large]
    done, _ = await asyncio.wait(refusals, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)

    assert {each.result() for each in done} == {429}
    await alice.send("context.add", session, note())  # others go on
    for each in refusals:
        each.cancel()
    for plug in large:
        plug.writer.transport.abort()
    mallory = HttpClient(signed.url, "mallory", token)
    answers = [(await mallory.post(session, {})).status_code for _ in range(20)]
    assert answers[-1] == 400  # what was let go of counts no more
    await mallory.close()


async def test_who_opens_a_session_over_http_is_told_of_as_such(
    alice: HttpClient, trusting: ServerProcess
) -> None:
    on_trust = HttpClient(trusting.url, "alice")
    for web in (alice, on_trust):
        page = await web.poll(await web.create())
        (told,) = [each for each in page["messages"] if each["type"] == "participant.announce"]
        assert told["payload"]["transport"] == "http"
    await on_trust.close()
