"""Revoking a principal's last token ends its memberships; an expiry or another token does not."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Message
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.engine.engine import Engine
from accord.identity.token_service import TokenService
from accord.identity.token_signing import IssuedToken
from tests.helpers.room.scenario import session_create, session_end, session_join
from tests.helpers.servers.token_service import (
    T0,
    ManualClock,
    open_token_service,
    token_request,
)
from tests.spec import proves

ALICE, BOB = (Actor(name, Kind.HUMAN) for name in ("alice", "bob"))
DAY_MS = 86_400_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def desk(tmp_path: Path, clock: ManualClock) -> AsyncIterator[TokenService]:
    """Alice and Bob are members of `open` and of `ended`."""
    async with open_token_service(tmp_path, clock=clock) as made:
        for room in ("open", "ended"):
            await send(made, room, ALICE, session_create())
            await send(made, room, BOB, session_join(BOB))
        await send(made, "ended", ALICE, session_end())
        yield made


async def send(desk: TokenService, room: str, actor: Actor, body: Any) -> None:
    """A message of a member."""
    id = f"{room}-{actor.principal}-{body.type}"
    message = Message(id, to_iso(T0), room, actor.principal, body)
    await desk._engine.handle(message, actor, stream=f"room/{room}")


async def issue(desk: TokenService, workspace: str = "default") -> IssuedToken:
    return await desk.admin_for().issue(token_request("bob", workspace=workspace))


async def members(desk: TokenService, room: str = "open") -> set[str]:
    return {*(await desk._engine.state(f"room/{room}")).members}


@proves("OPEN-32")
async def test_revoking_the_last_token_ends_every_open_membership(desk: TokenService) -> None:
    token = await issue(desk)

    await desk.admin_for().revoke(token.claims.jti)

    assert await members(desk) == {"alice"}
    assert await members(desk, "ended") == {"alice", "bob"}
    engine = desk._engine
    assert isinstance(engine, Engine)
    leave = [s.record for s in engine.streams["room/open"].window][-2]
    assert (leave.sender, leave.said.type) == ("system", "session.leave")  # type: ignore[union-attr]
    assert "last token was revoked" in str(leave.said)


async def test_another_valid_token_keeps_the_membership(desk: TokenService) -> None:
    first, second = await issue(desk), await issue(desk)

    await desk.admin_for().revoke(first.claims.jti)
    assert await members(desk) == {"alice", "bob"}

    await desk.admin_for().revoke(second.claims.jti)
    assert await members(desk) == {"alice"}


async def test_an_expired_token_does_not_keep_the_membership(
    desk: TokenService, clock: ManualClock
) -> None:
    await issue(desk)
    clock.at += DAY_MS
    last = await issue(desk)

    await desk.admin_for().revoke(last.claims.jti)

    assert await members(desk) == {"alice"}


async def test_an_expiry_after_a_revocation_ends_no_membership(
    desk: TokenService, clock: ManualClock
) -> None:
    first = await issue(desk)
    await issue(desk)
    await desk.admin_for().revoke(first.claims.jti)

    clock.at += DAY_MS

    assert await members(desk) == {"alice", "bob"}


async def test_the_same_id_of_another_workspace_is_another_principal(desk: TokenService) -> None:
    token = await issue(desk, "elsewhere")

    await desk.admin_for().revoke(token.claims.jti)

    assert await members(desk) == {"alice", "bob"}


async def test_revoking_an_unknown_token_ends_nothing(desk: TokenService) -> None:
    await desk.admin_for().revoke("unknown", force=True)

    assert await members(desk) == {"alice", "bob"}
