"""Delays between connection attempts."""

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.client import Client, RetryPolicy
from accord.client.connection.backoff import MAX_RETRY_AFTER_S, Backoff, max_delay
from tests.spec import proves

attempts = st.integers(min_value=0, max_value=10_000)
chances = st.floats(min_value=0, max_value=1, exclude_max=True)
floors = st.floats(min_value=0.001, max_value=5)
caps = st.floats(min_value=5, max_value=600)


@proves("PVP-19.1-2")
@given(attempts, floors, caps)
def test_max_delay_doubles_up_to_the_cap(attempt: int, floor: float, cap: float) -> None:
    now, later = max_delay(attempt, floor, cap), max_delay(attempt + 1, floor, cap)

    assert floor <= now <= cap
    assert later == cap or later == 2 * now


@given(attempts, chances, floors, caps)
def test_delay_is_in_the_upper_half_except_the_first(
    attempt: int, chance: float, floor: float, cap: float
) -> None:
    longest = max_delay(attempt, floor, cap)

    wait = RetryPolicy(floor, cap, jitter=lambda: chance).delay(attempt)

    assert (longest / 2 if attempt else 0) <= wait <= longest <= cap


@proves("PVP-19.1-2")
@given(chances)
def test_first_retry_comes_within_200_ms(chance: float) -> None:
    assert 0 <= RetryPolicy(jitter=lambda: chance).delay(0) <= 0.2


@given(st.lists(chances, min_size=1, max_size=40), floors, caps)
def test_each_delay_is_at_most_twice_the_time_already_waited(
    draws: list[float], floor: float, cap: float
) -> None:
    """With jitter some delays are short; the later ones must not make up for it."""
    retry = RetryPolicy(floor, cap, jitter=iter(draws).__next__)
    away = 0.0
    for attempt in range(len(draws)):
        wait = retry.delay(attempt)
        assert wait <= 2 * away + 2 * floor + 1e-9
        away += wait


@given(attempts, chances, st.floats(min_value=0, max_value=MAX_RETRY_AFTER_S))
def test_delay_includes_the_time_the_server_asked_for(
    attempt: int, chance: float, hint: float
) -> None:
    retry = RetryPolicy(jitter=lambda: chance)

    assert retry.delay(attempt, hint) == pytest.approx(hint + retry.delay(attempt))


@given(st.floats(min_value=MAX_RETRY_AFTER_S) | st.floats(max_value=0))
def test_requested_delay_is_capped(hint: float) -> None:
    assert 0 <= RetryPolicy(max_delay_s=5).delay(30, hint) <= MAX_RETRY_AFTER_S + 5


class Clock:
    """A clock that advances when something sleeps on it, or when the test sets it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


# How long each attempt's connection lasted; None if the attempt failed.
lives = st.lists(st.none() | st.floats(min_value=0, max_value=10), max_size=40)


@proves("PVP-19.1-2")
@given(lives, floors, caps, st.floats(min_value=0.1, max_value=9))
async def test_backoff_resets_only_after_a_steady_connection(
    lives: list[float | None], floor: float, cap: float, steady: float
) -> None:
    clock = Clock()
    retry = RetryPolicy(floor, cap, steady, lambda: 1.0, clock.sleep, lambda: clock.now)
    backoff, expected, step = Backoff(retry), [], 0
    for held in lives:
        lost_at = clock.now
        if held is not None:
            backoff.on_connected()
            clock.now += held / 2
            backoff.on_connected()  # repeated calls must not restart the period
            clock.now += held / 2
        step = 0 if held is not None and clock.now - lost_at >= steady else step
        expected.append(max_delay(step, floor, cap))
        step += 1
        await backoff.wait()

    assert clock.waits == pytest.approx(expected)


def unused_url() -> str:
    """A URL on a port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@proves("PVP-19.1-2")
async def test_client_delays_grow_with_each_failed_attempt() -> None:
    waits: list[float] = []
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 9:
            enough.set()
            await asyncio.Event().wait()

    retry = RetryPolicy(first_delay_s=0.1, max_delay_s=10.0, jitter=lambda: 1.0, sleep=sleep)
    client = Client(unused_url(), id="alice", patient=True, retry=retry)
    opening = asyncio.create_task(client.__aenter__())
    await enough.wait()
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)

    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
