"""Tokens and keys on the record, over a real engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.refusal import Refused, Why
from accord.desk import STREAM, LocalDesk
from accord.stores.memory import MemoryLog
from tests.helpers.desk import T0, StillClock, a_desk, operator, when_due, wish
from tests.spec import proves

HOUR = 3_600_000


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def desk(tmp_path: Path, log: MemoryLog, clock: StillClock) -> AsyncIterator[LocalDesk]:
    async with a_desk(tmp_path, log, clock) as made:
        yield made


async def test_a_token_is_on_the_record_before_it_is_handed_out(desk: LocalDesk) -> None:
    given = await desk.office().issue(wish(labels=frozenset({"security"}), name="Alice"))

    assert dict((await desk.people()).tokens) == {given.claims.jti: given.record()}
    assert (await desk.identify(given.token)).actor.seat == "alice"


@proves("PVP-20.1-1")
async def test_no_token_is_in_any_byte_of_the_log(desk: LocalDesk, log: MemoryLog) -> None:
    given = await desk.office().issue(wish())
    await desk.office().rotate()

    stored = b"".join(row.body for row in await log.read(STREAM))

    assert given.claims.jti.encode() in stored
    assert given.token.rpartition(".")[2].encode() not in stored
    assert b"PRIVATE" not in stored


@proves("OPEN-122")
async def test_a_revoked_token_counts_nowhere_from_then_on(desk: LocalDesk) -> None:
    given = await desk.office().issue(wish())

    await desk.office().revoke(given.claims.jti, "laptop lost")

    with pytest.raises(Refused, match="revoked"):
        await desk.identify(given.token)
    (listed,) = await desk.office().tokens()
    assert listed.revoked


async def test_another_process_on_the_same_log_knows_of_it(
    desk: LocalDesk, log: MemoryLog, tmp_path: Path
) -> None:
    given = await desk.office().issue(wish())
    async with a_desk(tmp_path, log) as shell:
        await shell.office().revoke(given.claims.jti)
    async with a_desk(tmp_path, log) as again:
        with pytest.raises(Refused, match="revoked"):
            await again.identify(given.token)


async def test_what_has_expired_is_listed_no_more_and_swept_in_time(
    desk: LocalDesk, clock: StillClock
) -> None:
    given = await desk.office().issue(wish(ttl_s=3600))
    await desk.office().revoke(given.claims.jti)

    clock.at = T0 + 2 * HOUR
    assert await desk.office().tokens() == []
    clock.at = T0 + 3 * HOUR
    await when_due(desk)

    people = await desk.people()
    assert (dict(people.tokens), dict(people.revoked)) == ({}, {})


@pytest.mark.parametrize(("jti", "reason"), [("", ""), ("x" * 129, ""), ("J1", "x" * 1025)])
async def test_what_cannot_be_meant_is_not_recorded(desk: LocalDesk, jti: str, reason: str) -> None:
    with pytest.raises(Refused) as no:
        await desk.office().revoke(jti, reason)

    assert no.value.why is Why.MALFORMED


async def test_a_rotation_is_on_the_record_and_tokens_live_on(desk: LocalDesk) -> None:
    before = await desk.office().issue(wish())

    made = await desk.office().rotate()
    after = await desk.office().issue(wish())

    people = await desk.people()
    assert people.active == after.key == made.kid != before.key
    assert people.keys[made.kid].public == made.public
    for given in (before, after):
        assert (await desk.identify(given.token)).actor.seat == "alice"


async def test_a_key_made_elsewhere_is_introduced_once(desk: LocalDesk, log: MemoryLog) -> None:
    await desk.introduce()
    await desk.introduce()

    assert (await desk.people()).active == desk.keyring.active
    assert len(await log.read(STREAM)) == 1


async def test_an_operator_of_one_workspace_rules_no_other(desk: LocalDesk) -> None:
    theirs = await desk.identify((await operator(desk, "otto", "elsewhere")).token)
    office = desk.office(theirs.actor)
    keys = desk.keyring.list()

    for refused in (office.rotate, lambda: office.issue(wish())):
        with pytest.raises(Refused) as no:
            await refused()
        assert no.value.why is Why.FORBIDDEN
    assert desk.keyring.list() == keys
    assert [token.id for token in await office.tokens()] == ["otto"]


@pytest.mark.parametrize(("kind", "role"), [(Kind.HUMAN, Role.DRIVER), (Kind.AGENT, Role.ADMIN)])
async def test_who_is_no_operator_gets_nothing(desk: LocalDesk, kind: Kind, role: Role) -> None:
    given = await desk.office().issue(wish("bob", role, kind=kind))
    office = desk.office((await desk.identify(given.token)).actor)

    for refused in (office.rotate(), office.issue(wish()), office.revoke("J1")):
        with pytest.raises(Refused) as no:
            await refused
        assert no.value.why is Why.FORBIDDEN
