"""Whose clock judges what: rooms go by steady time, tokens by what the machine's clock shows."""

from pathlib import Path

import pytest

from accord.app import make_engine
from accord.core.kernel.authority import Kind
from accord.core.kernel.refusal import Refused
from accord.engine.clock import SystemClock, WallClock
from accord.stores.memory import MemoryLog
from accord.transports.identity import Keyring, issue
from accord.transports.reception import Reception, Trust

HOUR = 3_600 * 1_000_000_000
NOW = 1_750_000_000 * 1_000_000_000


class Machine:
    """A clock that somebody sets while a server runs."""

    def __init__(self) -> None:
        self.time = NOW

    def wall(self) -> int:
        return self.time


@pytest.mark.parametrize("hours", [-30, 30])
async def test_tokens_are_judged_by_the_clock_as_it_was_set_meanwhile(
    tmp_path: Path, hours: int
) -> None:
    machine = Machine()
    rooms, wall = SystemClock(machine.wall, lambda: 0), WallClock(machine.wall)
    keyring = Keyring.open(tmp_path / "keys", wall.now)
    engine = make_engine(MemoryLog(), clock=rooms)
    reception = Reception(engine, Trust(keyring, tuple, clock=wall))

    machine.time += hours * HOUR
    fresh = issue(keyring, now=wall.now(), id="alice", kind=Kind.HUMAN, roles=(), ttl_s=60)

    assert rooms.now() == NOW // 1_000_000
    assert reception.identify(fresh.token).actor.seat == "alice"
    machine.time += HOUR
    with pytest.raises(Refused, match="expired"):
        reception.identify(fresh.token)
