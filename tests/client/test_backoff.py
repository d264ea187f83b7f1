"""How long a client waits before it tries again."""

import asyncio
import socket

from hypothesis import given
from hypothesis import strategies as st

from accord.client import Client, Retry
from accord.client.backoff import ceiling
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
def test_any_wait_up_to_the_longest_may_be_chosen(
    attempt: int, chance: float, floor: float, cap: float
) -> None:
    wait = Retry(floor, cap, lambda: chance).delay(attempt)

    assert wait == chance * ceiling(attempt, floor, cap)
    assert 0 <= wait <= cap


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
