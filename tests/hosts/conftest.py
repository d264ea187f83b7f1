"""Hosts for the tests of this directory: installed, with a home of their own each."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.hosts.host import McpServer
from tests.helpers.hosts.installation import ensure_installed
from tests.helpers.hosts.scripted_model.server import ScriptedModel
from tests.helpers.hosts.table import HOSTS
from tests.helpers.hosts.turns import Agent

MakeAgent = Callable[[str, ScriptedModel, McpServer | None], Agent]


@pytest.fixture
def make_agent(tmp_path: Path) -> MakeAgent:
    """Makes an agent of a host, which is installed first if necessary; a failure is an error."""

    def make(name: str, model: ScriptedModel, mcp: McpServer | None = None) -> Agent:
        command = ensure_installed(HOSTS[name])
        return Agent(HOSTS[name], command, tmp_path / name, model, mcp)

    return make


@pytest.fixture
def stopped_daemons(tmp_path: Path) -> Iterator[None]:
    """Ends what a host or a hook left running in a home of this test."""
    yield
    for home in tmp_path.glob("*/home"):
        subprocess.run(
            [sys.executable, "-m", "accord", "daemon", "stop"],
            env={"HOME": str(home), "PATH": os.environ["PATH"]},
            capture_output=True,
            check=False,
        )
