"""Single messages over HTTP, without a connection that stays open."""

import pytest

from accord.client import Client, RetryPolicy, ServerRefused, Unreachable
from accord.client.connection.http_sender import MAX_ATTEMPTS
from accord.core.room.membership.leaving import SessionLeave
from tests.client.connection.test_backoff import unused_url
from tests.helpers.servers.server_process import ServerProcess


def client_of(server: ServerProcess, id: str) -> Client:
    return Client(server.url, token=server.issue_token(id, "human", ["admin"]))


async def test_a_member_posts_without_joining(shared_server: ServerProcess) -> None:
    async with client_of(shared_server, "petra") as joined:
        session = (await joined.create(listen=False)).id
    alone = client_of(shared_server, "petra")

    receipt = await alone.post(session, SessionLeave(reason="Done"))

    assert receipt.seq > 0
    assert (await alone.session(session)).standing == "former"
    with pytest.raises(ServerRefused) as refusal:
        await alone.post(session, SessionLeave())
    assert refusal.value.status in {403, 404}
    assert refusal.value.message


async def test_an_open_server_is_told_who_posts(shared_open_server: ServerProcess) -> None:
    async with Client(shared_open_server.url, id="quentin") as joined:
        session = (await joined.create(listen=False)).id
    alone = Client(shared_open_server.url, id="quentin")

    assert (await alone.post(session, SessionLeave())).seq > 0


async def test_a_server_that_is_away_is_asked_again_a_few_times(
    shared_server: ServerProcess,
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    token = shared_server.issue_token("petra")
    alone = Client(unused_url(), token=token, retry=RetryPolicy(sleep=sleep))

    with pytest.raises(Unreachable):
        await alone.post("ses_x", SessionLeave())
    assert len(waits) == MAX_ATTEMPTS - 1


async def test_home_events_begin_with_the_home_and_a_refusal_ends_them(
    shared_server: ServerProcess,
) -> None:
    alone = client_of(shared_server, "rosa")

    events = alone.home_events()
    first = await anext(events)
    await events.aclose()  # type: ignore[attr-defined]  # it is a generator

    assert (first.gates, first.counts.gates) == ((), 0)
    with pytest.raises(ServerRefused, match="UNAUTHORIZED"):
        await anext(Client(shared_server.url, id="rosa", token=None).home_events())
