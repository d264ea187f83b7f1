"""Who is here: agents that report, and agents that only send requests."""

from typing import Any

import httpx
import pytest

from accord.core.attention.runtimes import RuntimeStatus
from accord.core.attention.state import Seat
from accord.core.kernel.actor import Actor
from accord.core.kernel.role_permissions import Kind
from accord.transports.intake import ACTIVE_MS, IDLE_MS, AgentTraffic
from tests.helpers.clients.mcp_requests import McpHttp, modern_headers, modern_meta, rpc, structured
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.threads.method_client import MethodClient
from tests.spec import proves


def agents_seen_by(reader: MethodClient) -> dict[str, Any]:
    return {agent["agent_id"]: agent for agent in reader.ok("list_agents")["agents"]}


@proves("UNI-22")
async def test_agent_that_only_uses_mcp_over_http_is_listed_as_active(
    signed: ServerProcess,
) -> None:
    with (
        MethodClient.of(signed, "olga", kind="human", roles=["admin"]) as olga,
        MethodClient.of(signed, "quiet") as quiet,
        MethodClient.of(signed, "elsewhere", workspace="other") as foreign,
    ):
        assert not agents_seen_by(olga).keys() & {"poster", "quiet"}
        token = signed.issue_token("poster", "agent")
        async with httpx.AsyncClient(base_url=signed.url, timeout=60) as http:
            poster = McpHttp(http, token)
            wish = {"title": "t", "participants": ["poster"]}
            thread = structured(await poster.call("create_thread", wish))["thread_id"]
            said = {"thread_id": thread, "schema_version": 1, "body": "hi"}
            structured(await poster.call("post_message", said))
            foreign.thread("elsewhere")
            quiet.ok("heartbeat_session", runtime="codex_cli", status="idle")

            seen = agents_seen_by(olga)
            assert seen["poster"]["status"] == "active"
            assert seen["poster"]["last_seen_at"].endswith("Z")
            assert seen["poster"]["runtimes"] == []
            assert seen["quiet"]["status"] == "idle", "a heartbeat is no request of the agent"
            assert not seen.keys() & {"elsewhere", "olga"}

            request = {"uri": "accord://agents", "_meta": modern_meta()}
            headers = modern_headers("resources/read", "accord://agents")
            answer = await poster.post(rpc("resources/read", request), headers)
            content = httpx.Response(200, text=answer.json()["result"]["contents"][0]["text"])
            here = {agent["id"]: agent for agent in content.json()["agents"]}
            assert (here["poster"]["status"], here["quiet"]["status"]) == ("active", "idle")
            waiting = structured(await poster.call("whats_waiting", {}))["agents"]
            assert {"id": "quiet", "status": "idle"}.items() <= next(
                agent for agent in waiting if agent["id"] == "quiet"
            ).items()


@pytest.mark.parametrize(
    ("silent_ms", "status"),
    [
        (0, RuntimeStatus.ACTIVE),
        (ACTIVE_MS, RuntimeStatus.IDLE),
        (IDLE_MS, RuntimeStatus.OFFLINE),
    ],
)
def test_silence_makes_an_agent_idle_and_then_offline(
    silent_ms: int, status: RuntimeStatus
) -> None:
    now = [1000]
    traffic, seat = AgentTraffic(lambda: now[0]), Seat("default", "codex")
    assert traffic.status(seat) is RuntimeStatus.OFFLINE
    traffic.note(Actor("codex", Kind.AGENT))
    traffic.note(Actor("olga", Kind.HUMAN))
    now[0] += silent_ms
    assert traffic.status(seat) is status
    assert list(traffic.seats_in("default")) == [seat]
    assert list(traffic.seats_in("other")) == []
