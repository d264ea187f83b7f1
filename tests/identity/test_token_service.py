"""Tokens and keys on the record, over a real engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.identity.token_service import PEOPLE_STREAM, TokenService
from accord.stores.memory import MemoryLog
from tests.helpers.servers.token_service import (
    T0,
    ManualClock,
    issue_operator_token,
    open_token_service,
    run_due_jobs,
    token_request,
)
from tests.spec import proves

HOUR = 3_600_000


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def desk(tmp_path: Path, log: MemoryLog, clock: ManualClock) -> AsyncIterator[TokenService]:
    async with open_token_service(tmp_path, log, clock) as made:
        yield made


async def test_a_token_is_on_the_record_before_it_is_handed_out(desk: TokenService) -> None:
    given = await desk.admin_for().issue(
        token_request(labels=frozenset({"security"}), name="Alice")
    )

    assert dict((await desk.people()).tokens) == {given.claims.jti: given.public_record()}
    assert (await desk.identify(given.token)).actor.principal == "alice"


@proves("PVP-20.1-1")
async def test_no_token_is_in_any_byte_of_the_log(desk: TokenService, log: MemoryLog) -> None:
    given = await desk.admin_for().issue(token_request())
    await desk.admin_for().rotate()

    stored = b"".join(row.body for row in await log.read(PEOPLE_STREAM))

    assert given.claims.jti.encode() in stored
    assert given.token.rpartition(".")[2].encode() not in stored
    assert b"PRIVATE" not in stored


@proves("OPEN-122")
async def test_a_revoked_token_counts_nowhere_from_then_on(desk: TokenService) -> None:
    given = await desk.admin_for().issue(token_request())

    await desk.admin_for().revoke(given.claims.jti, "laptop lost")

    with pytest.raises(Refused, match="revoked"):
        await desk.identify(given.token)
    (listed,) = await desk.admin_for().tokens()
    assert listed.revoked


async def test_another_process_on_the_same_log_knows_of_it(
    desk: TokenService, log: MemoryLog, tmp_path: Path
) -> None:
    given = await desk.admin_for().issue(token_request())
    async with open_token_service(tmp_path, log) as shell:
        await shell.admin_for().revoke(given.claims.jti)
    async with open_token_service(tmp_path, log) as again:
        with pytest.raises(Refused, match="revoked"):
            await again.identify(given.token)


async def test_what_has_expired_is_listed_no_more_and_swept_in_time(
    desk: TokenService, clock: ManualClock
) -> None:
    given = await desk.admin_for().issue(token_request(ttl_s=3600))
    await desk.admin_for().revoke(given.claims.jti)

    clock.at = T0 + 2 * HOUR
    assert await desk.admin_for().tokens() == []
    clock.at = T0 + 3 * HOUR
    await run_due_jobs(desk)

    people = await desk.people()
    assert (dict(people.tokens), dict(people.revoked)) == ({}, {})


@pytest.mark.parametrize(("jti", "reason"), [("", ""), ("x" * 129, ""), ("J1", "x" * 1025)])
async def test_what_cannot_be_meant_is_not_recorded(
    desk: TokenService, jti: str, reason: str
) -> None:
    with pytest.raises(Refused) as no:
        await desk.admin_for().revoke(jti, reason)

    assert no.value.reason is Reason.MALFORMED


async def test_a_rotation_is_on_the_record_and_tokens_live_on(desk: TokenService) -> None:
    before = await desk.admin_for().issue(token_request())

    made = await desk.admin_for().rotate()
    after = await desk.admin_for().issue(token_request())

    people = await desk.people()
    assert people.active == after.key == made.kid != before.key
    assert people.keys[made.kid].public == made.public
    for given in (before, after):
        assert (await desk.identify(given.token)).actor.principal == "alice"


async def test_a_key_made_elsewhere_is_introduced_once(desk: TokenService, log: MemoryLog) -> None:
    await desk.record_active_key()
    await desk.record_active_key()

    assert (await desk.people()).active == desk.keyring.active
    assert len(await log.read(PEOPLE_STREAM)) == 1


async def test_an_operator_of_one_workspace_rules_no_other(desk: TokenService) -> None:
    theirs = await desk.identify((await issue_operator_token(desk, "otto", "elsewhere")).token)
    office = desk.admin_for(theirs.actor)
    keys = desk.keyring.public_keys()

    for refused in (office.rotate, lambda: office.issue(token_request())):
        with pytest.raises(Refused) as no:
            await refused()
        assert no.value.reason is Reason.FORBIDDEN
    assert desk.keyring.public_keys() == keys
    assert [token.id for token in await office.tokens()] == ["otto"]


@pytest.mark.parametrize(("kind", "role"), [(Kind.HUMAN, Role.DRIVER), (Kind.AGENT, Role.ADMIN)])
async def test_who_is_no_operator_gets_nothing(desk: TokenService, kind: Kind, role: Role) -> None:
    given = await desk.admin_for().issue(token_request("bob", role, kind=kind))
    office = desk.admin_for((await desk.identify(given.token)).actor)

    for refused in (office.rotate(), office.issue(token_request()), office.revoke("J1")):
        with pytest.raises(Refused) as no:
            await refused
        assert no.value.reason is Reason.FORBIDDEN
