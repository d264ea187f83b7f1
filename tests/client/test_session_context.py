"""Context items for all or some members, and secrets for their scope only."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from accord.client import Client, ServerRefused
from accord.core.room.shared_context.context_items import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.shared_context.secrets import SecretRevoke, SecretShare
from accord.core.room.state import ContentRef
from tests.helpers.clients.listener import RecordingListener
from tests.helpers.clients.three_member_session import make_client, open_session
from tests.helpers.servers.server_process import ServerProcess

DIFF = "@@ -1 +1 @@\n-one\n+two\n"
VALUE = "mem:never-to-be-written-down"


@asynccontextmanager
async def received(who: Client, session: str) -> AsyncIterator[RecordingListener]:
    """The messages that a second connection of a member receives."""
    async with RecordingListener(await who.join(session)) as listener:
        yield listener


async def test_context_items_can_be_added_updated_and_removed(shared_server: ServerProcess) -> None:
    elsewhere = ContentRef("ab" * 32, 7, "text/plain", "local")
    async with open_session(shared_server) as room:
        await room.alice.add_context("plan", "one\n", tags=["draft"], source="PLAN.md")
        await room.bob.update_context("plan", diff=DIFF, reason="Typo")
        await room.alice.add_context("shape", {"a": 1})
        await room.alice.add_context("log", ref=elsewhere)
        await room.alice.add_context("aside", "For claude", visible_to=["claude"])
        detail = await room.alice.update_context("aside", "For claude alone")
        await room.alice.remove_context("shape", "Not needed")
        await room.claude_listener.wait_for_seq(detail.seq)
        await room.alice.end("Done")
        his = await room.bob_listener.wait_for_end()

    bodies = [item.body for item in room.claude_listener.received]
    added = [body for body in bodies if isinstance(body, ContextAdd)]
    assert [(body.key, body.content_type) for body in added] == [
        *(("plan", "text"), ("shape", "structured"), ("log", "reference"), ("aside", "text")),
    ]
    assert (added[0].tags, added[0].source) == (("draft",), "PLAN.md")
    assert ContextUpdate("plan", "Typo", DIFF) in bodies
    assert ContextRemove("shape", "Not needed") in bodies
    assert not any(getattr(item.body, "key", "") == "aside" for item in his)


async def test_secret_is_sent_only_to_its_scope_and_again_on_rejoin(
    shared_server: ServerProcess,
) -> None:
    async with open_session(shared_server) as room:
        shared = await room.alice.share_secret("db", VALUE, ["claude"], secret_type="database_url")
        output = await room.claude_listener.wait_for(
            lambda item: isinstance(item.body, SecretShare)
        )
        async with (
            make_client(shared_server, "claude") as elsewhere,
            received(elsewhere, room.alice.id) as listener,
        ):
            again = await listener.wait_for(lambda item: item.ref == shared.id)
        await room.alice.revoke_secret("db", "Rotated")
        gone = await room.claude_listener.wait_for(lambda item: isinstance(item.body, SecretRevoke))
        with pytest.raises(ServerRefused, match="no secret"):
            await room.alice.revoke_secret("db", "Again")
        async with make_client(shared_server, "bob") as reader:
            read = [item async for item in reader.history(room.alice.id)]
        await room.alice.end("Done")
        his = await room.bob_listener.wait_for_end()

    assert isinstance(output.body, SecretShare)
    assert isinstance(again.body, SecretShare)
    assert output.body.value_ref == again.body.value_ref == VALUE
    assert (output.id, again.seq) == (shared.id, 0)
    assert gone.body == SecretRevoke("db", "Rotated")
    assert not any(isinstance(item.body, SecretShare | SecretRevoke) for item in (*his, *read))
