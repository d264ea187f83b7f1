"""A store that hangs: what waits for it has an end, and nothing is lost or half done."""

import pytest

from accord.core.kernel.limits import KIB, Limits
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Why
from accord.core.room.prompts import PromptDraft
from accord.engine.load import Load
from tests.engine.conftest import Make
from tests.helpers.engine import Tricky
from tests.helpers.room import ALICE, CLAUDE, CODEX, prompts


def heavy(letters: int = 20 * KIB) -> Body:
    return prompts(content="x" * letters)


@pytest.mark.parametrize("name", ["unstored", "unstored_session"])
async def test_what_waits_for_a_hanging_store_has_an_end(name: str, make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    stage.engine.load = Load(Limits(**{name: 64 * KIB}))
    log.hold("append")

    replies = [stage.ask(ALICE, heavy()) for _ in range(10)]

    no = replies[-1].refused
    assert no is not None
    assert (no.why, (no.details or {})["limit"]) == (Why.TOO_MANY, name)
    taken = [reply for reply in replies if not reply]
    assert 2 <= len(taken) <= 5
    assert stage.engine.load.bytes < 128 * KIB

    log.release()
    await stage.settle()
    assert all(reply.sealed for reply in taken)
    assert stage.engine.load.bytes == 0
    later = stage.ask(ALICE, heavy())
    await stage.settle()
    assert later.sealed


async def test_what_was_lost_weighs_nothing_any_more(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(CLAUDE)
    log.failing.add("append")

    replies = [stage.ask(ALICE, heavy(100)) for _ in range(5)]
    await stage.settle()

    assert all(reply.refused for reply in replies)
    assert stage.engine.load.bytes == 0
    assert all(cell.unstored == 0 for cell in stage.engine.cells.values())


async def test_what_is_told_at_once_weighs_nothing(make: Make) -> None:
    stage = make(Tricky())
    await stage.open(CLAUDE)

    for _ in range(3):
        stage.ask(ALICE, PromptDraft("Perhaps", ("alice",)))
        stage.ask(ALICE, prompts(CODEX))
    await stage.settle()

    assert stage.engine.load.bytes == 0
