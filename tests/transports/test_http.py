"""PVP over plain HTTP, against a real server process."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from tests.helpers.cli import accord
from tests.helpers.server import ServerProcess, a_server
from tests.helpers.web import Web, envelope, participant
from tests.helpers.wire import CONFIG, Wire
from tests.spec import proves

MIB = 1 << 20


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that asks for tokens, for all tests here."""
    with a_server(tmp_path_factory.mktemp("signed")) as server:
        yield server


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that takes identities on trust, for all tests here."""
    with a_server(tmp_path_factory.mktemp("trusting"), "open") as server:
        yield server


@pytest.fixture
async def alice(signed: ServerProcess) -> AsyncIterator[Web]:
    """An admin."""
    web = Web.of(signed, "alice", roles=["admin", "driver"])
    yield web
    await web.close()


@pytest.fixture
async def bob(signed: ServerProcess) -> AsyncIterator[Web]:
    """A driver."""
    web = Web.of(signed, "bob")
    yield web
    await web.close()


def note(key: str = "k") -> dict[str, Any]:
    """Something to say."""
    return {"key": key, "content_type": "text", "content": "hello"}


def ids(page: dict[str, Any]) -> list[str]:
    """The messages of a page."""
    return [each["id"] for each in page["messages"]]


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The payload of the error this answer is."""
    assert answer.status_code == status, answer.text
    said = answer.json()
    assert (said["type"], said["payload"]["code"]) == ("error", code), said
    assert answer.headers["cache-control"] == "no-store"
    problem: dict[str, Any] = said["payload"]
    return problem


# Posting


@proves("PVP-19.3-1", "OPEN-50")
async def test_a_message_is_posted_and_answered_with_its_place(alice: Web) -> None:
    session = await alice.create()

    told = await alice.say("context.add", session, note(), id="first-note")

    assert told == {"id": "first-note", "seq": 3, "session": session}


@proves("OPEN-50", "OPEN-36")
async def test_a_retry_gets_the_first_answer_and_changes_nothing(alice: Web) -> None:
    session = await alice.create()
    first = await alice.say("context.add", session, note(), id="once")

    again = await alice.say("context.add", session, note(), id="once")

    assert again == first
    assert ids(await alice.poll(session)).count("once") == 1


@proves("OPEN-50")
async def test_the_path_must_name_the_envelopes_session(alice: Web) -> None:
    one, other = await alice.create(), await alice.create()

    answer = await alice.post(one, envelope("context.add", other, "alice", note()))

    refused(answer, 400, "INVALID_MESSAGE")
    wrong = await alice.post("new", envelope("context.add", "new", "alice", note()))
    refused(wrong, 400, "INVALID_MESSAGE")
    assert len((await alice.poll(other))["messages"]) == 2


async def test_a_creator_may_choose_the_id(alice: Web) -> None:
    message = envelope("session.create", "mine-alone", "alice", {"config": CONFIG})

    assert (await alice.post("new", message)).json()["session"] == "mine-alone"
    assert (await alice.post("new", message)).json()["seq"] == 1


@proves("OPEN-49", "UNI-26")
async def test_a_refusal_is_an_error_envelope_with_its_status(alice: Web, bob: Web) -> None:
    session = await alice.create()
    message = envelope("context.add", session, "bob", note())

    problem = refused(await bob.post(session, message), 404, "SESSION_NOT_FOUND")

    assert problem["related_to"] == message["id"]
    forged = envelope("context.add", session, "bob", note())
    refused(await alice.post(session, forged), 403, "UNAUTHORIZED")


async def test_nobody_speaks_without_a_token(signed: ServerProcess) -> None:
    web = Web(signed.url, "alice")
    message = envelope("session.create", "new", "alice", {"config": CONFIG})

    answer = await web.post("new", message)

    refused(answer, 401, "UNAUTHORIZED")
    assert answer.headers["www-authenticate"] == "Bearer"
    await web.close()


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
async def test_what_a_form_could_send_is_refused(alice: Web, kind: str) -> None:
    body = json.dumps(envelope("session.create", "new", "alice", {"config": CONFIG}))

    answer = await alice.http.post(
        "/sessions/new/messages", content=body, headers={"content-type": kind}
    )

    refused(answer, 400, "INVALID_MESSAGE")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff\xfe", b'{"v":1}', b"[" * 100_000])
async def test_nonsense_is_answered_as_such(alice: Web, body: bytes) -> None:
    answer = await alice.http.post(
        "/sessions/x/messages", content=body, headers={"content-type": "application/json"}
    )

    refused(answer, 400, "INVALID_MESSAGE")


@pytest.mark.parametrize("size", [MIB + 1, 5 * MIB])
async def test_a_message_over_a_mebibyte_is_refused(alice: Web, size: int) -> None:
    session = await alice.create()
    message = envelope("context.add", session, "alice", {**note(), "content": "x" * size})

    problem = refused(await alice.post(session, message), 413, "CONTEXT_TOO_LARGE")

    assert problem["details"] == {"limit": "message", "most": MIB}
    assert len((await alice.poll(session))["messages"]) == 2


async def test_a_body_without_a_length_is_read_only_so_far(alice: Web) -> None:
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


async def test_a_member_posts_once_without_joining_again(signed: ServerProcess, alice: Web) -> None:
    session = await alice.create()
    token = signed.issue("carol")
    carol, web = await Wire.open(signed.ws_url, "carol", token), Web(signed.url, "carol", token)
    await carol.join(session)
    await carol.hear_until("session.join")

    told = await web.say("context.add", session, note())

    heard = await carol.hear_until("context.add")
    assert (heard["id"], heard["seq"]) == (told["id"], told["seq"])
    joins = [m for m in (await alice.poll(session))["messages"] if m["type"] == "session.join"]
    assert [m["payload"]["participant"]["transport"] for m in joins] == ["websocket"]
    await carol.socket.close()
    await web.close()


async def test_the_record_says_http_whatever_a_joiner_says(alice: Web, bob: Web) -> None:
    session = await alice.create()
    payload = participant("bob")
    payload["participant"]["transport"] = "websocket"

    await bob.say("session.join", session, payload)

    last = (await alice.poll(session))["messages"][-1]
    assert (last["payload"]["id"], last["payload"]["transport"]) == ("bob", "http")


async def test_a_signal_has_no_place(alice: Web) -> None:
    session = await alice.create()

    told = await alice.say("heartbeat.pong", session, {})

    assert told["seq"] == 0


async def test_on_trust_callers_name_themselves(trusting: ServerProcess) -> None:
    alice = Web(trusting.url, "alice")
    claude = Web(trusting.url, "claude")
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
    with a_server(tmp_path_factory.mktemp("slow"), "token", "--rate-limit", "1") as server:
        token = server.issue("alice", roles=["admin", "driver"])
        web, wire = Web(server.url, "alice", token), await Wire.open(server.ws_url, "alice", token)
        session = await wire.create()
        for _ in range(4):
            await wire.say("context.add", session, note(uuid()))
            await wire.hear_until("context.add")

        answer = await web.post(session, envelope("context.add", session, "alice", note()))

        refused(answer, 429, "RATE_LIMITED")
        assert int(answer.headers["retry-after"]) >= 1
        await web.close()
        await wire.socket.close()


def uuid() -> str:
    """A fresh word."""
    return envelope("", "", "", {})["id"]  # type: ignore[no-any-return]


# Polling


@proves("PVP-19.3-2", "OPEN-50")
async def test_polling_goes_on_behind_the_last_message(alice: Web) -> None:
    session = await alice.create()
    first = await alice.poll(session)
    said = [(await alice.say("context.add", session, note(f"k{n}")))["id"] for n in range(5)]

    page = await alice.poll(session, first["next"], limit=2)
    rest = await alice.poll(session, page["next"], limit=3)

    assert (ids(page), page["has_more"]) == (said[:2], True)
    assert (ids(rest), rest["has_more"], rest["next"]) == (said[2:], False, said[-1])
    assert await alice.poll(session, rest["next"]) == {
        "messages": [],
        "next": said[-1],
        "has_more": False,
    }


@proves("OPEN-50")
async def test_an_unknown_message_is_not_found(alice: Web) -> None:
    session = await alice.create()

    answer = await alice.http.get(f"/sessions/{session}/messages", params={"after": "nothing"})

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "INVALID_STATE"


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "1001"}, {"wait": "61"}, {"wait": "-1"}, {"wait": "x"}]
)
async def test_bounds_of_a_poll_are_kept(alice: Web, query: dict[str, str]) -> None:
    session = await alice.create()

    answer = await alice.http.get(f"/sessions/{session}/messages", params=query)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_MESSAGE")


async def test_a_waiting_poll_is_answered_by_what_comes(alice: Web, bob: Web) -> None:
    session = await alice.create()
    await bob.join(session)
    last = (await alice.poll(session))["next"]
    waiting = asyncio.create_task(alice.poll(session, last, wait=50))
    await asyncio.sleep(0)

    told = await bob.say("context.add", session, note())

    assert ids(await waiting) == [told["id"]]


async def test_a_waiting_poll_ends_empty(alice: Web) -> None:
    session = await alice.create()
    last = (await alice.poll(session))["next"]

    page = await alice.poll(session, last, wait=1)

    assert page == {"messages": [], "next": last, "has_more": False}


async def test_nobody_goes_idle_in_a_waiting_poll(alice: Web) -> None:
    session = await alice.create(
        heartbeat_interval_seconds=1, idle_timeout_seconds=2, away_timeout_seconds=3
    )
    last = (await alice.poll(session))["next"]

    page = await alice.poll(session, last, wait=9)
    again = await alice.poll(session, last, wait=9)

    assert page["messages"] == again["messages"] == []


async def test_so_many_polls_wait_and_no_more(signed: ServerProcess) -> None:
    dora = Web.of(signed, "dora", roles=["admin", "driver"])
    session = await dora.create()
    last = (await dora.poll(session))["next"]
    query = {"after": last, "wait": "50"}
    asks = [
        asyncio.create_task(dora.http.get(f"/sessions/{session}/messages", params=query))
        for _ in range(20)
    ]

    done, waiting = set[Any](), set(asks)
    while len(done) < 4:
        now, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        done |= now

    assert {each.result().status_code for each in done} == {429}
    await dora.say("context.add", session, note())
    answers = await asyncio.gather(*waiting)
    assert [each.status_code for each in answers] == [200] * 16
    await dora.close()


@proves("OPEN-49")
async def test_former_members_poll_what_they_could_see(alice: Web, bob: Web) -> None:
    session = await alice.create()
    await bob.join(session)
    left = await bob.say("session.leave", session, {})
    await alice.say("context.add", session, note())

    page = await bob.poll(session, wait=50)

    assert ids(page)[-1] == left["id"]


async def test_a_revoked_token_ends_a_waiting_poll(signed: ServerProcess, alice: Web) -> None:
    session = await alice.create()
    wish = {"id": "eve", "type": "human", "roles": ["driver"]}
    issued = signed.admin("POST", "/admin/tokens", wish)
    eve = Web(signed.url, "eve", issued["token"])
    await eve.join(session)
    last = (await eve.poll(session))["next"]
    query = {"after": last, "wait": "50"}
    waiting = asyncio.create_task(eve.http.get(f"/sessions/{session}/messages", params=query))
    await alice.poll(session)

    await asyncio.to_thread(signed.admin, "DELETE", f"/admin/tokens/{issued['claims']['jti']}")

    assert (await asyncio.wait_for(waiting, 5)).status_code == 401
    await eve.close()


class Plug:
    """A bare connection, which may be used for one request after the other."""

    def __init__(self, server: ServerProcess, pair: Any) -> None:
        self.host = server.url.removeprefix("http://")
        self.reader, self.writer = pair

    @classmethod
    async def into(cls, server: ServerProcess) -> "Plug":
        """Connected."""
        return cls(server, await asyncio.open_connection("127.0.0.1", server.port))

    async def ask(self, first: str, token: str, *more: str, body: bytes = b"") -> None:
        """Send a head and what there is of a body."""
        lines = [first, f"Host: {self.host}", f"Authorization: Bearer {token}", *more, "", ""]
        self.writer.write("\r\n".join(lines).encode() + body)
        await self.writer.drain()

    async def status(self) -> int:
        """The status of the next answer."""
        line = await self.reader.readline()
        return int(line.split()[1]) if line else 0


async def test_one_principal_cannot_fill_the_memory_with_messages_that_never_end(
    signed: ServerProcess, alice: Web
) -> None:
    session = await alice.create()
    token = signed.issue("mallory")
    head = (f"POST /sessions/{session}/messages HTTP/1.1", token)
    kind, length = "Content-Type: application/json", f"Content-Length: {4 * MIB}"
    large = [await Plug.into(signed) for _ in range(6)]

    for plug in large:
        await plug.ask(*head, kind, length, body=b" " * (4 * MIB - 1))
    refusals = [asyncio.create_task(plug.status()) for plug in large]
    done, _ = await asyncio.wait(refusals, timeout=5, return_when=asyncio.FIRST_COMPLETED)

    assert {each.result() for each in done} == {429}
    await alice.say("context.add", session, note())  # others go on
    for each in refusals:
        each.cancel()
    for plug in large:
        plug.writer.transport.abort()
    mallory = Web(signed.url, "mallory", token)
    answers = [(await mallory.post(session, {})).status_code for _ in range(20)]
    assert answers[-1] == 400  # what was let go of counts no more
    await mallory.close()


# Events


async def test_events_have_the_messages_ids_and_types(alice: Web, bob: Web) -> None:
    session = await alice.create()
    await bob.join(session)
    async with alice.listen(session) as stream:
        await stream.until("session.join")
        told = await bob.say("context.add", session, note())
        event = await stream.until("context.add")

    assert event.id == event.said["id"] == told["id"]
    assert event.said["seq"] == told["seq"]


async def test_events_go_on_behind_the_last_one(alice: Web) -> None:
    session = await alice.create()
    said = [(await alice.say("context.add", session, note(f"k{n}")))["id"] for n in range(3)]

    async with alice.listen(session, said[0]) as stream:
        behind = [(await stream.until("context.add")).id for _ in range(2)]

    assert behind == said[1:]


async def test_signals_are_events_without_an_id(alice: Web, bob: Web) -> None:
    session = await alice.create()
    await bob.join(session)
    async with alice.listen(session) as stream:
        await stream.until("participant.announce")
        draft = {"content": "Add a tes", "target_agent": None, "contributors": ["bob"]}
        answer = await bob.post(session, envelope("prompt.draft", session, "bob", draft))
        assert answer.status_code == 200, answer.text
        event = await stream.until("prompt.draft")

    assert (event.id, event.said["sender"]) == ("", "bob")
    assert "prompt.draft" not in [m["type"] for m in (await alice.poll(session))["messages"]]


async def test_events_are_for_members(alice: Web, bob: Web) -> None:
    session = await alice.create()

    stranger = await bob.http.get(f"/sessions/{session}/events")
    await bob.join(session)
    await bob.say("session.leave", session, {})
    former = await bob.http.get(f"/sessions/{session}/events")
    unknown = await alice.http.get(
        f"/sessions/{session}/events", headers={"Last-Event-ID": "nothing"}
    )

    assert [each.status_code for each in (stranger, former, unknown)] == [404, 404, 404]


async def test_events_end_with_a_leave(alice: Web, bob: Web) -> None:
    session = await alice.create()
    await bob.join(session)
    async with bob.listen(session) as stream:
        await bob.say("session.leave", session, {})
        await stream.until("session.leave")

        assert await stream.next() is None


async def test_events_end_with_the_token(signed: ServerProcess, alice: Web) -> None:
    session = await alice.create()
    wish = {"id": "eve", "type": "human", "roles": ["driver"]}
    issued = signed.admin("POST", "/admin/tokens", wish)
    eve = Web(signed.url, "eve", issued["token"])
    await eve.join(session)
    async with eve.listen(session) as stream:
        await stream.until("session.join")
        await asyncio.to_thread(signed.admin, "DELETE", f"/admin/tokens/{issued['claims']['jti']}")

        async with asyncio.timeout(2):
            while await stream.next() is not None:
                pass
    await eve.close()


async def test_no_token_is_taken_from_the_address(signed: ServerProcess, alice: Web) -> None:
    session = await alice.create()
    token = alice.http.headers["authorization"].removeprefix("Bearer ")
    bare = Web(signed.url, "alice")

    answer = await bare.http.get(f"/sessions/{session}/events", params={"token": token})

    assert answer.status_code == 401
    await bare.close()


async def test_whoever_does_not_read_is_cut_off_and_holds_up_nobody(
    signed: ServerProcess, alice: Web
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
        await alice.say("context.add", session, content)

    cut = '"event": "reader.cut_off", "principal": "alice"'
    assert cut in await until_logged(signed, cut)
    writer.transport.abort()


async def test_the_end_of_a_stream_does_not_end_the_next_request_on_its_connection(
    signed: ServerProcess, alice: Web
) -> None:
    session = await alice.create()
    wish = {"id": "eve", "type": "human", "roles": ["driver"]}
    issued = signed.admin("POST", "/admin/tokens", wish)
    eve = Web(signed.url, "eve", issued["token"])
    await eve.join(session)
    await eve.close()
    fresh = signed.issue("eve")
    plug = await Plug.into(signed)
    await plug.ask(f"GET /sessions/{session}/events HTTP/1.1", issued["token"])
    await plug.reader.readuntil(b"session.join")

    await asyncio.to_thread(signed.admin, "DELETE", f"/admin/tokens/{issued['claims']['jti']}")
    await plug.reader.readuntil(b"\r\n0\r\n\r\n")
    last = (await alice.poll(session))["next"]
    await plug.ask(f"GET /sessions/{session}/messages?after={last}&wait=2 HTTP/1.1", fresh)

    assert await asyncio.wait_for(plug.status(), 10) == 200
    plug.writer.close()


async def until_logged(server: ServerProcess, words: str) -> str:
    """The server's log, once these words are in it."""
    for _ in range(500):
        if words in server.log:
            return server.log
        await asyncio.sleep(0.01)
    return server.log


async def test_a_server_that_stops_lets_everybody_go(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with a_server(tmp_path_factory.mktemp("stops")) as server:
        alice = Web.of(server, "alice", roles=["admin"])
        session = await alice.create()
        last = (await alice.poll(session))["next"]
        async with alice.listen(session) as stream:
            await stream.until("session.create")
            waiting = asyncio.create_task(alice.poll(session, last, wait=50))
            await alice.http.get("/sessions")

            async with asyncio.timeout(4):
                await asyncio.to_thread(server.stop)
                assert (await waiting)["messages"] == []
                while await stream.next() is not None:
                    pass
        await alice.close()


async def test_who_opens_a_session_over_http_is_told_of_as_such(
    alice: Web, trusting: ServerProcess
) -> None:
    on_trust = Web(trusting.url, "alice")
    for web in (alice, on_trust):
        page = await web.poll(await web.create())
        (told,) = [each for each in page["messages"] if each["type"] == "participant.announce"]
        assert told["payload"]["transport"] == "http"
    await on_trust.close()


async def test_nobody_reads_on_over_what_was_removed(alice: Web, signed: ServerProcess) -> None:
    session = await alice.create()
    said, _ = [(await alice.say("context.add", session, note()))["id"] for _ in range(2)]
    await alice.say("session.end", session, {"reason": "Done", "final_state": "completed"})
    assert (await alice.poll(session, said))["messages"]
    words = ("compact", "--data-dir", str(signed.home), "--session", session)
    done = await asyncio.to_thread(accord, *words)
    assert done.code == 0, done

    for where, headers in ((f"messages?after={said}", {}), ("events", {"Last-Event-ID": said})):
        answer = await alice.http.get(f"/sessions/{session}/{where}", headers=headers)
        problem = answer.json()["error"]
        assert (answer.status_code, problem["code"]) == (410, "INVALID_STATE")
        assert "removed by retention" in problem["message"]
    rest = [each["type"] for each in (await alice.poll(session))["messages"]]
    assert rest == ["session.end"]
