"""TLS: certificates are verified, and every failure is explained in one sentence."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from accord.client import Client, ServerRefused, Unreachable
from tests.helpers.clients.cli import run_accord
from tests.helpers.servers.certificates import (
    DAY,
    CertificateAuthority,
    CertificateFiles,
    trust_authority,
)
from tests.helpers.servers.server_process import ServerProcess, run_server

HOUR = DAY / 24
ROLES = ("--roles", "driver")
TRUST = "if you run your own CA, set SSL_CERT_FILE to its certificate"


class TlsSetup(NamedTuple):
    """A TLS server, the CA that signed its certificate, and a token."""

    server: ServerProcess
    authority: CertificateAuthority
    token: str

    @property
    def named(self) -> str:
        """The server's URL with a name that its certificate covers."""
        return self.server.url


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsSetup]:
    folder = tmp_path_factory.mktemp("tls")
    authority = CertificateAuthority(folder / "authority")
    flags = authority.issue_certificate(names=("127.0.0.1",)).server_flags
    with trust_authority(authority), run_server(folder, "token", *flags) as running:
        yield TlsSetup(running, authority, running.issue_token("alice", roles=["admin", "driver"]))


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[None]:
    """Trust only a CA that did not sign the server's certificate."""
    with trust_authority(CertificateAuthority(tmp_path / "stranger")):
        yield


async def connect_error(url: str, token: str | None) -> str:
    """The error of a client that tries to connect."""
    with pytest.raises(Unreachable) as refusal:
        async with Client(url, token=token, id="alice"):
            pass
    return str(refusal.value)


async def read_error(url: str, token: str | None) -> str:
    """The error of a client that tries to read over HTTP."""
    with pytest.raises((Unreachable, ServerRefused)) as refusal:
        await Client(url, token=token, id="alice").sessions()
    return str(refusal.value)


def command_errors(url: str, token: str, home: Path) -> dict[str, str]:
    """The error texts of several commands, each of which must fail without a traceback."""
    env = {"ACCORD_URL": url, "ACCORD_TOKEN": token, "ACCORD_HOME": str(home)}
    ran = {
        "read": run_accord("session", "list", cwd=None, **env),
        "say": run_accord("session", "create", cwd=None, **env),
        "issue": run_accord(
            "token", "issue", "--id", "bob", "--type", "human", *ROLES, cwd=None, **env
        ),
        "relay": run_accord("stdio", cwd=None, **env),
    }
    assert all(item.code not in {0, 1} for item in ran.values()), ran
    assert all("Traceback" not in item.err for item in ran.values()), ran
    return {name: item.err.strip() for name, item in ran.items()}


@asynccontextmanager
async def run_expired_server(old: CertificateFiles) -> AsyncIterator[str]:
    """A server with an expired certificate; Accord's own server would refuse to start with it."""
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
async def connect(tls: TlsSetup) -> AsyncIterator[Client]:
    async with Client(tls.named, token=tls.token) as client:
        yield client


async def test_client_sends_and_reads_over_tls(tls: TlsSetup) -> None:
    async with connect(tls) as client:
        session = await client.create(name="Behind locks")
        await session.add_context("plan", "x" * 500_000)

        assert session.id in [item.id for item in await client.sessions()]
        assert "context.add" in [item.type async for item in client.history(session.id)]


def test_commands_work_over_tls(tls: TlsSetup, tmp_path: Path) -> None:
    for url in (tls.named, tls.named.replace("https", "wss")):
        env = {"ACCORD_URL": url, "ACCORD_TOKEN": tls.server.admin_token}
        made = run_accord(
            "session", "create", "--name", "x", ACCORD_HOME=str(tmp_path), cwd=None, **env
        )
        issued = run_accord(
            "token", "issue", "--id", "zoe", "--type", "human", *ROLES, cwd=None, **env
        )
        assert (made.code, issued.code) == (0, 0), (made, issued)
    env = {"ACCORD_URL": tls.named, "ACCORD_TOKEN": tls.server.admin_token}
    found = run_accord("doctor", "--data-dir", str(tls.server.home), cwd=None, **env)
    assert f"answers at {tls.named}" in found.out


@pytest.mark.usefixtures("stranger")
async def test_untrusted_authority_is_explained(tls: TlsSetup, tmp_path: Path) -> None:
    errors = [
        await connect_error(tls.named, tls.token),
        await read_error(tls.named, tls.token),
    ]
    errors += command_errors(tls.named, tls.token, tmp_path / "home").values()

    for error in errors:
        assert f"The certificate at {tls.named} is not trusted (" in error
        assert TRUST in error
        assert len(error.splitlines()) == 1


async def test_certificate_for_another_name_is_explained(tls: TlsSetup, tmp_path: Path) -> None:
    url = tls.named.replace("127.0.0.1", "localhost")
    errors = [await connect_error(url, tls.token), await read_error(url, tls.token)]
    errors += command_errors(url, tls.token, tmp_path / "home").values()

    for error in errors:
        assert f"The certificate at {url} was issued for another name (" in error
        assert "; use that name" in error
    found = run_accord("doctor", "--url", url, "--data-dir", str(tmp_path))
    assert "issued for another name" in found.out


async def test_expired_certificate_is_explained(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path / "authority")
    old = authority.issue_certificate("old", since=-2 * DAY, until=-DAY)
    with trust_authority(authority):
        async with run_expired_server(old) as url:
            errors = [await connect_error(url, None), await read_error(url, None)]

    for error in errors:
        assert (
            error == f"The certificate at {url} has expired; ask the server's operator to renew it"
        )


def doctor_check(url: str, home: Path, about: str) -> tuple[str, str, str]:
    """State, text and remedy of one check of `accord doctor`."""
    ran = run_accord("doctor", "--json", "--url", url, "--data-dir", str(home), cwd=None)
    (found,) = (item for item in ran.json["checks"] if item["about"] == about)
    return found["state"], found["found"], found["fix"]


@pytest.mark.parametrize(
    ("until", "state", "left"), [(14 * DAY - HOUR, "warn", "13 d"), (14 * DAY + HOUR, "ok", "14 d")]
)
def test_doctor_warns_two_weeks_before_a_certificate_expires(
    tmp_path: Path, until: timedelta, state: str, left: str
) -> None:
    authority = CertificateAuthority(tmp_path / "authority")
    flags = authority.issue_certificate(until=until).server_flags
    with trust_authority(authority), run_server(tmp_path, "token", *flags) as server:
        state_found, text, cure = doctor_check(server.url, tmp_path / "elsewhere", "TLS")

    assert state_found == state
    assert text.startswith(f"the certificate of {server.url} is valid for {left}")
    assert ("tls.refused" in cure) is (state == "warn")


async def test_doctor_reports_an_expired_certificate(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path / "authority")
    with trust_authority(authority):
        async with run_expired_server(
            authority.issue_certificate("old", since=-2 * DAY, until=-DAY)
        ) as url:
            found = await asyncio.to_thread(doctor_check, url, tmp_path / "elsewhere", "server")

    text = f"The certificate at {url} has expired; ask the server's operator to renew it"
    assert found[:2] == ("fail", text)
    assert found[2].startswith("Renew it; ")


async def test_plain_http_to_a_tls_port_is_explained(tls: TlsSetup, tmp_path: Path) -> None:
    url = tls.named.replace("https", "http")
    errors = [await connect_error(url, tls.token), await read_error(url, tls.token)]
    errors += command_errors(url, tls.token, tmp_path / "home").values()

    for error in errors:
        assert "This port requires TLS; use https:// or wss:// in the address" in error


async def test_tls_to_a_plain_port_is_explained(server: ServerProcess, tmp_path: Path) -> None:
    url, token = server.url.replace("http", "https"), server.issue_token("alice")
    errors = [await connect_error(url, token), await read_error(url, token)]
    errors += command_errors(url, token, tmp_path / "home").values()

    for error in errors:
        assert f"The server at {url} does not use TLS" in error
        assert f"use {server.url}" in error
