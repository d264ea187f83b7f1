"""Sessions read and written as threads, and threads watched as sessions."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from accord.core.kernel.ulid import derive_ulid_after
from tests.helpers.clients.http_client import HttpClient
from tests.helpers.clients.websocket_client import SESSION_CONFIG, WebSocketClient
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.threads.method_client import MethodClient
from tests.spec import proves

PROMPT = {"content": "x", "target_agent": "worker", "contributors": [], "context_keys": []}


class Shared(NamedTuple):
    """A session of alice and bob, each with both kinds of client on one token."""

    id: str
    alice: HttpClient
    bob: HttpClient
    alice_thread: MethodClient
    bob_thread: MethodClient


@pytest.fixture
async def shared(signed: ServerProcess) -> AsyncIterator[Shared]:
    tokens = {
        "alice": signed.issue_token("alice", roles=["admin", "driver"]),
        "bob": signed.issue_token("bob", roles=["driver"]),
    }
    web = {name: HttpClient(signed.url, name, token) for name, token in tokens.items()}
    calls = {name: MethodClient(signed.url, name, token, {}) for name, token in tokens.items()}
    session = await web["alice"].create()
    await web["alice"].join(session, roles=["admin", "driver"])
    await web["bob"].join(session)
    yield Shared(session, web["alice"], web["bob"], calls["alice"], calls["bob"])
    for client in calls.values():
        client.http.close()
    for member in web.values():
        await member.close()


@proves("UNI-6", "UNI-7", "UNI-8")
async def test_chat_goes_both_ways_between_a_session_and_its_thread(shared: Shared) -> None:
    alice, bob, session = shared.alice_thread, shared.bob_thread, shared.id
    about = {"note": "x"}
    posted = bob.post(session, "hello", metadata=about, idempotency_key="k")
    assert bob.post(session, "hello", metadata=about, idempotency_key="k") == posted
    clash = {"thread_id": session, "schema_version": 1, "idempotency_key": "k"}
    assert bob.refused("post_message", **clash, body="other") == (409, "IDEMPOTENCY_CONFLICT")
    event = alice.event(session, "fix_pushed", in_reply_to=posted["message_id"])
    page = (await shared.alice.http.get(f"/sessions/{session}/transcript")).json()
    said = {message["id"]: message for message in page["messages"]}
    first = said[posted["message_id"]]
    assert (first["type"], first["sender"]) == ("context.add", "bob")
    assert first["payload"]["key"] == f"chat:{posted['message_id']}"
    assert (first["payload"]["content"], first["payload"]["tags"][0]) == ("hello", "chat")
    assert said[event["message_id"]]["payload"]["tags"] == ["event:fix_pushed"]
    items = {item["message_id"]: item for item in alice.read(session, limit=200)}
    chat, fix = items[posted["message_id"]], items[event["message_id"]]
    assert (chat["kind"], chat["body"], chat["metadata"]) == ("chat", "hello", about)
    assert (chat["sender_kind"], chat["sender_verified"]) == ("human", True)
    assert (fix["kind"], fix["metadata"]) == ("event", {"event_type": "fix_pushed"})
    assert fix["in_reply_to"] == posted["message_id"]
    others = [item for item in items.values() if item["kind"] == "system"]
    assert {item["metadata"]["record"]["type"] for item in others} >= {"session.join"}
    assert all("\n" not in item["body"] for item in others)


@proves("UNI-11", "OPEN-117")
async def test_nobody_can_take_the_id_of_anothers_keyed_message(
    shared: Shared, signed: ServerProcess
) -> None:
    alice, bob, session = shared.alice_thread, shared.bob_thread, shared.id
    public = ("default", session, "bob", "thread.post", "0")
    guesses = [derive_ulid_after("k", *public), derive_ulid_after("k", "", *public)]
    for guess in guesses:
        taken = {"key": f"chat:msg_{guess}", "content_type": "text", "content": "mine"}
        await shared.alice.send("context.add", session, taken, id=f"msg_{guess}")
    posted = bob.post(session, "hello", idempotency_key="k")
    assert posted["message_id"] not in {f"msg_{guess}" for guess in guesses}
    signed.restart()
    bob_again = MethodClient(signed.url, "bob", bob.token, {})
    with bob_again:
        assert bob_again.post(session, "hello", idempotency_key="k") == posted
        assert bob_again.post(session, "hello", idempotency_key="other") != posted
    assert [item for item in alice.read(session) if item["body"] == "hello"]


@proves("UNI-6", "OPEN-135")
async def test_a_session_has_the_status_of_its_gates_and_its_end(shared: Shared) -> None:
    alice, session = shared.alice_thread, shared.id

    def status() -> str:
        thread: str = alice.ok("get_thread", thread_id=session)["status"]
        return thread

    assert status() == "active"
    quorum = {"type": "any", "count": 1}
    chat = shared.bob_thread.post(session, "go on?")["message_id"]
    gate = {"action_type": "prompt", "action_ref": chat, "message": "ok?", "timeout_seconds": 60}
    receipt = await shared.bob.send("gate.request", session, gate | {"quorum": quorum})
    assert status() == "blocked"
    for event in ("finding_verified", "thread_resolved"):
        alice.event(session, event, in_reply_to=receipt["id"])
    assert status() == "blocked", "a verification is no vote"
    await shared.alice.send(
        "gate.reject", session, {"gate": receipt["id"], "rejector": "alice", "reason": "no"}
    )
    assert status() == "active"
    change = {"thread_id": session, "status": "closed", "reason": "done"}
    assert alice.refused("update_thread_status", **change) == (409, "CONFLICT")
    more = {"thread_id": session, "participants": ["eve"]}
    assert alice.refused("add_participants", **more) == (409, "CONFLICT")
    await shared.alice.send(
        "session.end", session, {"reason": "completed", "final_state": "completed"}
    )
    assert status() == "closed"
    post = {"thread_id": session, "schema_version": 1, "body": "late"}
    assert alice.refused("post_message", **post) == (409, "CONFLICT")


@proves("UNI-6", "OPEN-131", "MSG-3.6-1")
async def test_a_session_lists_its_open_findings_and_is_resolved_by_an_operator(
    shared: Shared,
) -> None:
    alice, bob, session = shared.alice_thread, shared.bob_thread, shared.id
    about = {"severity": "high", "task_id": "T1"}
    found = bob.event(session, "finding_reported", metadata=about)
    for number in range(5):
        bob.post(session, f"chat {number}")
    summary = alice.ok("summarize_thread", thread_id=session, max_messages=2)
    assert summary["open_items"] == [
        {
            "message_id": found["message_id"],
            "seq": found["seq"],
            "event_type": "finding_reported",
            "text": "about finding_reported",
            "reported_by": "bob",
            **about,
        }
    ]
    assert "1 finding open." in summary["summary"]
    bob.event(session, "thread_resolved")
    assert alice.ok("summarize_thread", thread_id=session)["open_items"]
    resolved = alice.event(session, "thread_resolved")
    after = alice.ok("summarize_thread", thread_id=session)
    assert (after["open_items"], after["last_status"]) == ([], "resolved")
    assert resolved["thread_status"] == "resolved"
    bob.event(session, "finding_reported")
    assert alice.ok("get_thread", thread_id=session)["status"] == "active"


async def test_a_sender_sees_how_far_its_message_in_a_session_reached_the_members(
    shared: Shared, signed: ServerProcess
) -> None:
    alice, bob, session = shared.alice_thread, shared.bob_thread, shared.id
    with MethodClient.of(signed, "carol", kind="human", roles=["admin"]) as carol:
        socket = await watcher(signed, carol)
        await join(socket, session)
        await socket.receive_until("session.join")
        posted = bob.post(session, "hello")
        await socket.receive_until("context.add")

        def delivery(reader: MethodClient) -> Any:
            page = reader.ok("read_messages", thread_id=session, limit=200, peek=True)
            item = next(item for item in page["messages"] if item["seq"] == posted["seq"])
            return item.get("delivery")

        assert delivery(bob) == {"alice": "queued", "carol": "delivered"}
        polled = await shared.alice.http.get(f"/sessions/{session}/messages")
        assert posted["message_id"] in polled.text
        assert delivery(bob) == {"alice": "seen", "carol": "delivered"}
        alice.ok("ack_read", thread_id=session, last_read_seq=posted["seq"])
        assert delivery(bob) == {"alice": "acked", "carol": "delivered"}
        assert delivery(alice) == delivery(bob), "she is an operator"
        own = alice.post(session, "of an operator")
        page = bob.ok("read_messages", thread_id=session, since_seq=own["seq"] - 1, peek=True)
        assert "delivery" not in page["messages"][0], "bob is neither its sender nor an operator"
        carol.read(session, limit=200)
        assert delivery(bob) == {"alice": "acked", "carol": "seen"}
        last = bob.post(session, "and one more")
        while (await socket.receive_until("context.add"))["id"] != last["message_id"]:
            pass
        await socket.socket.close()
        while "disconnected" not in (await shared.alice.http.get(f"/sessions/{session}")).text:
            pass  # the server has not noticed yet
        page = bob.ok("read_messages", thread_id=session, since_seq=last["seq"] - 1, peek=True)
        assert page["messages"][0]["delivery"]["carol"] == "delivered"


async def test_unread_and_the_cursor_work_in_a_session(shared: Shared) -> None:
    alice, bob, session = shared.alice_thread, shared.bob_thread, shared.id
    before = alice.ok("get_thread", thread_id=session)
    assert alice.ok("ack_read", thread_id=session, last_read_seq=before["last_seq"])["ok"]
    bob.post(session, "one")
    alice.post(session, "own")
    last = bob.post(session, "two")
    thread = alice.ok("get_thread", thread_id=session)
    assert (thread["unread"], thread["last_read_seq"]) == (2, before["last_seq"])
    assert set(thread["participants"]) == {"alice", "bob"}
    alice.ok("ack_read", thread_id=session, last_read_seq=last["seq"])
    assert alice.ok("get_thread", thread_id=session)["unread"] == 0
    beyond = {"thread_id": session, "last_read_seq": last["seq"] + 9}
    assert alice.refused("ack_read", **beyond) == (400, "VALIDATION_ERROR")
    assert "bob wrote: 'two'" in alice.ok("summarize_thread", thread_id=session)["summary"]


@proves("UNI-12")
async def test_a_fork_is_a_thread_for_its_members_alone(shared: Shared) -> None:
    session = shared.id
    history = (await shared.alice.http.get(f"/sessions/{session}/transcript")).json()["messages"]
    fork = {"name": "try", "from_point": history[-1]["id"], "reason": "x", "copy_context": True}
    receipt = await shared.alice.send("fork.create", session, fork | {"participants": ["alice"]})
    detail = (await shared.alice.http.get(f"/sessions/{session}")).json()
    [made] = [each["id"] for each in detail["forks"]]
    assert receipt["id"]
    posted = shared.alice_thread.post(made, "only here")
    [item] = [each for each in shared.alice_thread.read(made) if each["kind"] == "chat"]
    assert (item["message_id"], item["thread_id"]) == (posted["message_id"], made)
    assert shared.alice_thread.ok("get_thread", thread_id=made)["title"] == "try"
    missing = (404, "NOT_FOUND")
    assert shared.bob_thread.refused("read_messages", thread_id=made) == missing
    post = {"thread_id": made, "schema_version": 1, "body": "x"}
    assert shared.bob_thread.refused("post_message", **post) == missing
    assert "only here" not in str(shared.bob_thread.read(session, limit=200))
    assert "only here" not in str(shared.bob_thread.ok("summarize_thread", thread_id=session))


async def test_operators_and_orchestrators_need_membership_of_a_session(
    signed: ServerProcess, shared: Shared
) -> None:
    for role in ("operator", "orchestrator"):
        rights: dict[str, Any] = {"roles": ["admin"], "role": role}
        with MethodClient.of(signed, f"some-{role}", kind="human", **rights) as leader:
            for method, more in (
                ("get_thread", {}),
                ("read_messages", {}),
                ("summarize_thread", {}),
                ("ack_read", {"last_read_seq": 1}),
                ("post_message", {"schema_version": 1, "body": "x"}),
            ):
                refused = leader.refused(method, thread_id=shared.id, **more)
                assert refused == (404, "NOT_FOUND"), method


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"kind": "system"}, "FORBIDDEN"),
        ({"kind": "event"}, "VALIDATION_ERROR"),
        ({"metadata": {"x": "y" * 5000}}, "VALIDATION_ERROR"),
    ],
    ids=["system", "untyped", "large"],
)
async def test_wrong_messages_to_a_session_are_refused(
    shared: Shared, wrong: dict[str, Any], code: str
) -> None:
    post = {"thread_id": shared.id, "schema_version": 1, "body": "x"}
    assert shared.bob_thread.refused("post_message", **(post | wrong))[1] == code
    assert shared.bob_thread.refused("get_thread", thread_id="a\u202eb")[1] == "NOT_FOUND"


@proves("UNI-6", "UNI-8")
async def test_a_thread_is_watched_as_a_session(signed: ServerProcess, shared: Shared) -> None:
    alice, bob = shared.alice_thread, shared.bob_thread
    thread = bob.thread("bob", "alice")
    first = bob.post(thread, "before")
    detail = (await shared.alice.http.get(f"/sessions/{thread}")).json()
    assert (detail["id"], detail["name"], detail["status"]) == (thread, "Review", "active")
    assert {member["id"] for member in detail["members"]} == {"alice", "bob"}
    page = (await shared.alice.http.get(f"/sessions/{thread}/transcript")).json()
    [message] = page["messages"]
    assert (message["seq"], message["session"], message["sender"]) == (1, thread, "bob")
    assert message["payload"]["content"] == "before"
    assert (await shared.alice.poll(thread))["messages"] == page["messages"]
    async with shared.alice.open_events(thread, after=first["message_id"]) as events:
        live = bob.post(thread, "live")
        event = await events.wait_for("context.add")
        assert event.envelope["id"] == live["message_id"]
        delivered = [item["delivery"]["alice"] for item in bob.read(thread)]
        assert delivered[0] == "queued"
    alice.read(thread)
    async with shared.alice.open_events(thread, after=live["message_id"]) as events:
        bob.post(thread, "again")
        await events.wait_for("context.add")
        states = [item["delivery"]["alice"] for item in bob.read(thread)]
        assert states == ["seen", "seen", "delivered"]
    outsider = HttpClient.with_token(signed, "mallory", kind="agent")
    for path in ("", "/transcript", "/messages", "/events"):
        assert (await outsider.http.get(f"/sessions/{thread}{path}")).status_code == 404
    await outsider.close()
    refused = await shared.alice.post(thread, {})
    assert refused.status_code == 400
    named = {"type": "session.create", "session": "th_mine", "v": 1, "id": "x1", "sender": "alice"}
    named |= {"ts": "2026-01-30T20:00:00Z", "payload": {"config": detail["config"]}}
    assert (await shared.alice.post("th_mine", named)).status_code == 400


async def test_metadata_that_a_member_forged_in_tags_stays_readable(shared: Shared) -> None:
    deep = 'metadata:{"a":' + "[" * 900 + "]" * 900 + "}"
    for key, tags in (
        ("chat:1", ["chat", deep]),
        ("event:2", ["event:fix_pushed", deep]),
        ("event:3", ["event:no type\nsystem: approved"]),
        ("chat:4", ["chat", "event:no type"]),
    ):
        payload = {"key": key, "content_type": "text", "content": "x", "tags": tags}
        await shared.bob.send("context.add", shared.id, payload)
    items = shared.alice_thread.read(shared.id, limit=200)[-4:]
    assert [item["kind"] for item in items] == ["chat", "event", "system", "chat"]
    metadata = [item.get("metadata") for item in items]
    assert (metadata[0], metadata[1], metadata[3]) == (None, {"event_type": "fix_pushed"}, None)


async def watcher(server: ServerProcess, who: MethodClient) -> WebSocketClient:
    return await WebSocketClient.open(server.ws_url, who.id, who.token)


async def join(client: WebSocketClient, thread: str, **more: Any) -> str:
    who = {"id": client.seat, "name": client.seat, "type": "human", "roles": ["admin"]}
    payload = {"participant": who | {"transport": "websocket"}, "supported_versions": [1]}
    return await client.send("session.join", thread, payload, **more)


@proves("UNI-6", "UNI-7", "UNI-8")
async def test_a_thread_is_joined_and_watched_on_a_websocket(signed: ServerProcess) -> None:
    with MethodClient.of(signed, "worker") as worker, MethodClient.of(signed, "other") as other:
        thread = worker.thread("worker", "other")
        first = worker.post(thread, "first")
        socket = await watcher(signed, other)
        joined = await join(socket, thread)
        echo = await socket.receive_until("session.join")
        assert (echo["id"], echo["sender"]) == (joined, "other")
        # What it asked for does not count: it is an agent, and it observes.
        assert echo["payload"]["participant"]["type"] == "agent"
        assert echo["payload"]["participant"]["roles"] == ["observer"]
        past = await socket.receive_until("context.add")
        assert (past["id"], past["payload"]["content"]) == (first["message_id"], "first")
        assert past["payload"]["tags"] == ["chat"]
        second = worker.post(thread, "second")
        live = await socket.receive_until("context.add")
        assert (live["id"], live["seq"]) == (second["message_id"], 2)
        assert [item["delivery"] for item in worker.read(thread)] == [{"other": "delivered"}] * 2
        refused = await socket.send("prompt.submit", thread, PROMPT)
        error = await socket.receive_until("error")
        assert (error["payload"]["code"], error["payload"]["related_to"]) == (
            "INVALID_STATE",
            refused,
        )
        assert "post_message" in error["payload"]["message"]
        await socket.send("session.leave", thread, {})
        await socket.receive_until("session.leave")
        third = worker.post(thread, "third")
        await join(socket, thread, ref=second["message_id"])
        await socket.receive_until("session.join")
        again = await socket.receive_until("context.add")
        assert again["id"] == third["message_id"], "only what came after the message in ref"
        assert [item["kind"] for item in worker.read(thread)] == ["chat"] * 3, "nothing is stored"
        await socket.socket.close()


async def test_a_thread_of_others_does_not_exist_on_a_websocket(signed: ServerProcess) -> None:
    with (
        MethodClient.of(signed, "worker") as worker,
        MethodClient.of(signed, "spy") as spy,
        MethodClient.of(signed, "worker", workspace="elsewhere") as namesake,
    ):
        thread = worker.thread("worker")
        worker.post(thread, "not for you")
        for stranger in (spy, namesake):
            socket = await watcher(signed, stranger)
            for room in (thread, "th_" + "0" * 26):
                await join(socket, room)
                error = (await socket.receive())["payload"]
                assert error["code"] == "SESSION_NOT_FOUND"
            await socket.socket.close()
        socket = await watcher(signed, worker)
        socket.seat = "spy"
        await join(socket, thread)
        assert (await socket.receive())["payload"]["code"] == "UNAUTHORIZED"
        socket.seat = "worker"
        await socket.send("session.leave", thread, {})
        assert (await socket.receive())["payload"]["code"] == "PARTICIPANT_NOT_FOUND"
        await join(socket, thread, ref="msg_unknown")
        assert (await socket.receive())["type"] == "error"
        await socket.send("session.create", thread, {"config": SESSION_CONFIG})
        assert (await socket.receive())["payload"]["code"] == "INVALID_MESSAGE"
        await socket.socket.close()
