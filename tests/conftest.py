"""Fixtures for every test."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.server import ServerProcess, a_server

# A log brings the whole server in, and few look at one.
if TYPE_CHECKING:
    from tests.helpers.log import Story

# How long an example takes says more of the machine than of the code: bounds on time have tests of
# their own. In CI hypothesis has a profile for that by itself.
settings.register_profile(
    "patient",
    settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A real server that asks for tokens."""
    with a_server(tmp_path / "server") as running:
        yield running


@pytest.fixture
def open_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A real server that takes identities on trust."""
    with a_server(tmp_path / "open", "open") as running:
        yield running


@pytest.fixture(scope="module")
def story() -> "Story":
    """What becomes of the log that a module looks at: it is signed to its last record."""
    from tests.helpers.log import a_log

    return a_log


@pytest.fixture(scope="module")
def original(story: "Story", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with that log, for reading alone."""
    made: Path = tmp_path_factory.mktemp("log") / "home"
    asyncio.run(story(made))
    return made


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Path:
    """A copy of one's own."""
    from tests.helpers.log import copied

    return copied(original, tmp_path / "home").parent
