"""How long a client waits before it tries again."""

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.client import Client, Retry
from accord.client.backoff import LONGEST_HINT, Backoff, ceiling
from tests.spec import proves

attempts = st.integers(min_value=0, max_value=10_000)
chances = st.floats(min_value=0, max_value=1, exclude_max=True)
floors = st.floats(min_value=0.001, max_value=5)
caps = st.floats(min_value=5, max_value=600)


@proves("PVP-19.1-2")
@given(attempts, floors, caps)
def test_the_longest_wait_doubles_until_it_reaches_the_cap(
    attempt: int, floor: float, cap: float
) -> None:
    now, later = ceiling(attempt, floor, cap), ceiling(attempt + 1, floor, cap)

    assert floor <= now <= cap
    assert later == cap or later == 2 * now


@given(attempts, chances, floors, caps)
def test_a_wait_is_in_the_upper_half_but_for_the_first(
    attempt: int, chance: float, floor: float, cap: float
) -> None:
    longest = ceiling(attempt, floor, cap)

    wait = Retry(floor, cap, chance=lambda: chance).delay(attempt)

    assert (longest / 2 if attempt else 0) <= wait <= longest <= cap


@proves("PVP-19.1-2")
@given(chances)
def test_the_first_attempt_comes_within_a_fifth_of_a_second(chance: float) -> None:
    assert 0 <= Retry(chance=lambda: chance).delay(0) <= 0.2


@given(st.lists(chances, min_size=1, max_size=40), floors, caps)
def test_nobody_stays_away_for_more_than_twice_as_long_again(
    draws: list[float], floor: float, cap: float
) -> None:
    """However short the waits fall out, few of them do not add up to a long one."""
    retry = Retry(floor, cap, chance=iter(draws).__next__)
    away = 0.0
    for attempt in range(len(draws)):
        wait = retry.delay(attempt)
        assert wait <= 2 * away + 2 * floor + 1e-9
        away += wait


@given(attempts, chances, st.floats(min_value=0, max_value=LONGEST_HINT))
def test_who_asks_for_time_is_given_it(attempt: int, chance: float, hint: float) -> None:
    retry = Retry(chance=lambda: chance)

    assert retry.delay(attempt, hint) == pytest.approx(hint + retry.delay(attempt))


@given(st.floats(min_value=LONGEST_HINT) | st.floats(max_value=0))
def test_nobody_is_kept_away_for_ever(hint: float) -> None:
    assert 0 <= Retry(cap=5).delay(30, hint) <= LONGEST_HINT + 5


class Clock:
    """Time that passes when one waits, or is told so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


# How long the connection held that each attempt led to; none where there was none.
lives = st.lists(st.none() | st.floats(min_value=0, max_value=10), max_size=40)


@proves("PVP-19.1-2")
@given(lives, floors, caps, st.floats(min_value=0.1, max_value=9))
async def test_the_waits_grow_until_a_connection_held_for_a_while(
    lives: list[float | None], floor: float, cap: float, steady: float
) -> None:
    clock = Clock()
    retry = Retry(floor, cap, steady, lambda: 1.0, clock.sleep, lambda: clock.now)
    backoff, expected, step = Backoff(retry), [], 0
    for held in lives:
        lost_at = clock.now
        if held is not None:
            backoff.opened()
            clock.now += held / 2
            backoff.opened()  # as one says who looks again and again
            clock.now += held / 2
        step = 0 if held is not None and clock.now - lost_at >= steady else step
        expected.append(ceiling(step, floor, cap))
        step += 1
        await backoff.wait()

    assert clock.waits == pytest.approx(expected)


def nobody_listens() -> str:
    """An address where nothing answers."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@proves("PVP-19.1-2")
async def test_attempt_after_attempt_the_client_waits_longer() -> None:
    waits: list[float] = []
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 9:
            enough.set()
            await asyncio.Event().wait()

    retry = Retry(floor=0.1, cap=10.0, chance=lambda: 1.0, sleep=sleep)
    client = Client(nobody_listens(), id="alice", patient=True, retry=retry)
    opening = asyncio.create_task(client.__aenter__())
    await enough.wait()
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)

    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
