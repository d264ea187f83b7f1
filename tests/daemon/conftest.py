"""One server and one daemon for most tests; each test has a session and agents of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.hosts.gated_agent import GatedAgent, People
from tests.helpers.servers.server_process import ServerProcess, run_server

MakeAgent = Callable[..., GatedAgent]


@pytest.fixture(scope="package")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that tests may restart."""
    with run_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="package")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a user whose daemon goes on from test to test."""
    home = tmp_path_factory.mktemp("home")
    yield home
    GatedAgent.stop_daemon_of(home)


@pytest.fixture
def people(shared_server: ServerProcess) -> People:
    """Ann and Bob in a session in which everything but reading needs one approval."""
    return People(shared_server)


@pytest.fixture
def make_agent(people: People, shared_home: Path, tmp_path: Path) -> MakeAgent:
    """Makes connected agents of one user, each test in a repository of its own."""

    def make(host: str = "claude-code", **fields: Any) -> GatedAgent:
        root = shared_home / tmp_path.name
        root.mkdir(exist_ok=True)
        return GatedAgent(people, shared_home, host, root, **fields)

    return make


@pytest.fixture
def agent(make_agent: MakeAgent) -> GatedAgent:
    """Claude Code in a repository."""
    return make_agent()


@pytest.fixture
def lonely_agent(people: People, tmp_path: Path) -> Iterator[GatedAgent]:
    """Claude Code of a user whose daemon nobody else uses."""
    root = tmp_path / "home" / "project"
    root.mkdir(parents=True)
    yield GatedAgent(people, tmp_path / "home", "claude-code", root)
    GatedAgent.stop_daemon_of(tmp_path / "home")
