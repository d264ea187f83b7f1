"""Who hears that a resource changed: those who may know of the change at that moment."""

import asyncio

from accord.core.kernel.role_permissions import Kind, Role
from accord.identity.token_service import SHELL_ACTOR
from accord.server.app import Server
from accord.transports.http.auth import Caller
from accord.transports.mcp.resources import Subscription
from tests.helpers.clients.http_client import join_payload
from tests.helpers.clients.mcp_requests import McpHttp, issue_token, structured
from tests.helpers.clients.mcp_team import Team, send

LISTS = ("accord://threads", "accord://inbox")
TIMEOUT_S = 30


def subscribed(server: Server, token: str, *uris: str) -> Subscription:
    """A subscription of the holder of this token."""
    identity = server.callers.intake.identify(token)
    subscription = Subscription(Caller(identity.actor, identity), uris)
    server.mcp.changes.add(subscription)
    return subscription


async def heard(server: Server, subscription: Subscription) -> list[str]:
    """The addresses in the notice of the changes so far; none if nothing was marked."""
    if not subscription.has_changes.is_set():
        return []
    return await asyncio.wait_for(server.mcp.changes.next_changes(subscription), TIMEOUT_S)


async def create_thread(creator: McpHttp, *participants: str) -> str:
    wish = {"title": "t", "participants": list(participants)}
    thread: str = structured(await creator.call("create_thread", wish))["thread_id"]
    return thread


async def post(sender: McpHttp, thread: str) -> None:
    said = {"thread_id": thread, "schema_version": 1, "body": "hi"}
    structured(await sender.call("post_message", said))


async def test_subscriber_of_a_list_hears_nothing_of_threads_of_others(team: Team) -> None:
    private = await create_thread(team.alice, "alice")
    shared = await create_thread(team.alice, "claude")
    listener = subscribed(team.server, team.claude.token, *LISTS)

    await post(team.alice, private)
    assert await heard(team.server, listener) == []
    await post(team.alice, shared)
    assert await heard(team.server, listener) == sorted(LISTS)


async def test_other_workspace_hears_nothing(team: Team) -> None:
    shared = await create_thread(team.alice, "claude")
    foreign = await issue_token(team.server, "claude", Kind.AGENT, Role.DRIVER, workspace="other")
    listener = subscribed(team.server, foreign, *LISTS, f"accord://threads/{shared}")

    await post(team.alice, shared)

    assert await heard(team.server, listener) == []


async def test_member_who_left_a_session_hears_nothing_more(team: Team) -> None:
    uri = f"accord://sessions/{team.session}"
    listener = subscribed(team.server, team.claude.token, uri, "accord://inbox")
    note = {"key": "k", "content_type": "text", "content": "for members"}
    await send(team.alice, team.session, "context.add", note)
    assert await heard(team.server, listener) == ["accord://inbox", uri]

    await send(team.claude, team.session, "session.leave", {"participant": "claude"})
    await send(team.alice, team.session, "context.add", {**note, "key": "k2"})
    assert await heard(team.server, listener) == []

    await send(team.claude, team.session, "session.join", join_payload("claude", "agent"))
    assert await heard(team.server, listener) == ["accord://inbox", uri]


async def test_holder_of_a_revoked_token_hears_nothing_more(team: Team) -> None:
    listener = subscribed(team.server, team.claude.token, *LISTS)
    thread = await create_thread(team.alice, "claude")
    assert await heard(team.server, listener) == sorted(LISTS)

    identity = listener.caller.identity
    assert identity is not None
    await team.server.token_service.admin_for(SHELL_ACTOR).revoke(identity.claims.jti)
    await post(team.alice, thread)

    assert await heard(team.server, listener) == []
