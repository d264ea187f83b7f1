"""A member that disconnects while many messages are sent, and then catches up."""

from accord.core.kernel.role_permissions import Role
from tests.helpers.engine.harness import EngineHarness, RecordingPeer, yield_to_loop
from tests.helpers.room.scenario import ALICE, BOB, prompt_submit, session_join


async def send_prompts(stage: EngineHarness, count: int, name: str = "p") -> None:
    """Send many prompts."""
    for n in range(count):
        await stage.send(ALICE, prompt_submit(), f"{name}{n}")


async def rejoin_after_absence(
    stage: EngineHarness, said: int
) -> tuple[RecordingPeer, RecordingPeer]:
    """Bob joins, disconnects while messages are sent, and reconnects."""
    before = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "bob")
    before.disconnect()
    await send_prompts(stage, said)
    return before, stage.connect(BOB)


async def stalled_replay(stage: EngineHarness, said: int) -> tuple[RecordingPeer, RecordingPeer]:
    """Bob also rejoins, but reads so slowly that the replay has not finished yet."""
    before, bob = await rejoin_after_absence(stage, said)
    bob.stop_reading()
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "back", before.ids[-1])
    await yield_to_loop()
    return before, bob
