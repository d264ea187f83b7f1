"""What the tests of a module share: servers, who speaks to them over HTTP, and a key ring."""

from collections.abc import AsyncIterator, Iterator

import pytest

from accord.identity.token_signing import Keyring
from tests.helpers.attacks.cleanup import close_websockets
from tests.helpers.clients.http_client import HttpClient
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.identity.token_forgery import issued

__all__ = ["close_websockets"]


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that asks for tokens, for all tests here."""
    with run_server(tmp_path_factory.mktemp("signed")) as server:
        yield server


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that takes identities on trust, for all tests here."""
    with run_server(tmp_path_factory.mktemp("trusting"), "open") as server:
        yield server


@pytest.fixture
async def alice(signed: ServerProcess) -> AsyncIterator[HttpClient]:
    """An admin."""
    web = HttpClient.with_token(signed, "alice", roles=["admin", "driver"])
    yield web
    await web.close()


@pytest.fixture
async def bob(signed: ServerProcess) -> AsyncIterator[HttpClient]:
    """A driver."""
    web = HttpClient.with_token(signed, "bob")
    yield web
    await web.close()


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Keyring:
    return Keyring.open(tmp_path_factory.mktemp("home") / "keys")


@pytest.fixture(scope="module")
def token(ring: Keyring) -> str:
    return issued(ring).token
