"""One server at a time has a log in NATS, whatever their clocks say."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from accord.engine.ports import StoreError
from accord.stores.nats.address import NatsAddress
from accord.stores.nats.jetstream import JetStream
from accord.stores.nats.server_claim import ServerClaim
from tests.helpers.servers.nats_server import SHARED_NATS

REFUSED = "Another server uses"
SERVERS = 4


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


@pytest.fixture
def address() -> str:
    return SHARED_NATS.server().new_stream()


async def claim_of(address: str, stack: AsyncExitStack) -> ServerClaim:
    """The claim of a server with a connection of its own."""
    stream = await JetStream.connect(NatsAddress.from_url(address))
    stack.push_async_callback(stream.close)
    return ServerClaim(stream)


async def test_holder_keeps_the_log_from_a_newcomer_whose_clock_is_behind(
    address: str, stack: AsyncExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, newcomer = await claim_of(address, stack), await claim_of(address, stack)
    await holder.take()
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    monkeypatch.setattr(newcomer, "_number", 0)

    with pytest.raises(StoreError, match=REFUSED):
        await newcomer.take()
    with pytest.raises(StoreError, match=REFUSED):
        await newcomer.take()
    await holder.take()


async def test_of_several_that_ask_at_once_one_gets_the_log(
    address: str, stack: AsyncExitStack
) -> None:
    claims = [await claim_of(address, stack) for _ in range(SERVERS)]

    outcomes = await asyncio.gather(*(each.take() for each in claims), return_exceptions=True)

    assert [outcome for outcome in outcomes if outcome is None] == [None]
    assert all(REFUSED in str(outcome) for outcome in outcomes if outcome is not None)


async def test_claim_ends_with_the_connection(address: str, stack: AsyncExitStack) -> None:
    holder, newcomer = await claim_of(address, stack), await claim_of(address, stack)
    await holder.take()
    await holder._stream.close()

    await newcomer.take()


async def test_what_no_server_sent_is_ignored(address: str, stack: AsyncExitStack) -> None:
    holder, other = await claim_of(address, stack), await claim_of(address, stack)
    await holder.take()
    await other._stream.client.publish(holder._subject, b"not JSON", reply="x")
    await other._stream.client.flush()

    with pytest.raises(StoreError, match=REFUSED):
        await other.take()
