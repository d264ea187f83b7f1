"""Replay for returning members: missed messages, then live ones, each once."""

from collections.abc import Sequence

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.engine.ports import Row
from tests.engine.conftest import Make
from tests.helpers.engine.absent_reader import rejoin_after_absence, send_prompts, stalled_replay
from tests.helpers.engine.harness import FaultyLog, yield_to_loop
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    gate_on,
    prompt_submit,
    session_join,
    tool_execute,
    tool_propose,
)
from tests.spec import proves

pytestmark = pytest.mark.usefixtures("small_pages")


@proves("OPEN-37", "PVP-19.1-3", "PVP-19.5-2")
@pytest.mark.parametrize("said", [0, 3, 40])
async def test_returning_member_gets_missed_messages_once(make: Make, said: int) -> None:
    stage = make(window=10)
    await stage.open_room(CLAUDE)
    before, bob = await rejoin_after_absence(stage, said)

    await stage.send(BOB, session_join(BOB, Role.DRIVER), "back", before.ids[-1])
    await stage.send(ALICE, prompt_submit(), "live")

    everything = await stage.ids()
    assert [*before.ids, *bob.ids] == everything[-len(before.ids) - len(bob.ids) :]
    assert bob.ids[-1] == "live"
    assert "back" in bob.ids


@proves("OPEN-37")
async def test_session_continues_during_a_long_replay(make: Make) -> None:
    log = FaultyLog()
    stage = make(log, window=5)
    await stage.open_room(CLAUDE)
    before, bob = await stalled_replay(stage, 40)

    for n in range(3):
        stage.submit(ALICE, prompt_submit(), f"meanwhile{n}")
        stage.submit(BOB, prompt_submit(), f"mine{n}")
        await yield_to_loop()
    assert stage.peers["alice"].ids[-1] == "mine2", "nobody waits for a slow reader"
    assert "meanwhile0" not in bob.ids
    bob.resume_reading()
    await stage.wait_until_idle()
    await stage.send(ALICE, prompt_submit(), "live")

    assert [*before.ids, *bob.ids] == (await stage.ids())[-len(before.ids) - len(bob.ids) :]
    assert bob.seqs == sorted(set(bob.seqs))
    assert bob.ids[-1] == "live"


async def test_records_being_committed_are_not_replayed_twice(make: Make) -> None:
    """The store may have rows that the room has not been told of yet."""
    log = Ahead()
    stage = make(log, window=5)
    await stage.open_room(CLAUDE)
    _, bob = await stalled_replay(stage, 20)

    log.dawdle = True
    stage.submit(ALICE, prompt_submit(), "early")
    await yield_to_loop()
    bob.resume_reading()
    await yield_to_loop()
    log.dawdle = False
    await stage.wait_until_idle()

    assert bob.ids.count("early") == 1
    assert bob.seqs == sorted(set(bob.seqs))


class Ahead(FaultyLog):
    """Keeps rows at once, but takes its time to say so."""

    dawdle = False

    async def append(self, stream: str, expected: int, rows: Sequence[Row]) -> None:
        await super().append(stream, expected, rows)
        while self.dawdle:
            await yield_to_loop(1)


@proves("OPEN-37", "OPEN-30")
async def test_long_replay_names_every_member_once(make: Make) -> None:
    stage = make(window=5)
    await stage.open_room(CLAUDE)
    before, bob = await rejoin_after_absence(stage, 10)
    await stage.send(CAROL, session_join(CAROL), "carol")
    await send_prompts(stage, 10, "q")

    await stage.send(BOB, session_join(BOB, Role.DRIVER), "back", before.ids[-1])

    named = [each["id"] for each in bob.received if each["type"] == "participant.announce"]
    assert len(named) == len(set(named))
    who = [e["payload"]["id"] for e in bob.received if e["type"] == "participant.announce"]
    assert who == ["alice", "claude", "carol", "bob"]


@proves("OPEN-37")
@pytest.mark.parametrize("kind", ["tool", "gate"])
async def test_replay_starts_behind_an_old_open_item(make: Make, kind: str) -> None:
    """The room knows what is open without looking it up; replay must not."""
    stage = make(window=5)
    await stage.open_room(BOB, CLAUDE)
    before = stage.peers["bob"]
    await stage.send(CLAUDE, tool_propose(), "tool")
    last = "tool" if kind == "tool" else gate_on(await stage.state(), "tool").id
    seen = before.ids[: before.ids.index(last) + 1]
    before.disconnect()
    await send_prompts(stage, 20)

    bob = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "back", last)
    await stage.send(ALICE, prompt_submit(), "live")

    everything = await stage.ids()
    assert bob.ids == everything[everything.index(last) + 1 :]
    assert seen[-1] == last


@proves("OPEN-35", "OPEN-37")
async def test_join_with_an_unknown_ref_is_refused(make: Make) -> None:
    stage = make(window=5)
    await stage.open_room(CLAUDE)
    await send_prompts(stage, 10)
    bob = stage.connect(BOB)

    with pytest.raises(Refused) as no:
        await stage.send(BOB, session_join(BOB, Role.DRIVER), "join", "never said")

    assert no.value.reason is Reason.MALFORMED
    assert no.value.details == {"unknown": ["never said"]}
    assert bob.received == []
    assert "bob" not in (await stage.state()).members


@proves("OPEN-35", "UNI-12")
@pytest.mark.parametrize("since", [0, 10])
async def test_join_with_an_invisible_ref_is_refused(make: Make, since: int) -> None:
    stage = make(window=5)
    await stage.open_room(CLAUDE, require_approval_for=())
    await stage.send(CLAUDE, tool_propose(), "tool")
    await stage.send(CLAUDE, tool_execute("tool"), "run")
    await send_prompts(stage, since)

    with pytest.raises(Refused) as no:
        await stage.send(BOB, session_join(BOB, Role.DRIVER), "join", "run")

    assert no.value.details == {"unknown": ["run"]}


@proves("UNI-12", "OPEN-37")
@pytest.mark.parametrize("since", [0, 20])
async def test_replay_shows_each_member_what_it_may_see(make: Make, since: int) -> None:
    stage = make(window=5)
    await stage.open_room(BOB, CLAUDE, require_approval_for=())
    last = stage.peers["bob"].ids[-1]
    await stage.send(CLAUDE, tool_propose(), "tool")
    await stage.send(CLAUDE, tool_execute("tool"), "run")
    await send_prompts(stage, since)

    bob, claude = stage.connect(BOB), stage.connect(CLAUDE)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "bob", last)
    await stage.send(CLAUDE, session_join(CLAUDE, Role.DRIVER), "claude", last)

    assert "run" in claude.ids
    assert "run" not in bob.ids
    assert {"tool", "bob"} < set(bob.ids)
