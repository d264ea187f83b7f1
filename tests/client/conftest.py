"""Servers shared by tests that neither stop them nor depend on being alone."""

from collections.abc import Iterator

import pytest

from tests.helpers.servers.server_process import ServerProcess, run_server


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server that requires tokens."""
    with run_server(tmp_path_factory.mktemp("shared")) as running:
        yield running


@pytest.fixture(scope="session")
def shared_open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server that trusts the id a client gives (`--auth open`)."""
    with run_server(tmp_path_factory.mktemp("shared_open"), "open") as running:
        yield running
