"""Servers that many tests share, because they neither end nor count on being alone."""

from collections.abc import Iterator

import pytest

from tests.helpers.server import ServerProcess, a_server


@pytest.fixture(scope="session")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that asks for tokens."""
    with a_server(tmp_path_factory.mktemp("hall")) as running:
        yield running


@pytest.fixture(scope="session")
def open_hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that takes identities on trust."""
    with a_server(tmp_path_factory.mktemp("open_hall"), "open") as running:
        yield running
