"""Clients of a real server: Alice who opens sessions, Bob who approves, Claude who is an agent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from accord.client import Client, Retry, Session, usual_config
from tests.helpers.ear import Ear
from tests.helpers.server import ServerProcess

SOON = Retry(floor=0.01, cap=0.1)
ROLES = {
    "alice": ("human", ("admin", "driver")),
    "bob": ("human", ("driver", "approver")),
    "claude": ("agent", ("driver",)),
    "olga": ("human", ("observer",)),
}


def client(server: ServerProcess, id: str, **options: Any) -> Client:
    """Somebody with a token."""
    kind, roles = ROLES[id]
    token = server.issue(id, kind, roles)
    return Client(server.url, **{"token": token, "retry": SOON, **options})


class Room(NamedTuple):
    """Three in a session, with an ear each."""

    alice: Session
    bob: Session
    claude: Session
    hers: Ear
    his: Ear
    its: Ear


@asynccontextmanager
async def a_room(server: ServerProcess, **config: Any) -> AsyncIterator[Room]:
    """Alice, Bob and Claude in a new session; at the end everybody heard everything once."""
    people = [client(server, id) for id in ("alice", "bob", "claude")]
    async with people[0] as first, people[1] as second, people[2] as third:
        alice = await first.create(usual_config(**config))
        bob, claude = await second.join(alice.id), await third.join(alice.id)
        async with Ear(alice) as hers, Ear(bob) as his, Ear(claude) as its:
            yield Room(alice, bob, claude, hers, his, its)
            for ear in (hers, his, its):
                ear.check_once_in_order()
