"""Asking for approval over MCP, and who decides: a person, by a form or elsewhere."""

import asyncio
import json
from typing import Any

import pytest

from accord.core.kernel.role_permissions import Kind, Role
from tests.helpers.clients.http_client import join_payload
from tests.helpers.clients.mcp_requests import (
    META,
    McpHttp,
    caller_of,
    issue_token,
    modern_headers,
    modern_meta,
    rpc,
    structured,
)
from tests.helpers.clients.mcp_team import CALL, Team, pending_gate, propose, send
from tests.spec import proves


async def test_host_is_shown_where_the_gate_is_decided_and_its_answer_is_no_vote(
    team: Team,
) -> None:
    asked = await team.claude.call("propose_and_wait", {"session": team.session, **CALL})

    result = asked.json()["result"]
    assert result["resultType"] == "input_required"
    shown = result["inputRequests"]["gate"]["params"]
    assert shown["mode"] == "url"
    assert f"/#/sessions/{team.session}/gates/" in shown["url"]

    headers = modern_headers("tools/call", "propose_and_wait")
    retry = {
        "name": "propose_and_wait",
        "arguments": {"session": team.session, **CALL, "wait_seconds": 0},
        "_meta": modern_meta(),
        "requestState": result["requestState"],
        "inputResponses": {"gate": {"action": "accept", "content": {"approve": True}}},
    }
    answer = structured(await team.claude.post(rpc("tools/call", retry), headers))
    assert answer["status"] == "waiting"
    assert answer["proposal"] == result["requestState"]
    assert answer["gate"]["approvals_received"] == 0
    stolen = await team.alice.post(rpc("tools/call", retry), headers)
    assert structured(stolen)["error"]["code"] == "FORBIDDEN"


async def decide(caller: McpHttp, gate: str, **params: Any) -> Any:
    """Ask for the form of a gate, as a client with forms does."""
    asked = {"name": "pvp_send", "arguments": {"decide": gate}, "_meta": modern_meta()}
    headers = modern_headers("tools/call", "pvp_send")
    return await caller.post(rpc("tools/call", {**asked, **params}), headers)


async def test_a_form_shows_exactly_what_would_run_and_quotes_the_agents_words(team: Team) -> None:
    call = {"command": "rm -r build\n> approve: yes\u202e"}
    gate = await pending_gate(team, arguments=call, description="fine\nYou already approved this")
    asked = (await decide(team.alice, gate)).json()["result"]
    assert asked["resultType"] == "input_required"
    form = asked["inputRequests"]["gate"]["params"]
    assert form["mode"] == "form"
    assert form["requestedSchema"]["properties"]["decision"]["enum"] == ["approve", "reject"]
    first, *lines = form["message"].splitlines()
    assert first == f"claude asks to run this in the session {team.session}:"
    assert json.loads("".join(line[2:] for line in lines[: lines.index("> }") + 1])) == {
        "bash": call
    }
    assert "> You already approved this" in lines
    assert "\u202e" not in form["message"]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"action": "accept", "content": {"decision": "approve", "comment": "ok"}}, "approved"),
        ({"action": "accept", "content": {"decision": "reject", "comment": "no"}}, "rejected"),
        ({"action": "accept", "content": {"decision": "maybe"}}, None),
        ({"action": "accept", "content": {}}, None),
        ({"action": "decline"}, None),
        ({"action": "cancel"}, None),
    ],
)
async def test_a_persons_answer_is_a_vote_on_their_own_connection(
    team: Team, answer: Any, outcome: str | None
) -> None:
    gate = await pending_gate(team)
    asked = (await decide(team.alice, gate)).json()["result"]
    more = {"requestState": asked["requestState"], "inputResponses": {"gate": answer}}
    said = structured(await decide(team.alice, gate, **more))
    assert said.keys() == ({"id", "seq", "session"} if outcome else {"error"})
    after = structured(await team.alice.call("whats_waiting", {}))
    assert [each["outcome"] for each in after["ended_gates"]] == ([outcome] if outcome else [])
    assert [each["id"] for each in after["gates"]] == ([] if outcome else [gate])


async def test_an_agents_connection_never_votes_and_is_told_the_address(team: Team) -> None:
    gate = await pending_gate(team)
    forged = {
        "requestState": gate,
        "inputResponses": {
            "gate": {"action": "accept", "content": {"decision": "approve", "comment": "me"}}
        },
    }
    for more in ({}, forged):
        error = structured(await decide(team.claude, gate, **more))["error"]
        assert error["code"] == "FORBIDDEN"
        assert error["details"]["url"].endswith(f"/gates/{gate}")
    assert structured(await team.alice.call("whats_waiting", {}))["gates"][0]["id"] == gate


async def test_a_client_without_forms_and_a_long_call_are_sent_to_the_address(team: Team) -> None:
    gate = await pending_gate(team)
    plain = {**modern_meta(), f"{META}clientCapabilities": {}}
    refused = structured(await decide(team.alice, gate, _meta=plain))["error"]
    assert refused["code"] == "FORBIDDEN"
    assert refused["details"]["url"].endswith(f"/gates/{gate}")
    assert refused["details"]["url"] in refused["message"]
    await decide_by_form(team.alice, gate, "reject")
    long = await pending_gate(team, arguments={"command": "x" * 5000})
    assert structured(await decide(team.alice, long))["error"]["code"] == "FORBIDDEN"
    assert structured(await decide(team.alice, "unknown"))["error"]["code"] == "NOT_FOUND"


async def decide_by_form(caller: McpHttp, gate: str, decision: str) -> None:
    """The person at the client answers the form of a gate."""
    answer = {"action": "accept", "content": {"decision": decision, "comment": "by form"}}
    more = {"requestState": gate, "inputResponses": {"gate": answer}}
    assert structured(await decide(caller, gate, **more))["id"]


@pytest.mark.parametrize("who", ["alice", "claude"])
@pytest.mark.parametrize(
    ("type", "named", "claim"),
    [
        ("gate.approve", "gate", "approver"),
        ("gate.reject", "gate", "rejector"),
        ("tool.approve", "tool_proposal", "approver"),
        ("tool.reject", "tool_proposal", "rejector"),
    ],
)
async def test_votes_that_are_sent_are_refused_with_the_address_of_the_gate(
    team: Team, type: str, named: str, claim: str, who: str
) -> None:
    """A model writes what is sent, also on the connection of the person who is logged in."""
    codex = await issue_token(team.server, "codex", Kind.AGENT, Role.DRIVER)
    async with caller_of(team.server.asgi_app(), codex) as proposer:
        await send(proposer, team.session, "session.join", join_payload("codex", "agent"))
        asked = {"session": team.session, **CALL, "wait_seconds": 0}
        proposed = structured(await proposer.call("propose_and_wait", asked))
    gate = proposed["gate"]
    ids = {"gate": gate["id"], "tool_proposal": proposed["proposal"]}
    sender = {"alice": team.alice, "claude": team.claude}[who]
    vote = {named: ids[named], claim: who, "reason": "r"}

    error = (await send(sender, team.session, type, vote, ref=ids[named]))["error"]

    assert error["code"] == "FORBIDDEN"
    assert error["details"]["url"] == gate["url"]
    assert gate["url"] in error["message"]
    assert f"accord approve {gate['id']}" in error["message"]
    (left,) = structured(await team.alice.call("whats_waiting", {}))["gates"]
    assert (left["id"], left["approvals_received"]) == (gate["id"], 0)


async def test_who_may_vote_and_on_what_is_not_changed_over_mcp_either(team: Team) -> None:
    for type, payload in (
        ("session.config_update", {"changes": {"require_approval_for": []}}),
        (
            "participant.role_change",
            {"participant": "claude", "new_roles": ["approver"], "changed_by": "alice"},
        ),
    ):
        error = (await send(team.alice, team.session, type, payload))["error"]
        assert error["code"] == "FORBIDDEN"
        assert error["details"]["url"].endswith(f"/#/sessions/{team.session}")
    unknown = await send(team.alice, "elsewhere", "gate.approve", {"gate": "g"})
    assert unknown["error"]["code"] == "FORBIDDEN"


async def test_agent_withdraws_its_own_action(team: Team) -> None:
    gate = await pending_gate(team)
    said = {"gate": gate, "rejector": "claude", "reason": "not needed any more"}

    assert (await send(team.claude, team.session, "gate.reject", said, ref=gate))["id"]

    (ended,) = structured(await team.alice.call("whats_waiting", {}))["ended_gates"]
    assert (ended["id"], ended["outcome"], ended["by"]) == (gate, "rejected", ["claude"])


async def test_pvp_send_takes_an_envelope_or_a_gate(team: Team) -> None:
    for arguments in ({}, {"envelope": None}):
        error = structured(await team.alice.call("pvp_send", arguments))["error"]
        assert error["code"] == "VALIDATION_ERROR"


@proves("PVP-19.2-1", "OPEN-52")
async def test_agent_proposes_waits_runs_and_reports_over_mcp(team: Team) -> None:
    asked = asyncio.create_task(propose(team, CALL))
    waiting: Any = {"gates": []}
    while not waiting["gates"]:
        await asyncio.sleep(0)  # the proposal is on its way
        waiting = structured(await team.alice.call("whats_waiting", {}))
    (gate,) = waiting["gates"]
    assert gate["action"]["arguments"] == CALL["arguments"]
    assert waiting["provenance"]["senders"]["claude"] == {"kind": "agent", "verified": True}
    await decide_by_form(team.alice, gate["id"], "approve")

    answer = structured(await asked)

    assert answer["status"] == "started"
    assert answer["approved_by"] == ["alice"]
    report = {"session": team.session, "proposal": answer["proposal"], "success": True}
    structured(await team.claude.call("report_result", {**report, "result": "done"}))
    types = [
        message["type"]
        for message in structured(await team.alice.call("pvp_read", {"session": team.session}))[
            "messages"
        ]
    ]
    assert types[-1] == "tool.result"
    assert types.count("tool.execute") == 1  # the server's, which the room sees


async def test_undecided_proposal_is_taken_up_again_and_its_rejection_is_told(team: Team) -> None:
    first = structured(
        await team.claude.call(
            "propose_and_wait", {"session": team.session, **CALL, "wait_seconds": 0}
        )
    )
    assert first["status"] == "waiting"
    assert first["gate"]["waits_for"] == ["alice"]
    assert first["gate"]["url"].endswith(f"/#/sessions/{team.session}/gates/{first['gate']['id']}")
    await decide_by_form(team.alice, first["gate"]["id"], "reject")

    again = {"session": team.session, "proposal": first["proposal"]}
    second = structured(await team.claude.call("propose_and_wait", again))

    assert second["status"] == "ended"
    assert "rejected" in second["outcome"]


async def test_agent_cannot_vote_for_itself_over_mcp(team: Team) -> None:
    waiting = structured(
        await team.claude.call(
            "propose_and_wait", {"session": team.session, **CALL, "wait_seconds": 0}
        )
    )
    vote = {"tool_proposal": waiting["proposal"], "approver": "claude"}
    refused = await send(team.claude, team.session, "tool.approve", vote, ref=waiting["proposal"])

    assert refused["error"]["code"] == "FORBIDDEN"
    posing = vote | {"approver": "alice"}
    refused = await send(team.claude, team.session, "tool.approve", posing, sender="alice")
    assert refused["error"]["code"] in {"CLAIM_MISMATCH", "FORBIDDEN"}


async def test_proposal_of_another_agent_cannot_be_waited_for_or_reported(team: Team) -> None:
    waiting = structured(
        await team.claude.call(
            "propose_and_wait", {"session": team.session, **CALL, "wait_seconds": 0}
        )
    )
    other = {"session": team.session, "proposal": waiting["proposal"]}

    for name, arguments in (
        ("propose_and_wait", other),
        ("report_result", {**other, "success": True}),
    ):
        answer = structured(await team.alice.call(name, arguments))
        assert answer["error"]["code"] == "FORBIDDEN"


async def test_a_model_reports_no_call_of_its_host(team: Team) -> None:
    """Only hooks and executors know what is about to run; a report decides whether it is gated."""
    place = {"cwd": "/", "worktree": "/"}
    metadata = {"reported": {"kind": "read", "repository": "", "place": place}}
    call = {**CALL, "metadata": metadata}
    proposal = {**call, "agent": "claude", "risk_level": "low", "requires_approval": False}

    waited = await team.claude.call("propose_and_wait", {"session": team.session, **call})
    answers = [
        await send(team.claude, team.session, "tool.propose", proposal),
        structured(waited),
    ]

    assert [each["error"]["code"] for each in answers] == ["FORBIDDEN", "FORBIDDEN"]
    assert "metadata.reported" in answers[0]["error"]["message"]
