"""Attacks on whoever reads: on a terminal, a page, or what they then type."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.timestamps import is_iso
from accord.show.text import format_duration, local_time
from tests.helpers.attacks.approval_scene import PROMPT, PROPOSAL, error, executes, scene
from tests.helpers.clients.cli import UserShell
from tests.helpers.servers.server_process import ServerProcess, run_server


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all."""
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


async def test_a_short_id_never_beats_the_gate_that_was_shown(
    house: ServerProcess, tmp_path: Path
) -> None:
    here = await scene(house)
    shown, gate = await here.gate()
    evil = PROPOSAL | {"arguments": {"argv": ["rm", "-rf", "/"]}}
    await here.bot.send("tool.propose", here.session, evil, id=gate[:8])
    await here.bot.receive_until("gate.request", action_ref=gate[:8])
    shell = UserShell(tmp_path, house, house.issue_token("alice", roles=["admin"]))
    await asyncio.to_thread(shell, "approve", gate[:8], "--session", here.session)
    assert not await executes(here.bot, gate[:8]), shown


async def test_a_gates_quorum_cannot_move_the_cursor(house: ServerProcess, tmp_path: Path) -> None:
    here = await scene(house)
    prompt = await here.alice.send("prompt.submit", here.session, PROMPT)
    await here.bot.receive_until("prompt.submit")
    answer = {"agent": "bot", "prompt_ref": prompt}
    begun = await here.bot.send("response.start", here.session, answer)
    gate: dict[str, Any] = {
        "action_type": "deploy",
        "action_ref": begun,
        "quorum": {"type": "label", "label": "\x1b[2J\x1b[H", "count": 1},
        "timeout_seconds": 0,
        "message": "",
    }
    await here.bot.send("gate.request", here.session, gate)
    assert (await error(here.bot))["code"] == "INVALID_MESSAGE"
    shell = UserShell(tmp_path, house, house.issue_token("alice", roles=["admin"]))
    ran = await asyncio.to_thread(shell, "gates", "--session", here.session)
    assert "\x1b" not in ran.out


async def test_no_number_makes_the_history_unreadable(house: ServerProcess, tmp_path: Path) -> None:
    here = await scene(house)
    look = PROPOSAL | {"tool_name": "look", "category": "file_read"}
    proposal = await here.bot.send("tool.propose", here.session, look)
    await here.bot.receive_until("tool.execute")
    result = {"tool_proposal": proposal, "success": True, "duration_ms": 10**400}
    await here.bot.send("tool.result", here.session, result)
    assert (await error(here.bot))["code"] == "INVALID_MESSAGE"
    shell = UserShell(tmp_path, house, house.issue_token("alice", roles=["admin"]))
    ran = await asyncio.to_thread(shell, "session", "log", here.session)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize("ts", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_no_time_makes_the_history_unreadable(ts: str) -> None:
    assert not is_iso(ts)
    assert local_time(ts) == local_time("1970-01-01T00:00:00Z")
    assert format_duration(10**400) == format_duration(float("nan")) == "ages"
