"""Who gets in at `/mcp`: tokens, hosts, origins, and sessions of other principals."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from accord.core.kernel.role_permissions import Kind, Role
from accord.identity.token_service import SHELL_ACTOR
from accord.identity.token_signing import issue_token as sign_token
from accord.identity.token_signing import verify_token
from accord.server.app import Server
from accord.transports.edge.origin import names_this_server
from accord.transports.mcp import sessions as mcp_sessions
from tests.helpers.clients.mcp_requests import (
    McpHttp,
    caller_of,
    in_process_server,
    issue_token,
    modern_headers,
    rpc,
    structured,
    tool_call,
)

HEADERS = modern_headers("tools/call", "whats_waiting")
DAY_MS = 24 * 3600 * 1000


class House(NamedTuple):
    """A server, and callers with tokens of their own."""

    server: Server
    stack: AsyncExitStack

    async def caller(self, token: str) -> McpHttp:
        return await self.stack.enter_async_context(caller_of(self.server.asgi_app(), token))

    async def agent(self, id: str, workspace: str = "default") -> McpHttp:
        return await self.caller(
            await issue_token(self.server, id, Kind.AGENT, Role.DRIVER, workspace=workspace)
        )


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(in_process_server(tmp_path))
        yield House(server, stack)


def jti_of(server: Server, token: str) -> str:
    identity = verify_token(token, server.engine.clock.now(), server.keyring, ())
    return identity.claims.jti


def unsigned(token: str) -> str:
    """The same claims with the algorithm `none`."""
    head = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "k"}).encode()).rstrip(b"=")
    return f"{head.decode()}.{token.split('.')[1]}."


def tampered(token: str) -> str:
    """Another agent's id under the signature of the first."""
    head, claims, signature = token.split(".")
    content = json.loads(base64.urlsafe_b64decode(claims + "=="))
    changed = json.dumps({**content, "agent_id": "alice", "kind": "human"}).encode()
    return f"{head}.{base64.urlsafe_b64encode(changed).rstrip(b'=').decode()}.{signature}"


async def test_tokens_that_are_not_valid_are_refused_on_every_method(house: House) -> None:
    good = await issue_token(house.server, "claude", Kind.AGENT)
    revoked = await issue_token(house.server, "codex", Kind.AGENT)
    jti = jti_of(house.server, revoked)
    await house.server.token_service.admin_for(SHELL_ACTOR).revoke(jti)
    past = house.server.engine.clock.now() - 3 * DAY_MS
    expired = sign_token(
        house.server.keyring, id="claude", kind=Kind.AGENT, roles=[], now=past, ttl_s=3600
    ).token
    tokens = ["", "x", unsigned(good), tampered(good), revoked, expired]
    for token in tokens:
        caller = await house.caller(token)
        for answer in (
            await caller.post(tool_call("whats_waiting", {}), HEADERS),
            await caller.post(rpc("tools/list", {}), modern_headers("tools/list")),
            await caller.http.get("/mcp", headers={"authorization": f"Bearer {token or 'x'}"}),
        ):
            assert answer.status_code == 401, (token, answer.text)
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["error"]["code"] == "UNAUTHORIZED"


async def test_cookie_does_not_open_mcp(house: House) -> None:
    token = await issue_token(house.server, "alice", Kind.HUMAN, Role.ADMIN)
    caller = await house.caller("")
    cookie = f"accord-{house.server.known_people().server_id.lower()}={token}"
    headers = {**HEADERS, "cookie": cookie, "origin": "http://127.0.0.1:7420"}

    answer = await caller.post(tool_call("whats_waiting", {}), headers)

    assert answer.status_code == 401


async def test_other_workspace_sees_nothing(house: House) -> None:
    ours, theirs = await house.agent("claude"), await house.agent("claude", "elsewhere")
    thread = structured(
        await ours.call("create_thread", {"title": "t", "participants": ["claude"]})
    )["thread_id"]

    for name, arguments in (
        ("get_thread", {"thread_id": thread}),
        ("read_messages", {"thread_id": thread}),
        ("post_message", {"thread_id": thread, "schema_version": 1, "body": "hi"}),
    ):
        error = structured(await theirs.call(name, arguments))["error"]
        assert error["code"] == "NOT_FOUND"
    hint = {"title": "t", "participants": ["claude"], "workspace_id": "default"}
    error = structured(await theirs.call("create_thread", hint))["error"]
    assert error["code"] in {"OUT_OF_SCOPE_WORKSPACE", "CLAIM_MISMATCH"}


async def test_identity_in_the_arguments_must_be_the_credentials(house: House) -> None:
    claude = await house.agent("claude")
    posing = {"title": "t", "participants": ["claude"], "created_by": "alice"}

    error = structured(await claude.call("create_thread", posing))["error"]

    assert error["code"] == "CLAIM_MISMATCH"


# Hosts and origins


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:7420"}, 200),
        ({"host": "localhost:9"}, 200),
        ({"host": "[::1]:7420"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "10.0.0.1:7420"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "127.0.0.1:7420", "origin": "http://127.0.0.1:7420"}, 200),
        ({"host": "127.0.0.1:7420", "origin": "http://evil.example"}, 403),
        ({"host": "127.0.0.1:7420", "origin": "null"}, 403),
    ],
)
async def test_foreign_hosts_and_origins_are_refused(
    house: House, headers: dict[str, str], status: int
) -> None:
    claude = await house.agent("claude")

    answer = await claude.post(tool_call("whats_waiting", {}), {**HEADERS, **headers})

    assert answer.status_code == status


@pytest.mark.parametrize(
    ("host", "bound", "public", "own"),
    [
        ("accord.example", "127.0.0.1", "https://accord.example", True),
        ("accord.example:443", "127.0.0.1", "https://accord.example", True),
        ("accord.example", "127.0.0.1", None, False),
        ("Accord.Example", "127.0.0.1", "https://accord.example/base", True),
        ("10.0.0.5:7420", "10.0.0.5", None, True),
        ("10.0.0.5:7420", "0.0.0.0", None, True),  # noqa: S104 - what a host may be bound to
        ("10.0.0.6:7420", "10.0.0.5", None, False),
        ("evil.example", "0.0.0.0", None, False),  # noqa: S104 - the same
        ("build-host:7420", "build-host", None, True),
        ("", "127.0.0.1", None, False),
        ("[::", "127.0.0.1", None, False),
    ],
)
def test_hosts_that_name_the_server(host: str, bound: str, public: str | None, own: bool) -> None:
    assert names_this_server(host, bound, public) is own


# Sessions of the older revisions


async def test_session_belongs_to_the_principal_that_opened_it(house: House) -> None:
    claude, codex = await house.agent("claude"), await house.agent("codex")
    codex.session = await claude.open_session()

    for answer in (
        await codex.call_in_session("whats_waiting", {}),
        await codex.post(rpc("tools/list", {}), codex.session_headers()),
        await codex.http.delete(
            "/mcp", headers={**codex.session_headers(), "authorization": f"Bearer {codex.token}"}
        ),
    ):
        assert answer.status_code == 404
    structured(await claude.call_in_session("whats_waiting", {}))


async def test_session_continues_with_a_new_token_of_the_same_principal(house: House) -> None:
    claude, renewed = await house.agent("claude"), await house.agent("claude")
    renewed.session = await claude.open_session()

    structured(await renewed.call_in_session("whats_waiting", {}))


async def test_ended_session_is_unknown_to_the_fast_path_too(house: House) -> None:
    claude = await house.agent("claude")
    await claude.open_session()
    headers = {**claude.session_headers(), "authorization": f"Bearer {claude.token}"}

    assert (await claude.http.delete("/mcp", headers=headers)).status_code == 200
    assert (await claude.call_in_session("whats_waiting", {})).status_code == 404


async def test_sessions_are_bounded_per_principal_and_reaped_when_idle(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_sessions, "MAX_SESSIONS_PER_PRINCIPAL", 2)
    claude, sessions = await house.agent("claude"), house.server.mcp.sessions
    first = await claude.open_session()
    for _ in range(2):
        await claude.open_session()

    assert len(sessions.by_id) == 2
    claude.session = first
    assert (await claude.call_in_session("whats_waiting", {})).status_code == 404
    monkeypatch.setattr(sessions, "now", lambda: 10**9)
    assert len(sessions.idle()) == 2
    for id in sessions.idle():
        await house.server.mcp.end_session(id)
    assert not sessions.by_id
    assert not sessions.counts


async def test_body_over_the_limit_is_refused(house: House) -> None:
    claude = await house.agent("claude")
    big = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"' + b"x" * (5 << 20) + b'"}'

    answer: httpx.Response = await claude.post(big, HEADERS)

    assert answer.status_code == 413
    body: Any = answer.json()
    assert body["error"]["code"] == "VALIDATION_ERROR"
    assert body["error"]["message"] == f"The request body is larger than {4 << 20} bytes"


async def test_revoked_token_ends_an_open_stream(house: House) -> None:
    claude = await house.agent("claude")
    meta = tool_call("x", {})["params"]["_meta"]
    listen = rpc(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": meta}
    )
    waiting = asyncio.create_task(claude.post(listen, modern_headers("subscriptions/listen")))
    while not house.server.mcp.changes.subscriptions:  # noqa: ASYNC110 - the SDK is being imported
        await asyncio.sleep(0.01)

    await house.server.token_service.admin_for(SHELL_ACTOR).revoke(
        jti_of(house.server, claude.token)
    )

    await asyncio.wait([waiting], timeout=10)
    assert waiting.done()
    assert not house.server.mcp.changes.subscriptions
    assert (await claude.call("whats_waiting", {})).status_code == 401
