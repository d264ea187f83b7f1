"""Fixtures for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.server import ServerProcess, a_server

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
