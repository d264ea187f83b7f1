"""What a hostile client and a lying agent try in vain, against a real server."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.helpers.attacks.approval_scene import PROMPT, PROPOSAL, error, executes, get, scene
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server

UNAUTHORIZED = 401


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all attacks."""
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


def encoded(part: Any) -> str:
    """A part of a token."""
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def forgeries(token: str) -> Iterator[str]:
    """Tokens that nobody signed."""
    header, claims, signature = token.split(".")
    said = json.loads(base64.urlsafe_b64decode(claims + "=="))
    kid = jwt.get_unverified_header(token)["kid"]
    yield f"{encoded({'alg': 'none', 'kid': kid})}.{claims}."
    yield f"{encoded({'alg': 'EdDSA', 'kid': '../../etc/passwd'})}.{claims}.{signature}"
    yield f"{header}.{encoded(said | {'agent_id': 'root'})}.{signature}"
    yield f"{header}.{encoded(said | {'exp': said['exp'] + 9999})}.{signature}"
    yield jwt.encode(said, "k" * 32, algorithm="HS256", headers={"kid": kid})
    yield f"{token}, Bearer {token}"


# Identity


async def test_no_forged_token_opens_anything(house: ServerProcess) -> None:
    for forged in forgeries(house.issue_token("alice", roles=["admin"])):
        status, _ = await get(f"{house.url}/sessions", forged)
        assert status == UNAUTHORIZED
        with pytest.raises(InvalidStatus) as no:
            await connect(house.ws_url, additional_headers={"Authorization": f"Bearer {forged}"})
        assert no.value.response.status_code == UNAUTHORIZED


async def test_a_name_or_a_token_in_the_address_is_nobody(house: ServerProcess) -> None:
    token = house.issue_token("alice")
    for query in (f"token={token}", f"access_token={token}", "as=alice"):
        assert (await get(f"{house.url}/sessions?{query}"))[0] == UNAUTHORIZED


async def test_a_connection_speaks_for_nobody_else_even_with_their_token(
    house: ServerProcess,
) -> None:
    here = await scene(house)
    mallory = await WebSocketClient.open(house.ws_url, "mallory", house.issue_token("mallory"))
    for seat in ("alice", "system", "system:timer", "Mallory", "mallory "):
        mallory.seat = seat
        await mallory.join(here.session, token=house.issue_token("alice", roles=["admin"]))
        assert (await error(mallory))["code"] == "UNAUTHORIZED"


# Authority


async def test_an_agent_never_approves_with_any_role_or_claim(house: ServerProcess) -> None:
    here = await scene(house)
    token = house.issue_token("judge", "agent", ["approver", "navigator"], capabilities=["approve"])
    judge = await here.come("judge", token, kind="agent", roles=["approver", "navigator"])
    proposal, gate = await here.gate()
    for voter in (judge, here.bot):
        for approver in (voter.seat, "alice"):
            await voter.send(
                "gate.approve", here.session, {"gate": gate, "approver": approver}, ref=gate
            )
            assert (await error(voter))["code"] == "UNAUTHORIZED"
    assert not await executes(here.alice, proposal)


async def test_an_agent_cannot_come_back_as_a_person(house: ServerProcess) -> None:
    here = await scene(house)
    again = await WebSocketClient.open(house.ws_url, "bot", house.issue_token("bot", "agent"))
    await again.join(here.session, "human")
    assert (await error(again))["code"] == "UNAUTHORIZED"


async def test_a_demotion_outlives_a_rejoin(house: ServerProcess) -> None:
    here = await scene(house)
    token = house.issue_token("bob", roles=["approver"])
    bob = await here.come("bob", token, roles=["approver"])
    change = {"participant": "bob", "old_roles": ["approver"], "new_roles": ["observer"]}
    await here.alice.send("participant.role_change", here.session, change | {"changed_by": "alice"})
    await bob.receive_until("participant.role_change")
    await bob.send("session.leave", here.session, {})
    await bob.receive_until("session.leave")
    await bob.join(here.session, roles=["approver"])
    announced = await bob.receive_until("participant.announce", id="bob", roles=["observer"])
    assert "capabilities" not in announced["payload"]


async def test_weaker_rules_do_not_weaken_an_open_gate(house: ServerProcess) -> None:
    here = await scene(house, default_gate_quorum={"type": "any", "count": 2})
    proposal, gate = await here.gate()
    changes = {"require_approval_for": [], "default_gate_quorum": {"type": "any", "count": 1}}
    await here.alice.send(
        "session.config_update", here.session, {"changes": changes, "reason": "Hurry"}
    )
    await here.alice.send("gate.approve", here.session, {"gate": gate, "approver": "alice"})
    await here.alice.receive_until("gate.approve")
    assert not await executes(here.bot, proposal)


async def test_former_member_cannot_vote(house: ServerProcess) -> None:
    here = await scene(house)
    bob = await here.come("bob", house.issue_token("bob", roles=["approver"]), roles=["approver"])
    _, gate = await here.gate()
    await bob.send("session.leave", here.session, {})
    await bob.receive_until("session.leave")
    for vote in ({"approver": "bob"}, {"rejector": "bob", "reason": "No"}):
        kind = "gate.approve" if "approver" in vote else "gate.reject"
        await bob.send(kind, here.session, {"gate": gate, **vote})
        assert (await error(bob))["code"] == "PARTICIPANT_NOT_FOUND"


# Tools


async def test_nothing_runs_without_its_own_live_grant(house: ServerProcess) -> None:
    here = await scene(house)
    other = await scene(house)
    proposal, gate = await here.gate()
    foreign, _ = await other.gate(category="file_read", tool_name="look", requires_approval=True)
    fake = {"id": "x", "digest": "0" * 64, "expires_at": "2099-01-01T00:00:00.000Z"}
    for target in (proposal, foreign, gate, "../" + proposal):
        run = {"tool_proposal": target, "approved_by": ["alice"], "grant": fake}
        await here.bot.send("tool.execute", here.session, run)
        assert (await error(here.bot))["code"] == "INVALID_STATE"
        result = {"tool_proposal": target, "success": True, "duration_ms": 1}
        await here.bot.send("tool.result", here.session, result)
        assert (await error(here.bot))["code"] == "INVALID_STATE"


async def test_a_grant_is_used_once_and_by_its_proposer(house: ServerProcess) -> None:
    here = await scene(house)
    thief = await here.come(
        "thief", house.issue_token("thief", "agent"), kind="agent", roles=["driver"]
    )
    proposal, gate = await here.gate()
    await here.alice.send("gate.approve", here.session, {"gate": gate, "approver": "alice"})
    granted = (await here.bot.receive_until("tool.execute"))["payload"]
    await thief.send("tool.execute", here.session, granted)
    assert (await error(thief))["code"] == "UNAUTHORIZED"
    forged = granted | {"grant": granted["grant"] | {"digest": "0" * 64}}
    await here.bot.send("tool.execute", here.session, forged)
    assert (await error(here.bot))["code"] == "GATE_FAILED"
    await here.bot.send("tool.execute", here.session, granted)
    await here.bot.receive_until("tool.execute", tool_proposal=proposal)
    await here.bot.send("tool.execute", here.session, granted)
    assert (await error(here.bot))["code"] == "INVALID_STATE"


@pytest.mark.parametrize("name", ["shell", "Shell ", "ＢＡＳＨ", "delete_file"])
async def test_a_known_tool_is_gated_whatever_it_is_called(house: ServerProcess, name: str) -> None:
    gated = ["shell_execute", "file_delete"]
    here = await scene(house, require_approval_for=gated)
    lie = PROPOSAL | {"tool_name": name, "category": "file_read"}
    await here.bot.send("tool.propose", here.session, lie)
    assert (await here.bot.receive_until("tool.propose"))["payload"]["requires_approval"]


# Other rooms


@pytest.mark.parametrize("session", ["people/default", "../people/default", "room/x", "%2e%2e"])
async def test_an_id_that_looks_like_a_path_leads_nowhere(
    house: ServerProcess, session: str
) -> None:
    mallory = await WebSocketClient.open(house.ws_url, "mallory", house.issue_token("mallory"))
    await mallory.send("prompt.submit", session, PROMPT)
    assert (await error(mallory))["code"] == "SESSION_NOT_FOUND"
    await mallory.send("session.create", session, {"config": {}})
    assert (await error(mallory))["code"] == "INVALID_MESSAGE"


async def test_a_reference_into_another_session_looks_like_one_to_nothing(
    house: ServerProcess,
) -> None:
    here, there = await scene(house), await scene(house)
    _, hidden = await there.gate()
    answers = []
    for ref in (hidden, hidden[:-4] + "0000"):
        await here.alice.send("prompt.submit", here.session, PROMPT, causal_refs=[ref])
        answers.append((await error(here.alice))["message"].replace(ref, "…"))
    assert answers[0] == answers[1]


async def test_no_token_reaches_the_log_or_the_files(house: ServerProcess) -> None:
    here = await scene(house)
    token = house.issue_token("carol")
    carol = await WebSocketClient.open(house.ws_url, "carol")
    await carol.join(here.session, token=token)
    await carol.receive_until("participant.announce", id="carol")
    assert token.encode() not in house.stored_bytes
    assert token not in house.log
