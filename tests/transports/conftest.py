"""What the tests of a module share: servers, who speaks to them over HTTP, and a key ring."""

from collections.abc import AsyncIterator, Iterator

import pytest

from accord.transports.identity import Keyring
from tests.helpers.server import ServerProcess, a_server
from tests.helpers.web import Web
from tests.transports.tokens import issued


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that asks for tokens, for all tests here."""
    with a_server(tmp_path_factory.mktemp("signed")) as server:
        yield server


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that takes identities on trust, for all tests here."""
    with a_server(tmp_path_factory.mktemp("trusting"), "open") as server:
        yield server


@pytest.fixture
async def alice(signed: ServerProcess) -> AsyncIterator[Web]:
    """An admin."""
    web = Web.of(signed, "alice", roles=["admin", "driver"])
    yield web
    await web.close()


@pytest.fixture
async def bob(signed: ServerProcess) -> AsyncIterator[Web]:
    """A driver."""
    web = Web.of(signed, "bob")
    yield web
    await web.close()


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Keyring:
    return Keyring.open(tmp_path_factory.mktemp("home") / "keys")


@pytest.fixture(scope="module")
def token(ring: Keyring) -> str:
    return issued(ring).token
