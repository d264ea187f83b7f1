"""Over TLS: the certificate is checked, and whatever is wrong with it is one sentence."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from accord.client import Client, ServerRefused, Unreachable
from tests.helpers.certificates import DAY, Authority, Files, trusting
from tests.helpers.cli import accord
from tests.helpers.server import ServerProcess, a_server

HOUR = DAY / 24
ROLES = ("--roles", "driver")
TRUST = "point SSL_CERT_FILE at the certificate of your own authority"


class Scene(NamedTuple):
    """A server that speaks TLS, and whom it is vouched for by."""

    server: ServerProcess
    authority: Authority
    token: str

    @property
    def named(self) -> str:
        """Its address under a name of the certificate."""
        return self.server.url


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder / "authority")
    flags = authority.signed(names=("127.0.0.1",)).flags
    with trusting(authority), a_server(folder, "token", *flags) as running:
        yield Scene(running, authority, running.issue("alice", roles=["admin", "driver"]))


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[None]:
    """An authority that has nothing to do with the server is all that is trusted."""
    with trusting(Authority(tmp_path / "stranger")):
        yield


async def opened(url: str, token: str | None) -> str:
    """Why a client cannot connect."""
    with pytest.raises(Unreachable) as no:
        async with Client(url, token=token, id="alice"):
            pass
    return str(no.value)


async def listed(url: str, token: str | None) -> str:
    """Why a client cannot read."""
    with pytest.raises((Unreachable, ServerRefused)) as no:
        await Client(url, token=token, id="alice").sessions()
    return str(no.value)


def shelled(url: str, token: str, home: Path) -> dict[str, str]:
    """What commands say, by what they do; each ends with a code for it."""
    env = {"ACCORD_URL": url, "ACCORD_TOKEN": token, "ACCORD_HOME": str(home)}
    ran = {
        "read": accord("session", "list", cwd=None, **env),
        "say": accord("session", "create", cwd=None, **env),
        "issue": accord(
            "token", "issue", "--id", "bob", "--type", "human", *ROLES, cwd=None, **env
        ),
        "relay": accord("stdio", cwd=None, **env),
    }
    assert all(each.code not in {0, 1} for each in ran.values()), ran
    assert all("Traceback" not in each.err for each in ran.values()), ran
    return {name: each.err.strip() for name, each in ran.items()}


@asynccontextmanager
async def stale(old: Files) -> AsyncIterator[str]:
    """Whoever has run on past the end of their certificate; ours would not start with it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*old)

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def here(scene: Scene) -> AsyncIterator[Client]:
    async with Client(scene.named, token=scene.token) as client:
        yield client


async def test_a_session_over_tls(scene: Scene) -> None:
    async with here(scene) as client:
        session = await client.create(name="Behind locks")
        await session.add_context("plan", "x" * 500_000)

        assert session.id in [each.id for each in await client.sessions()]
        assert "context.add" in [each.type async for each in client.history(session.id)]


def test_commands_over_tls(scene: Scene, tmp_path: Path) -> None:
    for url in (scene.named, scene.named.replace("https", "wss")):
        env = {"ACCORD_URL": url, "ACCORD_TOKEN": scene.server.admin_token}
        made = accord(
            "session", "create", "--name", "x", ACCORD_HOME=str(tmp_path), cwd=None, **env
        )
        issued = accord("token", "issue", "--id", "zoe", "--type", "human", *ROLES, cwd=None, **env)
        assert (made.code, issued.code) == (0, 0), (made, issued)
    env = {"ACCORD_URL": scene.named, "ACCORD_TOKEN": scene.server.admin_token}
    found = accord("doctor", "--data-dir", str(scene.server.home), cwd=None, **env)
    assert f"answers at {scene.named}" in found.out


@pytest.mark.usefixtures("stranger")
async def test_an_authority_nobody_knows(scene: Scene, tmp_path: Path) -> None:
    said = [await opened(scene.named, scene.token), await listed(scene.named, scene.token)]
    said += shelled(scene.named, scene.token, tmp_path / "home").values()

    for each in said:
        assert f"The certificate at {scene.named} is not trusted here (" in each
        assert TRUST in each
        assert len(each.splitlines()) == 1


async def test_another_name(scene: Scene, tmp_path: Path) -> None:
    url = scene.named.replace("127.0.0.1", "localhost")
    said = [await opened(url, scene.token), await listed(url, scene.token)]
    said += shelled(url, scene.token, tmp_path / "home").values()

    for each in said:
        assert f"The certificate at {url} is for another name (" in each
        assert "use the name it is for" in each
    found = accord("doctor", "--url", url, "--data-dir", str(tmp_path))
    assert "is for another name" in found.out


async def test_a_certificate_that_has_expired_since(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    old = authority.signed("old", since=-2 * DAY, until=-DAY)
    with trusting(authority):
        async with stale(old) as url:
            said = [await opened(url, None), await listed(url, None)]

    for each in said:
        assert each == f"The certificate at {url} has expired; whoever runs the server renews it"


def looked(url: str, home: Path, about: str) -> tuple[str, str, str]:
    """What the doctor finds out of a server, about this."""
    ran = accord("doctor", "--json", "--url", url, "--data-dir", str(home), cwd=None)
    (found,) = (each for each in ran.json["checks"] if each["about"] == about)
    return found["state"], found["says"], found["cure"]


@pytest.mark.parametrize(
    ("until", "state", "left"), [(14 * DAY - HOUR, "warn", "13 d"), (14 * DAY + HOUR, "ok", "14 d")]
)
def test_the_doctor_tells_of_an_end_in_time(
    tmp_path: Path, until: timedelta, state: str, left: str
) -> None:
    authority = Authority(tmp_path / "authority")
    flags = authority.signed(until=until).flags
    with trusting(authority), a_server(tmp_path, "token", *flags) as server:
        found, said, cure = looked(server.url, tmp_path / "elsewhere", "TLS")

    assert found == state
    assert said.startswith(f"what {server.url} shows is good for {left}")
    assert ("tls.refused" in cure) is (state == "warn")


async def test_the_doctor_has_an_expired_one_renewed(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    with trusting(authority):
        async with stale(authority.signed("old", since=-2 * DAY, until=-DAY)) as url:
            found = await asyncio.to_thread(looked, url, tmp_path / "elsewhere", "server")

    said = f"The certificate at {url} has expired; whoever runs the server renews it"
    assert found[:2] == ("fail", said)
    assert found[2].startswith("Renew it; ")


async def test_plain_words_to_a_server_that_speaks_tls(scene: Scene, tmp_path: Path) -> None:
    url = scene.named.replace("https", "http")
    said = [await opened(url, scene.token), await listed(url, scene.token)]
    said += shelled(url, scene.token, tmp_path / "home").values()

    for each in said:
        assert "This port speaks TLS; write https:// or wss:// in front of the address" in each


async def test_tls_to_a_server_that_does_not_speak_it(
    server: ServerProcess, tmp_path: Path
) -> None:
    url, token = server.url.replace("http", "https"), server.issue("alice")
    said = [await opened(url, token), await listed(url, token)]
    said += shelled(url, token, tmp_path / "home").values()

    for each in said:
        assert f"What answers at {url} does not speak TLS" in each
        assert f"write {server.url}" in each
