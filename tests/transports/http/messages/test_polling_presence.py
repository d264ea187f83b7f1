"""Being in a room over HTTP: there while asking, gone by the room's own clock, and back again."""

import pytest

from accord.core.kernel.actor import Actor, CredentialRights
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room.state import Presence
from accord.transports.http.messages.polling_presence import PollingPresence
from tests.helpers.engine.harness import EngineHarness, yield_to_loop
from tests.helpers.room.context_scenarios import context_add
from tests.helpers.room.scenario import ROOM, STREAM, session_join
from tests.spec import proves

BEAT, IDLE, AWAY = 30, 120, 300
BOB = Actor("bob", Kind.HUMAN, credential=CredentialRights(frozenset({Role.DRIVER})))
ON_TRUST = Actor("bob", Kind.HUMAN)


class House:
    """A room with Alice on a connection and Bob over HTTP."""

    def __init__(self, bob: Actor = BOB) -> None:
        self.stage = EngineHarness()
        self.lobby = PollingPresence(self.stage.engine)
        self.bob = bob

    async def open(self) -> None:
        await self.stage.open_room(
            heartbeat_interval_seconds=BEAT, idle_timeout_seconds=IDLE, away_timeout_seconds=AWAY
        )
        await self.join()

    async def join(self) -> None:
        visitor = self.lobby.member(STREAM, self.bob.principal)
        ask = self.stage.submit(self.bob, session_join(self.bob, Role.DRIVER), ear=visitor)  # type: ignore[arg-type]
        await self.stage.engine.wait_until_idle()
        assert ask.refusal is None
        self.lobby.track(visitor)

    async def polls(self) -> None:
        self.lobby.on_act(self.stage.engine.streams[STREAM], self.bob)
        await self.stage.engine.wait_until_idle()

    async def passes(self, seconds: int) -> None:
        """Time, in small steps, as it does."""
        for _ in range(seconds // 10):
            self.stage.clock.advance(10)
            self.stage.engine.heartbeat.scheduler.run_due()
            self.lobby.scheduler.run_due()
            self.stage.engine.scheduler.run_due()
            await self.stage.engine.wait_until_idle()

    async def presence(self) -> Presence | None:
        member = (await self.stage.state()).members.get("bob")
        return member.presence if member else None


@pytest.fixture
async def house() -> House:
    made = House()
    await made.open()
    return made


@proves("OPEN-50", "UNI-22")
async def test_polling_member_is_present(house: House) -> None:
    for _ in range(AWAY * 2 // 60):
        await house.passes(60)
        await house.polls()

    assert await house.presence() is Presence.ACTIVE


@proves("OPEN-50", "UNI-22")
async def test_silence_is_idle_then_away_then_disconnected_and_never_a_leave(house: House) -> None:
    seen = []
    for _ in range(150):
        await house.passes(10)
        if (now := await house.presence()) not in seen:
            seen.append(now)

    assert seen == [
        Presence.ACTIVE,
        Presence.IDLE,
        Presence.AWAY,
        Presence.DISCONNECTED,
    ]


@proves("OPEN-50", "UNI-22")
@pytest.mark.parametrize("silence", [IDLE, AWAY, AWAY + BEAT])
async def test_polling_again_restores_presence(house: House, silence: int) -> None:
    await house.passes(silence + 10)
    assert await house.presence() is not Presence.ACTIVE

    await house.polls()

    assert await house.presence() is Presence.ACTIVE
    await house.passes(silence + 10)
    assert await house.presence() is not Presence.ACTIVE


@proves("UNI-22")
async def test_an_act_without_a_lasting_connection_is_a_return() -> None:
    house = House()
    await house.open()
    await house.passes(AWAY + BEAT + 10)
    assert await house.presence() is Presence.DISCONNECTED

    await house.stage.send(BOB, context_add(), ear=house.stage.connect(BOB, "shell"))
    await yield_to_loop()
    await house.stage.engine.wait_until_idle()

    assert await house.presence() is Presence.ACTIVE
    await house.passes(AWAY + BEAT + 10)
    assert await house.presence() is Presence.DISCONNECTED


async def test_a_request_to_a_session_that_is_not_in_memory_changes_nothing(house: House) -> None:
    house.lobby.on_request("room/elsewhere", BOB)

    assert await house.presence() is Presence.ACTIVE


async def test_a_connection_takes_over_from_earlier_requests(house: House) -> None:
    await house.polls()
    ear = house.stage.connect(BOB, "laptop")
    await house.stage.send(BOB, session_join(BOB, Role.DRIVER), ear=ear)

    ear.disconnect()
    await house.stage.wait_until_idle()

    assert await house.presence() is Presence.DISCONNECTED


async def test_posting_is_a_sign_of_life_as_well(house: House) -> None:
    for _ in range(AWAY * 2 // 60):
        await house.passes(60)
        house.lobby.on_request(STREAM, house.bob)

    assert await house.presence() is not Presence.DISCONNECTED


async def test_a_member_whose_connection_is_lost_is_there_again_by_polling() -> None:
    stage = EngineHarness()
    lobby = PollingPresence(stage.engine)
    await stage.open_room(BOB)
    stage.peers["bob"].disconnect()
    await stage.wait_until_idle()

    lobby.on_act(stage.engine.streams[STREAM], BOB)
    await stage.wait_until_idle()

    assert (await stage.state()).members["bob"].presence is Presence.ACTIVE


async def test_reading_beside_a_connection_makes_no_second_presence() -> None:
    stage = EngineHarness()
    lobby = PollingPresence(stage.engine)
    await stage.open_room(BOB)

    lobby.on_act(stage.engine.streams[STREAM], BOB)
    stage.peers["bob"].disconnect()
    await stage.wait_until_idle()

    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED


@proves("OPEN-29")
async def test_on_trust_reading_does_not_take_a_seat_that_came_otherwise() -> None:
    stage = EngineHarness()
    lobby = PollingPresence(stage.engine)
    await stage.open_room(ON_TRUST)
    stage.peers["bob"].disconnect()
    await stage.wait_until_idle()

    lobby.on_act(stage.engine.streams[STREAM], ON_TRUST)
    await stage.wait_until_idle()

    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED


async def test_on_trust_whoever_came_over_http_comes_back_by_polling() -> None:
    house = House(ON_TRUST)
    await house.open()
    await house.passes(AWAY + BEAT + 10)
    assert await house.presence() is Presence.DISCONNECTED

    await house.polls()

    assert await house.presence() is Presence.ACTIVE


async def test_whoever_left_is_not_brought_back_by_reading(house: House) -> None:
    from accord.core.room.membership.leaving import SessionLeave

    await house.stage.send(BOB, SessionLeave(), room=ROOM)
    await house.polls()

    assert await house.presence() is None
    assert not house.stage.engine.delivery.streams_of.get(house.lobby.member(STREAM, "bob"))
