"""A seat is used by what may hold it today."""

import asyncio
import base64
import json
from collections.abc import Iterator

import pytest

from tests.helpers.attacks.approval_scene import PROMPT, PROPOSAL, error, executes, scene
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all."""
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


async def test_an_agents_token_does_not_vote_for_a_person_of_the_same_id(
    house: ServerProcess,
) -> None:
    here = await scene(house)
    proposal, gate = await here.gate()
    helper = await WebSocketClient.open(house.ws_url, "alice", house.issue_token("alice", "agent"))
    await helper.send("gate.approve", here.session, {"gate": gate, "approver": "alice"})
    assert not await executes(here.bot, proposal)


async def test_a_revoked_token_takes_its_rights_along(house: ServerProcess) -> None:
    here = await scene(house)
    token = house.issue_token("bob", roles=["approver"])
    bob = await here.come("bob", token, roles=["approver"])
    jti = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["jti"]
    await asyncio.to_thread(house.admin_request, "DELETE", f"/admin/tokens/{jti}")
    await bob.wait_closed()
    proposal, gate = await here.gate()
    bob = await WebSocketClient.open(
        house.ws_url, "bob", house.issue_token("bob", roles=["observer"])
    )
    await bob.send("gate.approve", here.session, {"gate": gate, "approver": "bob"})
    assert not await executes(here.bot, proposal)


async def test_a_repeated_join_opens_no_door_to_another_workspace(house: ServerProcess) -> None:
    here = await scene(house)
    carol = await WebSocketClient.open(house.ws_url, "carol", house.issue_token("carol"))
    await carol.join(here.session, id="join-1")
    await carol.receive_until("participant.announce", id="carol")
    other = await WebSocketClient.open(
        house.ws_url, "carol", house.issue_token("carol", workspace="elsewhere")
    )
    await other.join(here.session, id="join-1")
    heard = await other.receive()
    assert heard["payload"].get("code") == "SESSION_NOT_FOUND"


async def test_a_strangers_id_tells_nothing_of_what_was_said(house: ServerProcess) -> None:
    here = await scene(house)
    proposal, _ = await here.gate()
    mallory = await WebSocketClient.open(house.ws_url, "mallory", house.issue_token("mallory"))
    await mallory.send("prompt.submit", here.session, PROMPT, id=proposal)
    assert (await error(mallory))["code"] == "SESSION_NOT_FOUND"


async def test_an_agent_does_not_lift_the_gates_it_runs_under(house: ServerProcess) -> None:
    bot = await WebSocketClient.open(house.ws_url, "bot", house.issue_token("bot", "agent"))
    session = await bot.create()
    changes = {"changes": {"require_approval_for": []}, "reason": "Faster"}
    await bot.send("session.config_update", session, changes)
    proposal = await bot.send("tool.propose", session, PROPOSAL)
    assert not await executes(bot, proposal)
