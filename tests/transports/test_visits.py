"""Being in a room over HTTP: there while asking, gone by the room's own clock, and back again."""

import pytest

from accord.core.kernel.actor import Actor, Grant
from accord.core.kernel.authority import Kind, Role
from accord.core.room.state import Presence
from accord.transports.http.visits import Lobby
from tests.helpers.engine import Stage
from tests.helpers.room import ROOM, STREAM, joins
from tests.spec import proves

BEAT, IDLE, AWAY = 30, 120, 300
BOB = Actor("bob", Kind.HUMAN, grant=Grant(frozenset({Role.DRIVER})))
ON_TRUST = Actor("bob", Kind.HUMAN)


class House:
    """A room with Alice on a connection and Bob over HTTP."""

    def __init__(self, bob: Actor = BOB) -> None:
        self.stage = Stage()
        self.lobby = Lobby(self.stage.engine)
        self.bob = bob

    async def open(self) -> None:
        await self.stage.open(
            heartbeat_interval_seconds=BEAT, idle_timeout_seconds=IDLE, away_timeout_seconds=AWAY
        )
        await self.join()

    async def join(self) -> None:
        visitor = self.lobby.visitor(STREAM, self.bob.seat)
        ask = self.stage.ask(self.bob, joins(self.bob, Role.DRIVER), ear=visitor)  # type: ignore[arg-type]
        await self.stage.engine.settle()
        assert ask.refused is None
        self.lobby.settle(visitor)

    async def polls(self) -> None:
        self.lobby.asked(self.stage.engine.cells[STREAM], self.bob)
        await self.stage.engine.settle()

    async def passes(self, seconds: int) -> None:
        """Time, in small steps, as it does."""
        for _ in range(seconds // 10):
            self.stage.clock.move(10)
            self.stage.engine.pulse.scheduler.run_due()
            self.lobby.scheduler.run_due()
            self.stage.engine.scheduler.run_due()
            await self.stage.engine.settle()

    async def presence(self) -> Presence | None:
        member = (await self.stage.state()).members.get("bob")
        return member.presence if member else None


@pytest.fixture
async def house() -> House:
    made = House()
    await made.open()
    return made


@proves("OPEN-50", "UNI-22")
async def test_whoever_polls_is_there(house: House) -> None:
    for _ in range(AWAY * 2 // 60):
        await house.passes(60)
        await house.polls()

    assert await house.presence() is Presence.ACTIVE


@proves("OPEN-50", "UNI-22")
async def test_silence_is_idle_then_away_then_disconnected_then_a_leave(house: House) -> None:
    seen = []
    for _ in range(80):
        await house.passes(10)
        if (now := await house.presence()) not in seen:
            seen.append(now)

    assert seen == [
        Presence.ACTIVE,
        Presence.IDLE,
        Presence.AWAY,
        Presence.DISCONNECTED,
        None,
    ]


@proves("OPEN-50", "UNI-22")
@pytest.mark.parametrize("silence", [IDLE, AWAY, AWAY + BEAT])
async def test_polling_again_brings_back(house: House, silence: int) -> None:
    await house.passes(silence + 10)
    assert await house.presence() is not Presence.ACTIVE

    await house.polls()

    assert await house.presence() is Presence.ACTIVE
    await house.passes(silence + 10)
    assert await house.presence() is not Presence.ACTIVE


async def test_posting_is_a_sign_of_life_as_well(house: House) -> None:
    for _ in range(AWAY * 2 // 60):
        await house.passes(60)
        house.lobby.spoke(STREAM, "bob")

    assert await house.presence() is not Presence.DISCONNECTED


async def test_a_member_whose_connection_is_lost_is_there_again_by_polling() -> None:
    stage = Stage()
    lobby = Lobby(stage.engine)
    await stage.open(BOB)
    stage.ears["bob"].hang_up()
    await stage.settle()

    lobby.asked(stage.engine.cells[STREAM], BOB)
    await stage.settle()

    assert (await stage.state()).members["bob"].presence is Presence.ACTIVE


async def test_reading_beside_a_connection_makes_no_second_presence() -> None:
    stage = Stage()
    lobby = Lobby(stage.engine)
    await stage.open(BOB)

    lobby.asked(stage.engine.cells[STREAM], BOB)
    stage.ears["bob"].hang_up()
    await stage.settle()

    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED


@proves("OPEN-29")
async def test_on_trust_reading_does_not_take_a_seat_that_came_otherwise() -> None:
    stage = Stage()
    lobby = Lobby(stage.engine)
    await stage.open(ON_TRUST)
    stage.ears["bob"].hang_up()
    await stage.settle()

    lobby.asked(stage.engine.cells[STREAM], ON_TRUST)
    await stage.settle()

    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED


async def test_on_trust_whoever_came_over_http_comes_back_by_polling() -> None:
    house = House(ON_TRUST)
    await house.open()
    await house.passes(AWAY + BEAT + 10)
    assert await house.presence() is Presence.DISCONNECTED

    await house.polls()

    assert await house.presence() is Presence.ACTIVE


async def test_whoever_left_is_not_brought_back_by_reading(house: House) -> None:
    from accord.core.room.members import SessionLeave

    await house.stage.say(BOB, SessionLeave(), room=ROOM)
    await house.polls()

    assert await house.presence() is None
    assert not house.stage.engine.peers.places.get(house.lobby.visitor(STREAM, "bob"))
