"""Fixtures available to all tests."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.measure.slow_tests import limit_time
from tests.helpers.seeds import LONG
from tests.helpers.servers.fork_server import FORK_SERVER
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.helpers.skip_policy import SkipPolicy

# Importing a log imports the whole server, which few tests need.
if TYPE_CHECKING:
    from tests.helpers.stores.sample_log import LogBuilder

# The time an example takes depends on the machine; time limits have their own tests.
# The examples are the same on every machine, unless new ones are to be found.
settings.register_profile(
    "patient",
    settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")

# Tests must not find the profiles of the person who runs them, nor those of another test run.
CONFIG_HOME = Path(tempfile.mkdtemp(prefix="accord-tests-config-"))
os.environ["XDG_CONFIG_HOME"] = str(CONFIG_HOME)
os.environ.pop("ACCORD_PROFILE", None)

# A server names its operator after the operating-system user.
os.environ["USER"] = "admin"
os.environ.pop("SUDO_USER", None)


# Coverage is asked of the core, whose own tests reach almost all of it; the rest is reached in
# `identity` and `transports`. Tracing doubles the CPU time, so these parts run without.
PARTS_WITHOUT_COVERAGE = frozenset(
    {
        *("chaos", "cli", "contract", "docs", "fuzz", "git", "hosts", "pact", "page", "properties"),
        *("security", "setup", "show", "stores", "stories"),
    }
)


def pytest_configure(config: pytest.Config) -> None:
    """With CI=true a skipped test is a failure, unless it is listed."""
    config.pluginmanager.register(SkipPolicy(os.environ))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave some parts out of the measurement of coverage."""
    tests = Path(__file__).parent
    for item in items:
        if item.path.relative_to(tests).parts[0] in PARTS_WITHOUT_COVERAGE:
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """No test takes longer than 20 seconds but a named few."""
    return (yield from limit_time(item))


def pytest_sessionfinish() -> None:
    """End the process that servers were forked from, and remove the empty configuration."""
    FORK_SERVER.close()
    shutil.rmtree(CONFIG_HOME, ignore_errors=True)


@pytest.fixture(autouse=True)
def _shared_configuration_stays_empty() -> Iterator[None]:
    """A test that logs in or connects a host needs a configuration directory of its own."""
    yield
    written = [path.name for path in CONFIG_HOME.iterdir()]
    for name in written:
        shutil.rmtree(CONFIG_HOME / name, ignore_errors=True)
    assert not written, f"this test wrote {written} into XDG_CONFIG_HOME, which all tests share"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A running server that requires tokens."""
    with run_server(tmp_path / "server") as running:
        yield running


@pytest.fixture
def open_server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A running server that trusts the id a client gives (`--auth open`)."""
    with run_server(tmp_path / "open", "open") as running:
        yield running


@pytest.fixture(scope="module")
def story() -> "LogBuilder":
    """Builds the log that a module's tests read; override it for a different log."""
    from tests.helpers.stores.sample_log import build_log

    return build_log


@pytest.fixture(scope="module")
def original(story: "LogBuilder", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with that log, shared by the module; do not write to it."""
    directory: Path = tmp_path_factory.mktemp("log") / "home"
    asyncio.run(story(directory))
    return directory


@pytest.fixture
def home(original: Path, tmp_path: Path) -> Path:
    """A private copy of that data directory."""
    from tests.helpers.stores.sample_log import copy_home

    return copy_home(original, tmp_path / "home").parent
