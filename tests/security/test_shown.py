"""Attacks on whoever reads: on a terminal, a page, or what they then type."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.cli import Shell
from tests.helpers.server import ServerProcess, a_server
from tests.security.scene import PROPOSAL, executes, scene


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all."""
    with a_server(tmp_path_factory.mktemp("house")) as server:
        yield server


async def test_a_short_id_never_beats_the_gate_that_was_shown(
    house: ServerProcess, tmp_path: Path
) -> None:
    here = await scene(house)
    shown, gate = await here.gate()
    evil = PROPOSAL | {"arguments": {"argv": ["rm", "-rf", "/"]}}
    await here.bot.say("tool.propose", here.session, evil, id=gate[:8])
    await here.bot.hear_until("gate.request", action_ref=gate[:8])
    shell = Shell(tmp_path, house, house.issue("alice", roles=["admin"]))
    await asyncio.to_thread(shell, "approve", gate[:8], "--session", here.session)
    assert not await executes(here.bot, gate[:8]), shown
