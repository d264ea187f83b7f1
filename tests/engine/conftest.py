"""Engines that are looked after when a test is over."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from accord.engine import arrivals
from tests.helpers.engine import Stage

Make = Callable[..., Stage]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes engines; none of them may have had trouble that nobody was told of."""
    made: list[Stage] = []

    def new(log: Any = None, **options: Any) -> Stage:
        made.append(Stage(log, **options))
        return made[-1]

    yield new
    for stage in made:
        await stage.close()


@pytest.fixture
def stage(make: Make) -> Stage:
    """An engine on a log in memory."""
    return make()


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long histories are short here."""
    monkeypatch.setattr(arrivals, "PAGE", 7)
