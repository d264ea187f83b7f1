"""Much is said, and somebody was away meanwhile."""

from accord.core.kernel.authority import Role
from tests.helpers.engine import Ear, Stage, turns
from tests.helpers.room import ALICE, BOB, joins, prompts


async def talk(stage: Stage, count: int, name: str = "p") -> None:
    """Much is said."""
    for n in range(count):
        await stage.say(ALICE, prompts(), f"{name}{n}")


async def away(stage: Stage, said: int) -> tuple[Ear, Ear]:
    """Bob was there, is gone while things are said, and connects again."""
    before = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "bob")
    before.hang_up()
    await talk(stage, said)
    return before, stage.connect(BOB)


async def midway(stage: Stage, said: int) -> tuple[Ear, Ear]:
    """He comes in, too, and takes so long to read what he missed that he is still being told."""
    before, bob = await away(stage, said)
    bob.stall()
    stage.ask(BOB, joins(BOB, Role.DRIVER), "back", before.ids[-1])
    await turns()
    return before, bob
