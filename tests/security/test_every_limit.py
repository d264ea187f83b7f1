"""Each limit is reached over a real server: the refusal names it, and nothing has changed."""

import asyncio
import contextlib
import select
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.limits import LIMITS
from tests.helpers.attacks.raw_socket import PATIENCE, plug
from tests.helpers.clients import bridge_client
from tests.helpers.clients.http_client import HttpClient, envelope
from tests.helpers.clients.websocket_client import SESSION_CONFIG
from tests.helpers.servers.moved_clock import MovedClock
from tests.helpers.servers.server_process import ServerProcess, run_server, spawn_process
from tests.helpers.threads.method_client import MethodClient
from tests.pact.mirror.scene import ASSIGN, INIT, Ledger
from tests.security.limit_scenarios import REACH
from tests.security.low_limits import KIB, LOW, OWN, Scene, note
from tests.transports.edge.test_connection_limits import stubborn
from tests.transports.edge.test_slow_http import established, wait_for

# Past these a connection ends, or there is no session yet: each has a test of its own below.
CUT: dict[str, Callable[..., Any]] = {}


def cuts(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The test reaches these."""

    def noted(test: Callable[..., Any]) -> Callable[..., Any]:
        CUT.update(dict.fromkeys(names, test))
        return test

    return noted


@pytest.fixture(scope="module")
def low(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    flags = [word for name, most in LOW.items() for word in ("--limit", f"{name}={most}")]
    with run_server(
        tmp_path_factory.mktemp("low"), "token", "--rate-limit", "500", *flags
    ) as server:
        yield server


@pytest.fixture
async def scene(
    low: ServerProcess, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Scene]:
    name = request.param
    with contextlib.ExitStack() as stack:
        server = low
        if name in OWN:
            flags = ("--limit", f"{name}={OWN[name]}")
            server = stack.enter_context(run_server(tmp_path, "token", *flags))
        web = HttpClient.with_token(server, f"owner-{name}", roles=["admin", "driver", "approver"])
        session = await web.create(max_participants=100)
        made = Scene(server, name, web, session, [], [], [])
        yield made
        for each in (web, *made.others):
            await each.close()
        for opened in made.plugs:
            opened.close()


@pytest.mark.parametrize("scene", REACH, indirect=True, ids=str)
async def test_past_a_limit_the_refusal_names_it_and_nothing_changed(scene: Scene) -> None:
    last = await REACH[scene.name](scene)
    before = await scene.everything()

    answer = await last()

    said = answer.json()
    problem = said.get("payload") or said["error"]
    assert problem["details"]["limit"] == scene.name, problem
    assert problem["details"]["most"] == {**LOW, **OWN}[scene.name]
    codes = ERROR_CODES[LIMITS[scene.name].spec.reason]
    assert (answer.status_code, problem["code"]) == (codes.http, codes.pvp)
    assert await scene.everything() == before


# What ends a connection, or comes before there is a session


@cuts("frame")
async def test_a_frame_that_is_too_long_ends_the_connection(low: ServerProcess) -> None:
    token = low.issue_token("framer")
    async with connect(low.ws_url, additional_headers={"Authorization": f"Bearer {token}"}) as ws:
        await ws.send("x" * (LOW["frame"] + 1))
        with pytest.raises(ConnectionClosed) as end:
            await ws.recv()

    assert end.value.rcvd is not None
    assert end.value.rcvd.code == 1009


@cuts("connections_per_principal")
async def test_one_principal_has_so_many_connections_and_others_are_not_its_affair(
    low: ServerProcess,
) -> None:
    mine = {"Authorization": f"Bearer {low.issue_token('many')}"}
    async with connect(low.ws_url, additional_headers=mine) as one:
        async with connect(low.ws_url, additional_headers=mine):
            with pytest.raises(InvalidStatus) as no:
                await connect(low.ws_url, additional_headers=mine)
            assert no.value.response.status_code == 429
            assert b"connections_per_principal" in (no.value.response.body or b"")
            theirs = {"Authorization": f"Bearer {low.issue_token('another')}"}
            await (await connect(low.ws_url, additional_headers=theirs)).close()
        await (await one.ping())


@cuts("head", "body")
async def test_a_head_and_a_body_have_an_end(low: ServerProcess) -> None:
    headers = {"Authorization": f"Bearer {low.admin_token}"}
    async with httpx.AsyncClient(base_url=low.url, trust_env=False) as http:
        long = await http.get("/healthz", headers={"x": "y" * 2 * KIB})
        large = await http.post("/admin/tokens", headers=headers, content=b" " * (KIB + 1))

    assert (long.status_code, "(head)" in long.text) == (431, True)
    assert large.status_code == 413
    assert large.json()["error"]["details"] == {"limit": "body", "most": KIB}


# The whole server


@cuts("sessions")
async def test_a_workspace_has_so_many_sessions_and_an_end_makes_room(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--limit", "sessions=2") as server:
        webs = [
            HttpClient.with_token(server, f"u{number}", roles=["admin", "driver"])
            for number in range(3)
        ]
        first = await webs[0].create()
        await webs[1].create()
        made = envelope("session.create", "new", "u2", {"config": SESSION_CONFIG})
        answer = await webs[2].post("new", made)
        assert answer.status_code == 429
        assert answer.json()["payload"]["details"] == {"limit": "sessions", "most": 2}
        assert (await webs[2].http.get("/sessions")).json()["sessions"] == []

        await asyncio.to_thread(server.restart)
        assert (await webs[2].post("new", made)).status_code == 429, "a restart forgets nothing"
        await webs[0].send("session.end", first, {"reason": "Done", "final_state": "completed"})
        assert (await webs[2].post("new", made)).status_code == 200
        for web in webs:
            await web.close()


@cuts("connections")
async def test_a_server_has_so_many_connections(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--limit", "connections=3") as server:
        headers = {"Authorization": f"Bearer {server.issue_token('alice')}"}
        held = [await connect(server.ws_url, additional_headers=headers) for _ in range(3)]
        with pytest.raises(InvalidStatus) as no:
            await connect(server.ws_url, additional_headers=headers)
        assert no.value.response.status_code == 503
        assert b"(connections)" in (no.value.response.body or b"")
        for each in held:
            await each.close()


@cuts("polls")
async def test_waiting_requests_are_limited_in_total(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--limit", "polls=1") as server:
        one, two = [
            HttpClient.with_token(server, name, roles=["admin", "driver"])
            for name in ("one", "two")
        ]
        session, other = await one.create(), await two.create()
        last = (await one.poll(session))["messages"][-1]["id"]
        newest = (await two.poll(other))["messages"][-1]["id"]
        asked = [
            asyncio.create_task(web.http.get(f"/sessions/{where}/messages?after={id}&wait=60"))
            for web, where, id in ((one, session, last), (two, other, newest))
        ]
        done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        bad = done.pop().result()
        await asyncio.gather(
            one.send("context.add", session, note("k")), two.send("context.add", other, note("k"))
        )
        good = await waiting.pop()
        await asyncio.gather(one.close(), two.close())

    assert (good.status_code, bad.status_code) == (200, 429)
    assert bad.json()["error"]["details"]["limit"] == "polls"


def gone(opened: socket.socket) -> bool:
    """Whether the server hangs up, and soon; whatever it said before is not read to the end."""
    opened.settimeout(PATIENCE)
    try:
        return not opened.recv(1)
    except ConnectionError:
        return True


@cuts("strangers")
async def test_of_those_who_show_no_identity_the_longest_waiting_give_way(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--limit", "strangers=2") as server:
        alice = HttpClient.with_token(server, "alice", roles=["admin", "driver"])
        before = (
            (await alice.http.get("/sessions")).json(),
            server.admin_request("GET", "/admin/tokens"),
        )
        with contextlib.ExitStack() as stack:
            first, second = (stack.enter_context(plug(server)) for _ in range(2))
            while not ready(first):  # nobody gives way within a second
                stack.enter_context(plug(server))
                await asyncio.sleep(0.1)
            assert gone(first)
            await asyncio.to_thread(gone, second)
            assert (await alice.http.get("/healthz")).status_code == 200
        after = (
            (await alice.http.get("/sessions")).json(),
            server.admin_request("GET", "/admin/tokens"),
        )
        await alice.close()
    assert after == before


def ready(opened: socket.socket) -> bool:
    """Whether there is something to read, an end included."""
    return bool(select.select([opened], [], [], 0)[0])


@cuts("backlog")
async def test_a_reader_too_far_behind_is_cut_off_and_reads_on_later(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--limit", f"backlog={64 * KIB}") as server:
        alice, bob = (
            HttpClient.with_token(server, name, roles=["admin", "driver"])
            for name in ("alice", "bob")
        )
        session = await alice.create()
        first = (await bob.join(session))["id"]
        async with bob.http.stream("GET", f"/sessions/{session}/events") as lazy:
            assert lazy.status_code == 200
            said = [
                (await alice.send("context.add", session, note("k", 900_000)))["id"]
                for _ in range(12)
            ]
            await asyncio.to_thread(wait_for, lambda: "reader.cut_off" in server.log)
            with pytest.raises(httpx.HTTPError):
                await lazy.aread()
        heard: list[str] = []
        more, after = True, first
        while more:
            page = await bob.poll(session, after, limit=1000)
            heard += [each["id"] for each in page["messages"] if each["type"] == "context.add"]
            more, after = page["has_more"], page["next"]
        await asyncio.gather(alice.close(), bob.close())
    assert heard == said


@cuts("unread", "stall_seconds")
@pytest.mark.parametrize("limit", ["unread=1MiB", "stall_seconds=1"])
async def test_an_answer_that_nobody_reads_is_let_go(tmp_path: Path, limit: str) -> None:
    with run_server(tmp_path, "token", "--limit", limit) as server:
        alice = HttpClient.with_token(server, "alice", roles=["admin", "driver"])
        session = await alice.create()
        for number in range(6):
            await alice.send("context.add", session, note(f"k{number}", 900_000))
        before = (await alice.http.get(f"/sessions/{session}")).json()
        await alice.close()
        await asyncio.to_thread(wait_for, lambda: established(server) == 0)
        token = alice.http.headers["authorization"]
        ask = f"GET /sessions/{session}/transcript HTTP/1.1\r\nHost: {server.url[7:]}\r\n"
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                opened = stack.enter_context(stubborn(server))
                # More than the two machines hold between them.
                opened.sendall(f"{ask}Authorization: {token}\r\n\r\n".encode() * 4)
            await asyncio.to_thread(wait_for, lambda: ready(opened))
            if limit.startswith("unread"):
                await asyncio.to_thread(wait_for, lambda: "readers.cut_off" in server.log)
            else:
                await asyncio.to_thread(wait_for, lambda: established(server) == 0)
        later = HttpClient.with_token(server, "alice", roles=["admin", "driver"])
        assert (await later.http.get(f"/sessions/{session}")).json() == before
        await later.close()


async def test_operators_are_counted_too(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--rate-limit", "2") as server:
        headers = {"Authorization": f"Bearer {server.admin_token}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, trust_env=False) as http:
            answers = [await http.get("/admin/keys") for _ in range(30)]
            # As from another machine, by way of a proxy.
            far = [await http.get("/metrics", headers={"via": "x"}) for _ in range(30)]

    for each in (answers, far):
        late = [answer for answer in each if answer.status_code == 429]
        assert late
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in late)
    assert answers[0].status_code == 200


@cuts("pact_log")
def test_a_pact_that_is_too_large_is_not_read_and_what_was_known_stays(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "work" / ".pact").add(INIT, ASSIGN)
    said = {"repo": "large-1", "directory": str(ledger.directory)}
    with run_server(tmp_path / "home", "token") as server:
        path = server.home / "bridge.sock"
        good = bridge_client.send_action(path, "pact-changed", **said)
        with ledger.path.open("r+b") as file:
            file.truncate(LIMITS["pact_log"].default + 1)
        large = bridge_client.send_action(path, "pact-changed", **said)

    assert (good["events"], good["trouble"]) == (2, "")
    assert (large["events"], large["unread"]) == (2, [])
    assert large["trouble"] == "The log is larger than 64 MiB, the limit pact_log"


@cuts("thread_posts")
def test_an_agent_posts_so_many_messages_a_minute(tmp_path: Path) -> None:
    flags = ("--rate-limit", "1000", "--limit", "thread_posts=2")
    with run_server(tmp_path, "token", *flags) as server, MethodClient.of(server, "one") as one:
        thread = one.thread("one")
        one.post(thread, "taken")
        answer = one.call("post_message", thread_id=thread, schema_version=1, body="too much")
        problem = answer.json()["error"]
        assert (answer.status_code, problem["code"]) == (429, "RATE_LIMITED")
        assert problem["details"].items() >= {"limit": "thread_posts", "most": 2}.items()
        assert one.ok("get_thread", thread_id=thread)["last_seq"] == 1


@cuts("idempotency_seconds")
def test_a_key_is_remembered_for_so_long(tmp_path: Path) -> None:
    clock = MovedClock(tmp_path / "python")
    server = ServerProcess(tmp_path / "server", "token", "--limit", "idempotency_seconds=3600")
    server.spawn = lambda words, log: spawn_process([clock.python, *words[1:]], log)
    with contextlib.ExitStack() as stack:
        stack.callback(server.start().kill)
        one = stack.enter_context(MethodClient.of(server, "one"))
        thread = one.thread("one")
        first = one.post(thread, "first", idempotency_key="k")
        again = {"thread_id": thread, "schema_version": 1, "body": "other", "idempotency_key": "k"}
        assert one.refused("post_message", **again) == (409, "IDEMPOTENCY_CONFLICT")
        assert one.ok("get_thread", thread_id=thread)["last_seq"] == first["seq"]
        clock.move(2)
        assert one.ok("post_message", **again)["seq"] == first["seq"] + 1


def test_every_limit_is_reached_over_a_real_server() -> None:
    assert REACH.keys() | CUT.keys() == LIMITS.keys()
    assert not REACH.keys() & CUT.keys()
