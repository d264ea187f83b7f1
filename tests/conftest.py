"""Fixtures for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.server import ServerProcess, a_server


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
