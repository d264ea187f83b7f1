"""A server, and people at shells in repositories of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.hosts.connecting_shell import ConnectingShell, StartShell
from tests.helpers.servers.server_process import ServerProcess, run_server


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


@pytest.fixture
def shell_of(house: ServerProcess, tmp_path: Path) -> StartShell:
    def start(who: str, *roles: str) -> ConnectingShell:
        return ConnectingShell(house, tmp_path / who, who, *roles)

    return start
