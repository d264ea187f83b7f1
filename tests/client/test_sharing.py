"""Context for all or some, and secrets that nobody else hears."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from accord.client import Client, ServerRefused
from accord.core.room.secrets import SecretRevoke, SecretShare
from accord.core.room.shelf import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.state import ContentRef
from tests.client.people import a_room, client
from tests.helpers.ear import Ear
from tests.helpers.server import ServerProcess

DIFF = "@@ -1 +1 @@\n-one\n+two\n"
VALUE = "mem:never-to-be-written-down"


@asynccontextmanager
async def heard(who: Client, session: str) -> AsyncIterator[Ear]:
    """What somebody hears who comes in once more."""
    async with Ear(await who.join(session)) as ear:
        yield ear


async def test_context_comes_changes_and_goes(hall: ServerProcess) -> None:
    elsewhere = ContentRef("ab" * 32, 7, "text/plain", "local")
    async with a_room(hall) as room:
        await room.alice.add_context("plan", "one\n", tags=["draft"], source="PLAN.md")
        await room.bob.update_context("plan", diff=DIFF, reason="Typo")
        await room.alice.add_context("shape", {"a": 1})
        await room.alice.add_context("log", ref=elsewhere)
        await room.alice.add_context("aside", "For claude", visible_to=["claude"])
        detail = await room.alice.update_context("aside", "For claude alone")
        await room.alice.remove_context("shape", "Not needed")
        await room.its.until_seq(detail.seq)
        await room.alice.end("Done")
        his = await room.his.end()

    bodies = [each.body for each in room.its.heard]
    added = [body for body in bodies if isinstance(body, ContextAdd)]
    assert [(body.key, body.content_type) for body in added] == [
        *(("plan", "text"), ("shape", "structured"), ("log", "reference"), ("aside", "text")),
    ]
    assert (added[0].tags, added[0].source) == (("draft",), "PLAN.md")
    assert ContextUpdate("plan", "Typo", DIFF) in bodies
    assert ContextRemove("shape", "Not needed") in bodies
    assert not any(getattr(each.body, "key", "") == "aside" for each in his)


async def test_a_secret_is_whispered_to_its_scope_now_and_when_they_return(
    hall: ServerProcess,
) -> None:
    async with a_room(hall) as room:
        shared = await room.alice.share_secret("db", VALUE, ["claude"], secret_type="database_url")
        told = await room.its.until(lambda each: isinstance(each.body, SecretShare))
        async with client(hall, "claude") as elsewhere, heard(elsewhere, room.alice.id) as ear:
            again = await ear.until(lambda each: each.ref == shared.id)
        await room.alice.revoke_secret("db", "Rotated")
        gone = await room.its.until(lambda each: isinstance(each.body, SecretRevoke))
        with pytest.raises(ServerRefused, match="no secret"):
            await room.alice.revoke_secret("db", "Again")
        async with client(hall, "bob") as reader:
            read = [each async for each in reader.history(room.alice.id)]
        await room.alice.end("Done")
        his = await room.his.end()

    assert isinstance(told.body, SecretShare)
    assert isinstance(again.body, SecretShare)
    assert told.body.value_ref == again.body.value_ref == VALUE
    assert (told.id, again.seq) == (shared.id, 0)
    assert gone.body == SecretRevoke("db", "Rotated")
    assert not any(isinstance(each.body, SecretShare | SecretRevoke) for each in (*his, *read))
