"""Each common refusal has a code for programs and a sentence for people."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from accord.client import Client, Rejected, ServerRefused
from accord.core.room.grants import ToolExecute
from accord.core.room.presence import PresenceUpdate
from accord.core.room.prompts import PromptSubmit
from accord.core.room.state import Presence
from accord.core.room.streams import ResponseStart
from accord.core.room.votes import GateApprove
from tests.client.people import SOON, Room, a_room, client
from tests.helpers.server import ServerProcess, a_server
from tests.spec import proves

Deed = Callable[[Room], Awaitable[object]]
UNHEARD_OF = "01HX7K9P4QZCVD3N8MYW6R5T2B"
PASS = GateApprove(UNHEARD_OF, "bob")
PRESENT = PresenceUpdate("alice", Presence.ACTIVE, "2026-01-30T20:00:00.000Z")


async def dead_tool(room: Room) -> object:
    """Use a proposal that was rejected."""
    proposal = await room.claude.propose("sh", {}, category="shell_execute")
    await room.bob.reject(proposal, "Not today")
    return await room.claude.output(ToolExecute(proposal, ()), "x")


async def used_twice(room: Room) -> object:
    """Use a grant again."""
    proposal = await room.claude.propose("cat", {}, category="file_read")
    granted = await room.claude.decision(proposal)
    await room.claude.execute(granted)
    return await room.claude.execute(granted)


REFUSALS: dict[str, tuple[str, str, Deed]] = {
    "no such agent": (
        "PARTICIPANT_NOT_FOUND",
        "gpt is not an agent",
        lambda room: room.alice.prompt("Hi", "gpt"),
    ),
    "a human is no agent": (
        "PARTICIPANT_NOT_FOUND",
        "bob is not an agent",
        lambda room: room.alice.prompt("Hi", "bob"),
    ),
    "an agent cannot approve": (
        "UNAUTHORIZED",
        "claude may not send gate.approve",
        lambda room: room.claude.approve(UNHEARD_OF),
    ),
    "a person cannot propose": (
        "UNAUTHORIZED",
        "bob may not send tool.propose",
        lambda room: room.bob.propose("sh", {}, category="shell_execute"),
    ),
    "only an admin configures": (
        "UNAUTHORIZED",
        "bob may not send session.config_update",
        lambda room: room.bob.configure("Why not", max_participants=3),
    ),
    "nobody speaks for another": (
        "UNAUTHORIZED",
        "the payload speaks for gpt",
        lambda room: room.claude.send(ResponseStart("gpt", UNHEARD_OF)),
    ),
    "no such gate": (
        "INVALID_STATE",
        "There is no open gate",
        lambda room: room.bob.send(PASS),
    ),
    "a wrong reference": (
        "INVALID_MESSAGE",
        "No such message here",
        lambda room: room.alice.send(PromptSubmit("Hi", "claude", ("alice",), ()), UNHEARD_OF),
    ),
    "an answer to no prompt": (
        "INVALID_MESSAGE",
        "No such message here",
        lambda room: room.claude.respond(UNHEARD_OF).__aenter__(),
    ),
    "bad rules": (
        "INVALID_MESSAGE",
        "Bad configuration",
        lambda room: room.alice.configure("Why not", max_participants=0),
    ),
    "too large": (
        "CONTEXT_TOO_LARGE",
        "A message may have",
        lambda room: room.alice.prompt("x" * (2 << 20), "claude"),
    ),
    "rejected": ("GATE_FAILED", "was rejected", dead_tool),
    "used twice": ("INVALID_STATE", "was used already", used_twice),
    "the wrong old roles": (
        "INVALID_STATE",
        "old_roles must say so",
        lambda room: room.alice.change_roles("bob", ["observer"], ["driver"]),
    ),
}


@proves("PVP-17-12", "PVP-17-13")
@pytest.mark.parametrize("case", REFUSALS)
async def test_a_refusal_has_a_code_and_a_sentence_and_harms_nobody(
    hall: ServerProcess, case: str
) -> None:
    code, sentence, deed = REFUSALS[case]
    async with a_room(hall) as room:
        with pytest.raises(ServerRefused, match=sentence) as no:
            await deed(room)

        assert no.value.code == code
        assert (await room.alice.presence("active")).seq > 0


async def test_a_session_that_is_not_there(hall: ServerProcess) -> None:
    async with client(hall, "alice") as alice:
        with pytest.raises(ServerRefused, match="There is no session nowhere") as no:
            await alice.join("nowhere")
        assert (no.value.code, no.value.recoverable) == ("SESSION_NOT_FOUND", False)

        session = await alice.create(id="here")
        assert session.id == "here"
        with pytest.raises(ServerRefused, match="is taken"):
            await alice.create(id="here")
        with pytest.raises(ServerRefused, match="A session id is"):
            await alice.create(id="not here")


async def test_a_session_that_is_over(hall: ServerProcess) -> None:
    async with a_room(hall) as room, client(hall, "bob") as bob:
        await room.alice.end("Done")

        with pytest.raises(ServerRefused, match="The session is over") as no:
            await bob.post(room.alice.id, PromptSubmit("Hello?", "claude", ("bob",), ()))
        assert (no.value.code, no.value.recoverable) == ("INVALID_STATE", False)
        with pytest.raises(ServerRefused, match="its history stays readable"):
            await bob.join(room.alice.id)


async def test_a_role_that_is_not_granted(hall: ServerProcess) -> None:
    async with a_room(hall) as room, client(hall, "olga") as olga:
        with pytest.raises(ServerRefused, match="olga may not join as approver") as no:
            await olga.join(room.alice.id, roles=["approver"])
        assert no.value.code == "UNAUTHORIZED"

        session = await olga.join(room.alice.id)
        with pytest.raises(ServerRefused, match="needs the right to prompt"):
            await session.prompt("Hi", "claude")


async def test_a_session_that_is_full(hall: ServerProcess) -> None:
    async with a_room(hall, max_participants=3) as room, client(hall, "olga") as olga:
        with pytest.raises(ServerRefused, match="The session is full") as no:
            await olga.join(room.alice.id)

        assert no.value.details == {"reason": "max_participants", "limit": 3}


async def test_too_many_at_once(tmp_path: Path) -> None:
    with a_server(tmp_path, "open", "--rate-limit", "5") as server:
        async with Client(server.url, id="alice", retry=SOON) as alice:
            session = await alice.create()
            answers = [session.say(PRESENT) for _ in range(100)]
            said = await asyncio.gather(*answers, return_exceptions=True)

    refused = [each for each in said if isinstance(each, ServerRefused)]
    assert {each.code for each in refused} == {"RATE_LIMITED"}
    assert all(each.details["retry_after_ms"] > 0 for each in refused)
    assert len(refused) < len(said)


@proves("OPEN-49")
async def test_bad_news_about_a_gate_is_for_everybody_and_other_errors_are_not(
    hall: ServerProcess,
) -> None:
    async with a_room(hall) as room:
        proposal = await room.claude.propose("sh", {}, category="shell_execute")
        with pytest.raises(ServerRefused):
            await room.claude.approve(proposal)
        await room.bob.reject(proposal, "Not today", "Tomorrow")

        for ear in (room.hers, room.his, room.its):
            news = await ear.until(lambda said: said.type == "error")
            assert news.body.code == "GATE_FAILED"  # type: ignore[attr-defined]
            assert news.body.related_to == proposal  # type: ignore[attr-defined]
            assert len([said for said in ear.heard if said.type == "error"]) == 1


@pytest.mark.parametrize("by_gate", [True, False])
async def test_a_rejection_says_who_and_why(hall: ServerProcess, by_gate: bool) -> None:
    async with a_room(hall) as room:
        proposal = await room.claude.propose("sh", {}, category="shell_execute")
        gate = await room.his.until(lambda said: said.type == "gate.request")
        await room.bob.reject(gate.id if by_gate else proposal, "Not today")

        with pytest.raises(Rejected, match="Not today") as no:
            await room.claude.decision(proposal)
        assert (no.value.by, no.value.proposal) == ("bob", proposal)


async def test_a_proposal_of_one_who_leaves_is_rejected(hall: ServerProcess) -> None:
    async with a_room(hall) as room:
        proposal = await room.claude.propose("sh", {}, category="shell_execute")
        waiting = asyncio.create_task(room.alice.decision(proposal))
        await room.claude.leave("Out of tokens")

        with pytest.raises(Rejected, match="claude left"):
            await waiting
