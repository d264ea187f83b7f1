"""What an engine keeps in memory does not grow with the work it has done."""

import gc
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from accord.core.kernel.messages import Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import to_iso
from accord.core.room.forking.forks import ForkCreate
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.shared_context.context_items import ContextAdd, ContextRemove
from accord.core.room.shared_context.secrets import SecretShare
from accord.engine import scheduling
from accord.engine.streams import startup, stream_cache
from accord.stores.memory import MemoryLog
from tests.engine.conftest import Make
from tests.helpers.engine.harness import EngineHarness, RecordingPeer
from tests.helpers.measure.object_count import count_reachable
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CLAUDE,
    ROOM,
    prompt_submit,
    session_end,
    session_join,
    tool_approve,
    tool_propose,
)

# Well past every bound below; whatever is kept of each shows three times FEW more objects.
FEW = 40
MANY = 4 * FEW
# The heap of deadlines is tidied now and then, not always.
ALIKE = FEW // 2

Deed = Callable[[EngineHarness, int], Awaitable[None]]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of what is kept, so low that a few of each are enough to reach them."""
    monkeypatch.setattr(stream_cache, "MAX_ENDED_STREAMS", 8)
    monkeypatch.setattr(scheduling, "MAX_STALE_ENTRIES", 8)
    monkeypatch.setattr(startup, "STREAMS_PER_BATCH", 4)
    monkeypatch.setattr("accord.core.room.visibility.MAX_OUTCOMES", 8)


async def whole_life(stage: EngineHarness, n: int) -> None:
    """A session with a bit of everything, while alice and claude stay connected."""
    room = f"s{n}"
    await stage.open_room(BOB, CLAUDE, room=room)
    await stage.send(ALICE, prompt_submit(), f"{room}-p", room=room)
    await stage.send(ALICE, SecretShare("k", ("bob",), "mem:x"), room=room)
    await stage.send(ALICE, ContextAdd("c", "text", "words"), room=room)
    await stage.send(CLAUDE, tool_propose(), f"{room}-t", room=room)
    await stage.send(ALICE, tool_approve(ALICE, f"{room}-t"), room=room)
    await stage.send(CLAUDE, tool_propose(), room=room)
    await stage.send(
        ALICE, ForkCreate("f", f"{room}-p", "", ("bob",), copy_context=True), room=room
    )
    await stage.send(ALICE, session_end(), room=room)


async def message(stage: EngineHarness, n: int) -> None:
    """One more prompt, one more gate that is answered, and context that comes and goes."""
    await stage.send(ALICE, prompt_submit(), f"p{n}")
    await stage.send(CLAUDE, tool_propose(), f"t{n}")
    await stage.send(ALICE, tool_approve(ALICE, f"t{n}"))
    await stage.send(ALICE, ContextAdd(f"c{n}", "text", "words"))
    await stage.send(ALICE, ContextRemove(f"c{n}", "read"))
    await stage.advance_time(400)


async def visit(stage: EngineHarness, n: int) -> None:
    """Bob comes on a new connection, is cut off, comes on another, and leaves."""
    for leaves in (False, True):
        bob = stage.connect(BOB)
        await stage.send(BOB, session_join(BOB, Role.DRIVER), f"j{n}{leaves}")
        if leaves:
            await stage.send(BOB, SessionLeave())
        bob.disconnect()
        await stage.wait_until_idle()


async def nowhere(stage: EngineHarness, n: int) -> None:
    """Somebody asks for a session that does not exist."""
    stage.submit(BOB, prompt_submit(), room=f"nowhere{n}")
    await stage.wait_until_idle()


async def surprise(stage: EngineHarness, n: int) -> None:
    """Something fails that never should."""
    stage.engine.tasks.record_failure(ValueError(n))


DEEDS: dict[str, Deed] = {
    "a session": whole_life,
    "a message": message,
    "a connection": visit,
    "a session that does not exist": nowhere,
    "a surprise": surprise,
}


async def done(stage: EngineHarness, deed: Deed, times: int) -> Counter[str]:
    """What the engine holds after so many; connections and the log are others' affair."""
    await stage.open_room(CLAUDE)
    for n in range(times):
        await deed(stage, n)
    await stage.wait_until_idle()
    stage.engine.scheduler.run_due()
    found = count_reachable(stage.engine, exclude=(RecordingPeer, MemoryLog, int, float))
    stage.engine.failures.clear()
    return found


async def test_answered_submission_is_garbage_collected(make: Make) -> None:
    stage = make(window=1, check=False)
    await stage.open_room(CLAUDE)
    peer = RecordingPeer(stage.engine, CLAUDE, "runtime")
    kept = weakref.ref(peer)
    said = Message("p1", to_iso(stage.engine.clock.now()), ROOM, ALICE.principal, prompt_submit())

    await stage.engine.handle(said, ALICE, peer=peer)
    with pytest.raises(Refused):
        await stage.engine.handle(replace(said, room="nowhere"), ALICE, peer=peer)
    await stage.engine.handle(replace(said, id="p2"), ALICE)  # the last one is at hand
    await stage.wait_until_idle()

    del peer
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("name", DEEDS)
async def test_engine_memory_does_not_grow_with_work_done(make: Make, name: str) -> None:
    few = await done(make(window=8, check=False), DEEDS[name], FEW)
    many = await done(make(window=8, check=False), DEEDS[name], MANY)

    assert (many - few).total() < ALIKE, (many - few).most_common(10)
