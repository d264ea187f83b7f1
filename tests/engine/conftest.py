"""Fixtures that create engines and check afterwards that none had an unexpected error."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from accord.engine.delivery import joining
from tests.helpers.engine.harness import EngineHarness

Make = Callable[..., EngineHarness]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes engines; none of them may have had trouble that nobody was told of."""
    made: list[EngineHarness] = []

    def new(log: Any = None, **options: Any) -> EngineHarness:
        made.append(EngineHarness(log, **options))
        return made[-1]

    yield new
    for stage in made:
        await stage.close()


@pytest.fixture
def stage(make: Make) -> EngineHarness:
    """An engine on a log in memory."""
    return make()


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long histories are short here."""
    monkeypatch.setattr(joining, "PAGE_ROWS", 7)
