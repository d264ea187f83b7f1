"""A seat is used by what may hold it today."""

import asyncio
import base64
import json
from collections.abc import Iterator

import pytest

from tests.helpers.server import ServerProcess, a_server
from tests.helpers.wire import Wire
from tests.security.scene import PROMPT, PROPOSAL, error, executes, scene


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all."""
    with a_server(tmp_path_factory.mktemp("house")) as server:
        yield server


async def test_an_agents_token_does_not_vote_for_a_person_of_the_same_id(
    house: ServerProcess,
) -> None:
    here = await scene(house)
    proposal, gate = await here.gate()
    helper = await Wire.open(house.ws_url, "alice", house.issue("alice", "agent"))
    await helper.say("gate.approve", here.session, {"gate": gate, "approver": "alice"})
    assert not await executes(here.bot, proposal)


async def test_a_revoked_token_takes_its_rights_along(house: ServerProcess) -> None:
    here = await scene(house)
    token = house.issue("bob", roles=["approver"])
    bob = await here.come("bob", token, roles=["approver"])
    jti = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["jti"]
    await asyncio.to_thread(house.admin, "DELETE", f"/admin/tokens/{jti}")
    await bob.closed()
    proposal, gate = await here.gate()
    bob = await Wire.open(house.ws_url, "bob", house.issue("bob", roles=["observer"]))
    await bob.say("gate.approve", here.session, {"gate": gate, "approver": "bob"})
    assert not await executes(here.bot, proposal)


async def test_a_repeated_join_opens_no_door_to_another_workspace(house: ServerProcess) -> None:
    here = await scene(house)
    carol = await Wire.open(house.ws_url, "carol", house.issue("carol"))
    await carol.join(here.session, id="join-1")
    await carol.hear_until("participant.announce", id="carol")
    other = await Wire.open(house.ws_url, "carol", house.issue("carol", workspace="elsewhere"))
    await other.join(here.session, id="join-1")
    heard = await other.hear()
    assert heard["payload"].get("code") == "SESSION_NOT_FOUND"


async def test_a_strangers_id_tells_nothing_of_what_was_said(house: ServerProcess) -> None:
    here = await scene(house)
    proposal, _ = await here.gate()
    mallory = await Wire.open(house.ws_url, "mallory", house.issue("mallory"))
    await mallory.say("prompt.submit", here.session, PROMPT, id=proposal)
    assert (await error(mallory))["code"] == "SESSION_NOT_FOUND"


async def test_an_agent_does_not_lift_the_gates_it_runs_under(house: ServerProcess) -> None:
    bot = await Wire.open(house.ws_url, "bot", house.issue("bot", "agent"))
    session = await bot.create()
    changes = {"changes": {"require_approval_for": []}, "reason": "Faster"}
    await bot.say("session.config_update", session, changes)
    proposal = await bot.say("tool.propose", session, PROPOSAL)
    assert not await executes(bot, proposal)
