"""What an engine holds does not grow with what it has done."""

import gc
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from accord.core.kernel.authority import Role
from accord.core.kernel.log import Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.times import iso
from accord.core.room.forks import ForkCreate
from accord.core.room.members import SessionLeave
from accord.core.room.secrets import SecretShare
from accord.core.room.shelf import ContextAdd, ContextRemove
from accord.engine import opener, scheduler, waking
from accord.stores.memory import MemoryLog
from tests.engine.conftest import Make
from tests.helpers.engine import Ear, Stage
from tests.helpers.holding import holding
from tests.helpers.room import (
    ALICE,
    BOB,
    CLAUDE,
    ROOM,
    approves_tool,
    ends,
    joins,
    prompts,
    proposes,
)

# Well past every bound below; whatever is kept of each shows three times FEW more objects.
FEW = 40
MANY = 4 * FEW
# The heap of deadlines is tidied now and then, not always.
ALIKE = FEW // 2

Deed = Callable[[Stage, int], Awaitable[None]]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of what is kept, so low that a few of each are enough to reach them."""
    monkeypatch.setattr(opener, "MOST_OVER", 8)
    monkeypatch.setattr(scheduler, "MOST_STALE", 8)
    monkeypatch.setattr(waking, "AT_ONCE", 4)
    monkeypatch.setattr("accord.core.room.past.MOST_PAST", 8)


async def whole_life(stage: Stage, n: int) -> None:
    """A session with a bit of everything, while alice and claude stay connected."""
    room = f"s{n}"
    await stage.open(BOB, CLAUDE, room=room)
    await stage.say(ALICE, prompts(), f"{room}-p", room=room)
    await stage.say(ALICE, SecretShare("k", ("bob",), "mem:x"), room=room)
    await stage.say(ALICE, ContextAdd("c", "text", "words"), room=room)
    await stage.say(CLAUDE, proposes(), f"{room}-t", room=room)
    await stage.say(ALICE, approves_tool(ALICE, f"{room}-t"), room=room)
    await stage.say(CLAUDE, proposes(), room=room)
    await stage.say(ALICE, ForkCreate("f", f"{room}-p", "", ("bob",), copy_context=True), room=room)
    await stage.say(ALICE, ends(), room=room)


async def message(stage: Stage, n: int) -> None:
    """One more prompt, one more gate that is answered, and context that comes and goes."""
    await stage.say(ALICE, prompts(), f"p{n}")
    await stage.say(CLAUDE, proposes(), f"t{n}")
    await stage.say(ALICE, approves_tool(ALICE, f"t{n}"))
    await stage.say(ALICE, ContextAdd(f"c{n}", "text", "words"))
    await stage.say(ALICE, ContextRemove(f"c{n}", "read"))
    await stage.wait(400)


async def visit(stage: Stage, n: int) -> None:
    """Bob comes on a new connection, is cut off, comes on another, and leaves."""
    for leaves in (False, True):
        bob = stage.connect(BOB)
        await stage.say(BOB, joins(BOB, Role.DRIVER), f"j{n}{leaves}")
        if leaves:
            await stage.say(BOB, SessionLeave())
        bob.hang_up()
        await stage.settle()


async def nowhere(stage: Stage, n: int) -> None:
    """Somebody asks for a session that does not exist."""
    stage.ask(BOB, prompts(), room=f"nowhere{n}")
    await stage.settle()


async def surprise(stage: Stage, n: int) -> None:
    """Something fails that never should."""
    stage.engine.failed(ValueError(n))


DEEDS: dict[str, Deed] = {
    "a session": whole_life,
    "a message": message,
    "a connection": visit,
    "a session that does not exist": nowhere,
    "a surprise": surprise,
}


async def done(stage: Stage, deed: Deed, times: int) -> Counter[str]:
    """What the engine holds after so many; connections and the log are others' affair."""
    await stage.open(CLAUDE)
    for n in range(times):
        await deed(stage, n)
    await stage.settle()
    stage.engine.scheduler.run_due()
    found = holding(stage.engine, apart_from=(Ear, MemoryLog, int, float))
    stage.engine.failures.clear()
    return found


async def test_who_waited_for_an_answer_is_let_go_with_it(make: Make) -> None:
    stage = make(window=1, check=False)
    await stage.open(CLAUDE)
    peer = Ear(stage.engine, CLAUDE, "runtime")
    kept = weakref.ref(peer)
    said = Message("p1", iso(stage.engine.clock.now()), ROOM, ALICE.seat, prompts())

    await stage.engine.handle(said, ALICE, peer=peer)
    with pytest.raises(Refused):
        await stage.engine.handle(replace(said, room="nowhere"), ALICE, peer=peer)
    await stage.engine.handle(replace(said, id="p2"), ALICE)  # the last one is at hand
    await stage.settle()

    del peer
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("name", DEEDS)
async def test_nothing_is_kept_of_each(make: Make, name: str) -> None:
    few = await done(make(window=8, check=False), DEEDS[name], FEW)
    many = await done(make(window=8, check=False), DEEDS[name], MANY)

    assert (many - few).total() < ALIKE, (many - few).most_common(10)
