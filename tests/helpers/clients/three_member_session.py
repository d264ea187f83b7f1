"""A session on a real server with Alice (admin), Bob (approver) and Claude (agent)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from accord.client import Client, RetryPolicy, Session, default_config
from tests.helpers.clients.listener import RecordingListener
from tests.helpers.servers.server_process import ServerProcess

FAST_RETRY = RetryPolicy(first_delay_s=0.01, max_delay_s=0.1)
CLIENT_ROLES = {
    "alice": ("human", ("admin", "driver")),
    "bob": ("human", ("driver", "approver")),
    "claude": ("agent", ("driver",)),
    "olga": ("human", ("observer",)),
}


def make_client(server: ServerProcess, id: str, **options: Any) -> Client:
    """A client with a token for one of the known members."""
    kind, roles = CLIENT_ROLES[id]
    token = server.issue_token(id, kind, roles)
    return Client(server.url, **{"token": token, "retry": FAST_RETRY, **options})


class ThreeMemberSession(NamedTuple):
    """A session with three members, each with a recording listener."""

    alice: Session
    bob: Session
    claude: Session
    alice_listener: RecordingListener
    bob_listener: RecordingListener
    claude_listener: RecordingListener


@asynccontextmanager
async def open_session(server: ServerProcess, **config: Any) -> AsyncIterator[ThreeMemberSession]:
    """Open such a session; at the end, check that each member received everything once."""
    people = [make_client(server, id) for id in ("alice", "bob", "claude")]
    async with people[0] as first, people[1] as second, people[2] as third:
        alice = await first.create(default_config(**config))
        bob, claude = await second.join(alice.id), await third.join(alice.id)
        async with (
            RecordingListener(alice) as alice_listener,
            RecordingListener(bob) as bob_listener,
            RecordingListener(claude) as claude_listener,
        ):
            yield ThreeMemberSession(
                alice, bob, claude, alice_listener, bob_listener, claude_listener
            )
            for listener in (alice_listener, bob_listener, claude_listener):
                listener.check_once_in_order()
