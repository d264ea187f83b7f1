"""Whose clock judges what: rooms go by steady time, tokens by what the machine's clock shows."""

import asyncio
from pathlib import Path

import pytest

from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Kind
from accord.engine.scheduling import SystemClock, WallClock
from accord.identity.token_expiry import ExpiryTimer
from accord.identity.token_signing import Keyring, issue_token
from accord.server.engine_factory import make_engine
from accord.stores.memory import MemoryLog
from accord.transports.intake import AuthPolicy, Intake

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
    reception = Intake(engine, AuthPolicy(keyring, tuple, clock=wall))

    machine.time += hours * HOUR
    fresh = issue_token(keyring, now=wall.now(), id="alice", kind=Kind.HUMAN, roles=(), ttl_s=60)

    assert rooms.now() == NOW // 1_000_000
    assert reception.identify(fresh.token).actor.principal == "alice"
    machine.time += HOUR
    with pytest.raises(Refused, match="expired"):
        reception.identify(fresh.token)


SOON, LONG, PATIENCE = 0.005, 3600.0, 60.0


class Left:
    """How much is left, as a machine's clock says; tells when it was looked at."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.looked = asyncio.Event()

    def __call__(self) -> float:
        self.looked.set()
        return self.seconds

    async def again(self) -> None:
        """Wait for the next look."""
        self.looked.clear()
        await asyncio.wait_for(self.looked.wait(), PATIENCE)


async def test_a_clock_that_is_set_forward_ends_what_a_timer_would_have_waited_for() -> None:
    """As after the sleep of a laptop: the hours it slept are none to a timer."""
    left, over = Left(LONG), asyncio.Event()
    ExpiryTimer(left, over.set, max_interval_s=SOON)

    for _ in range(3):
        await left.again()
    assert not over.is_set()
    left.seconds = 0.0

    await asyncio.wait_for(over.wait(), PATIENCE)


async def test_a_clock_that_is_set_back_ends_nothing_early() -> None:
    left, over = Left(SOON), asyncio.Event()
    waiting = ExpiryTimer(left, over.set)
    left.seconds = LONG

    await left.again()

    assert not over.is_set()
    waiting.cancel()


async def test_cancelled_expiry_timer_does_not_poll() -> None:
    left, over = Left(0.0), asyncio.Event()
    ExpiryTimer(left, over.set).cancel()
    left.looked.clear()
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(SOON, later.set)

    await later.wait()

    assert not left.looked.is_set()
    assert not over.is_set()
