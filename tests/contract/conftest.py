"""Opens every kind of store, empty."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from accord.engine.ports import EventLog
from accord.stores import OPENERS, open_log
from tests.helpers.servers.nats_server import SHARED_NATS
from tests.helpers.servers.postgres_server import SHARED_POSTGRES

DURABLE = frozenset({"nats", "postgresql", "sqlite"})
# Another spelling of one that is there.
ALIASES = frozenset({"postgres"})
STORES = sorted(OPENERS.keys() - ALIASES)


def place(scheme: str, folder: Path) -> str:
    """A URL for a store of this kind that is this test's alone."""
    places: dict[str, Callable[[], str]] = {
        "memory": lambda: "memory:",
        "sqlite": lambda: f"sqlite:{folder / 'log.db'}",
        "nats": lambda: SHARED_NATS.server().new_stream(f"copy={folder / 'copy'}"),
        "postgresql": lambda: SHARED_POSTGRES.server().new_database(),
    }
    return places[scheme]()


@pytest.fixture(params=STORES)
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
