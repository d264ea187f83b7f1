"""A store that hangs: pending records are bounded, and none is lost or half stored."""

import pytest

from accord.core.kernel.limits import KIB, Limits
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Reason
from accord.core.room.conversation.prompts import PromptDraft
from accord.core.room.room_settings import ServerPolicy
from tests.engine.conftest import Make
from tests.helpers.engine.harness import FaultyLog
from tests.helpers.room.scenario import ALICE, CLAUDE, CODEX, prompt_submit


def heavy(letters: int = 20 * KIB) -> Body:
    return prompt_submit(content="x" * letters)


@pytest.mark.parametrize("name", ["unstored", "unstored_session"])
async def test_messages_are_refused_when_a_store_hangs(name: str, make: Make) -> None:
    log = FaultyLog()
    stage = make(log, policy=ServerPolicy(limits=Limits(**{name: 64 * KIB})))
    await stage.open_room(CLAUDE)
    log.hold("append")

    replies = [stage.submit(ALICE, heavy()) for _ in range(10)]

    no = replies[-1].refusal
    assert no is not None
    assert (no.reason, (no.details or {})["limit"]) == (Reason.TOO_MANY, name)
    taken = [reply for reply in replies if not reply]
    assert 2 <= len(taken) <= 5
    assert stage.engine.backpressure.unstored_bytes < 128 * KIB

    log.release()
    await stage.wait_until_idle()
    assert all(reply.records for reply in taken)
    assert stage.engine.backpressure.unstored_bytes == 0
    later = stage.submit(ALICE, heavy())
    await stage.wait_until_idle()
    assert later.records


async def test_lost_records_are_subtracted(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    log.failing.add("append")

    replies = [stage.submit(ALICE, heavy(100)) for _ in range(5)]
    await stage.wait_until_idle()

    assert all(reply.refusal for reply in replies)
    assert stage.engine.backpressure.unstored_bytes == 0
    assert all(cell.unstored_bytes == 0 for cell in stage.engine.streams.values())


async def test_outcomes_without_a_commit_are_not_counted(make: Make) -> None:
    stage = make(FaultyLog())
    await stage.open_room(CLAUDE)

    for _ in range(3):
        stage.submit(ALICE, PromptDraft("Perhaps", ("alice",)))
        stage.submit(ALICE, prompt_submit(CODEX))
    await stage.wait_until_idle()

    assert stage.engine.backpressure.unstored_bytes == 0
