"""A renewed certificate is shown without a restart; a broken one changes nothing."""

import os
import pty
import re
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificate

from accord.settings.server.certificate_reload import CertificateReloader
from tests.helpers.attacks.raw_socket import plug
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.certificates import (
    DAY,
    CertificateAuthority,
    CertificateFiles,
    trust_authority,
)
from tests.helpers.servers.server_process import (
    SERVER_TIMEOUT_S,
    ServerProcess,
    run_server,
    serve_command,
)

POLL = 0.05
ENDS = "accord_tls_certificate_expiry_timestamp_seconds"


class Scene:
    """A server that speaks TLS, and whoever signs its certificates."""

    def __init__(
        self, authority: CertificateAuthority, files: CertificateFiles, server: ServerProcess
    ) -> None:
        self.authority, self.files, self.server = authority, files, server

    def put(self, new: CertificateFiles) -> int:
        """These are where the old ones were; returns what the new one is known by."""
        for old, made in zip(self.files, new, strict=True):
            made.replace(old)
        return number(self.files)

    def shown(self) -> int:
        """What a client is shown now, which trusts the authority alone."""
        context = ssl.create_default_context()
        with context.wrap_socket(plug(self.server), server_hostname="localhost") as opened:
            return load_der_x509_certificate(opened.getpeercert(True) or b"").serial_number

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for it."""
        deadline = time.monotonic() + SERVER_TIMEOUT_S
        while not holds():
            assert time.monotonic() < deadline, self.server.log
            time.sleep(POLL)

    def told(self) -> float:
        """When the one in use ends, as operators are told."""
        said = httpx.get(f"{self.server.url}/metrics", verify=ssl.create_default_context()).text
        (found,) = re.findall(rf"^{ENDS} (\S+)$", said, re.MULTILINE)
        return float(found)


def ends(files: CertificateFiles) -> float:
    """When a certificate does."""
    return load_pem_x509_certificate(files.cert.read_bytes()).not_valid_after_utc.timestamp()


def number(files: CertificateFiles) -> int:
    """What a certificate is known by."""
    return load_pem_x509_certificate(files.cert.read_bytes()).serial_number


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    authority = CertificateAuthority(tmp_path / "authority")
    files = authority.issue_certificate()
    with trust_authority(authority), run_server(tmp_path, "token", *files.server_flags) as server:
        yield Scene(authority, files, server)


async def test_a_renewed_certificate_is_shown_and_nobody_is_disconnected(scene: Scene) -> None:
    server, old = scene.server, scene.shown()
    alice = await WebSocketClient.open(
        server.ws_url, "alice", server.issue_token("alice", roles=["admin", "driver"])
    )
    session = await alice.create()

    new = scene.put(scene.authority.issue_certificate("new"))
    scene.until(lambda: scene.shown() == new)

    assert new != old
    assert "tls.renewed" in server.log
    body = {"key": "k", "content_type": "text", "content": "still here"}
    await alice.send("context.add", session, body)
    assert (await alice.receive_until("context.add"))["payload"]["content"] == "still here"
    await alice.socket.close()


def test_metrics_report_the_expiry_of_the_certificate_in_use(scene: Scene) -> None:
    assert scene.told() == ends(scene.files)

    scene.files.cert.write_bytes(b"hello")
    scene.until(lambda: "tls.refused" in scene.server.log)
    before = scene.told()
    scene.put(scene.authority.issue_certificate("new", until=20 * DAY))
    scene.until(lambda: scene.told() != before)

    assert scene.told() == ends(scene.files)


def test_metrics_report_no_certificate_expiry_without_tls(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        said = httpx.get(f"{server.url}/metrics").text
    assert f"# TYPE {ENDS} gauge" in said
    assert f"\n{ENDS} " not in said


def test_invalid_certificate_is_logged_once_and_the_old_one_stays(scene: Scene) -> None:
    old = number(scene.files)
    scene.files.cert.write_bytes(b"hello")

    scene.until(lambda: "tls.refused" in scene.server.log)
    assert f"{scene.files.cert} is not a certificate" in scene.server.log
    assert "the current certificate stays in use" in scene.server.log
    assert scene.shown() == old

    new = scene.put(scene.authority.issue_certificate("new"))
    scene.until(lambda: scene.shown() == new)
    assert scene.server.log.count("tls.refused") == 1, "however often it was looked at"


def test_sighup_reloads_the_certificate_without_stopping(scene: Scene) -> None:
    new = scene.put(scene.authority.issue_certificate("new"))
    scene.server.send_signal(signal.SIGHUP)

    scene.until(lambda: scene.shown() == new)
    assert scene.server.is_running


def test_sighup_without_tls_does_not_stop_the_server(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        server.send_signal(signal.SIGHUP)
        assert server.issue_token("alice")
        assert server.is_running


def test_server_stops_cleanly_when_its_terminal_closes(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    ours, its = pty.openpty()
    words = serve_command(tmp_path / "home", 0, "token", ready)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(words, stdin=its, stdout=log, stderr=log)
    os.close(its)
    try:
        deadline = time.monotonic() + SERVER_TIMEOUT_S
        while not ready.exists():
            assert time.monotonic() < deadline
            time.sleep(POLL)
        for _ in range(2):  # its shell tells it, and so does the kernel
            process.send_signal(signal.SIGHUP)
        assert process.wait(SERVER_TIMEOUT_S) == 0
    finally:
        os.close(ours)
        process.kill()
        process.wait()
    assert "stop.done" in (tmp_path / "log").read_text()


# What counts as new, without a server


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    return CertificateAuthority(tmp_path / "authority")


async def test_certificate_is_reloaded_only_once_its_files_are_stable(
    authority: CertificateAuthority,
) -> None:
    files, new = authority.issue_certificate(), authority.issue_certificate("new")
    watched = CertificateReloader(*files)
    before = watched.current_context()

    new.cert.replace(files.cert)
    await watched.check_files()
    new.key.replace(files.key)
    await watched.check_files()
    assert watched.current_context() is before, "it changed between two looks"
    await watched.check_files()
    assert watched.current_context() is not before


async def test_requested_reload_does_not_wait_for_stable_files(
    authority: CertificateAuthority,
) -> None:
    files, new = authority.issue_certificate(), authority.issue_certificate("new")
    watched = CertificateReloader(*files)
    before = watched.current_context()
    for old, made in zip(files, new, strict=True):
        made.replace(old)

    await watched.check_files(at_once=True)

    assert watched.current_context() is not before


async def test_unchanged_certificate_is_not_reloaded(authority: CertificateAuthority) -> None:
    watched = CertificateReloader(*authority.issue_certificate())
    before = watched.current_context()

    for at_once in (False, True, False):
        await watched.check_files(at_once=at_once)

    assert watched.current_context() is before


@pytest.mark.parametrize("way", ["missing", "of another", "open to all", "not yet good", "empty"])
async def test_invalid_certificate_is_loaded_once_it_is_fixed(
    authority: CertificateAuthority, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    files, new = authority.issue_certificate(), authority.issue_certificate("new")
    watched = CertificateReloader(*files)
    before = watched.current_context()
    match way:
        case "missing":
            files.key.unlink()
        case "of another":
            shutil.copyfile(new.key, files.key)
        case "open to all":
            new.cert.replace(files.cert)
            new.key.chmod(0o644)
            shutil.copy2(new.key, files.key)
        case "not yet good":
            for old, made in zip(
                files, authority.issue_certificate("later", since=DAY / 2), strict=True
            ):
                made.replace(old)
        case _:
            files.cert.write_bytes(b"")

    for _ in range(3):
        await watched.check_files()
    assert watched.current_context() is before
    assert [each.message for each in caplog.records] == ["tls.refused"]

    for old, made in zip(files, authority.issue_certificate("good"), strict=True):
        made.replace(old)
    for _ in range(2):
        await watched.check_files()
    assert watched.current_context() is not before


async def test_reload_notices_a_changed_symlink(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    one, two, link = (
        authority.issue_certificate("one"),
        authority.issue_certificate("two"),
        tmp_path / "link",
    )
    for files, folder in ((one, tmp_path / "first"), (two, tmp_path / "second")):
        folder.mkdir()
        files.cert.replace(folder / "tls.crt")
        files.key.replace(folder / "tls.key")
    link.symlink_to("first")
    watched = CertificateReloader(link / "tls.crt", link / "tls.key")
    before = watched.current_context()

    (tmp_path / "turned").symlink_to("second")
    (tmp_path / "turned").replace(link)
    for _ in range(2):
        await watched.check_files()

    assert watched.current_context() is not before
