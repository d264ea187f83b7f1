"""One server and one browser for the tests of a module; each person has a browser context."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.helpers.page.browser import launch
from tests.helpers.page.team import Team, team_at
from tests.helpers.servers.server_process import ServerProcess, run_server

# A page may be slow where three workers share two processors.
EXPECT_TIMEOUT_MS = 30_000
expect.set_options(timeout=EXPECT_TIMEOUT_MS)


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    directory: Path = tmp_path_factory.mktemp("page")
    with run_server(directory) as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with launch() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def team(page_server: ServerProcess) -> AsyncIterator[Team]:
    async with team_at(page_server) as people:
        yield people
