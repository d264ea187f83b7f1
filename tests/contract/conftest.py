"""Opens every kind of store, empty."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from accord.engine.ports import EventLog
from accord.stores import OPENERS, open_log

DURABLE = frozenset({"sqlite"})


def place(scheme: str, folder: Path) -> str:
    """A URL for a store of this kind that is this test's alone."""
    places = {"memory": "memory:", "sqlite": f"sqlite:{folder / 'log.db'}"}
    return places[scheme]


@pytest.fixture(params=sorted(OPENERS))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of each store in turn."""
    return place(request.param, tmp_path)


@pytest.fixture
async def log(url: str) -> AsyncIterator[EventLog]:
    """Of each store in turn, empty."""
    opened = await open_log(url)
    yield opened
    await opened.close()


@pytest.fixture(params=sorted(DURABLE))
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of each store that outlives its process."""
    return place(request.param, tmp_path)
