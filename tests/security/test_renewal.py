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

from accord.config.renewal import Renewal
from tests.helpers.certificates import DAY, Authority, Files, trusting
from tests.helpers.server import PATIENCE, ServerProcess, a_server, command
from tests.helpers.wire import Wire
from tests.security.raw import plug

POLL = 0.05
ENDS = "accord_tls_certificate_expiry_timestamp_seconds"


class Scene:
    """A server that speaks TLS, and whoever signs its certificates."""

    def __init__(self, authority: Authority, files: Files, server: ServerProcess) -> None:
        self.authority, self.files, self.server = authority, files, server

    def put(self, new: Files) -> int:
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
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, self.server.log
            time.sleep(POLL)

    def told(self) -> float:
        """When the one in use ends, as operators are told."""
        said = httpx.get(f"{self.server.url}/metrics", verify=ssl.create_default_context()).text
        (found,) = re.findall(rf"^{ENDS} (\S+)$", said, re.MULTILINE)
        return float(found)


def ends(files: Files) -> float:
    """When a certificate does."""
    return load_pem_x509_certificate(files.cert.read_bytes()).not_valid_after_utc.timestamp()


def number(files: Files) -> int:
    """What a certificate is known by."""
    return load_pem_x509_certificate(files.cert.read_bytes()).serial_number


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    authority = Authority(tmp_path / "authority")
    files = authority.signed()
    with trusting(authority), a_server(tmp_path, "token", *files.flags) as server:
        yield Scene(authority, files, server)


async def test_a_renewed_certificate_is_shown_and_nobody_is_disconnected(scene: Scene) -> None:
    server, old = scene.server, scene.shown()
    alice = await Wire.open(
        server.ws_url, "alice", server.issue("alice", roles=["admin", "driver"])
    )
    session = await alice.create()

    new = scene.put(scene.authority.signed("new"))
    scene.until(lambda: scene.shown() == new)

    assert new != old
    assert "tls.renewed" in server.log
    body = {"key": "k", "content_type": "text", "content": "still here"}
    await alice.say("context.add", session, body)
    assert (await alice.hear_until("context.add"))["payload"]["content"] == "still here"
    await alice.socket.close()


def test_operators_are_told_when_the_one_in_use_ends(scene: Scene) -> None:
    assert scene.told() == ends(scene.files)

    scene.files.cert.write_bytes(b"hello")
    scene.until(lambda: "tls.refused" in scene.server.log)
    before = scene.told()
    scene.put(scene.authority.signed("new", until=20 * DAY))
    scene.until(lambda: scene.told() != before)

    assert scene.told() == ends(scene.files)


def test_without_tls_no_end_is_told(tmp_path: Path) -> None:
    with a_server(tmp_path) as server:
        said = httpx.get(f"{server.url}/metrics").text
    assert f"# TYPE {ENDS} gauge" in said
    assert f"\n{ENDS} " not in said


def test_a_broken_one_is_refused_once_and_the_old_one_stays(scene: Scene) -> None:
    old = number(scene.files)
    scene.files.cert.write_bytes(b"hello")

    scene.until(lambda: "tls.refused" in scene.server.log)
    assert f"{scene.files.cert} is no certificate" in scene.server.log
    assert "the one in use stays" in scene.server.log
    assert scene.shown() == old

    new = scene.put(scene.authority.signed("new"))
    scene.until(lambda: scene.shown() == new)
    assert scene.server.log.count("tls.refused") == 1, "however often it was looked at"


def test_a_hang_up_has_it_looked_at_and_ends_nothing(scene: Scene) -> None:
    new = scene.put(scene.authority.signed("new"))
    scene.server.send(signal.SIGHUP)

    scene.until(lambda: scene.shown() == new)
    assert scene.server.running


def test_without_tls_a_hang_up_ends_nothing_either(tmp_path: Path) -> None:
    with a_server(tmp_path) as server:
        server.send(signal.SIGHUP)
        assert server.issue("alice")
        assert server.running


def test_a_server_whose_terminal_goes_ends_well(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    ours, its = pty.openpty()
    words = command(tmp_path / "home", 0, "token", ready)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(words, stdin=its, stdout=log, stderr=log)
    os.close(its)
    try:
        deadline = time.monotonic() + PATIENCE
        while not ready.exists():
            assert time.monotonic() < deadline
            time.sleep(POLL)
        for _ in range(2):  # its shell tells it, and so does the kernel
            process.send_signal(signal.SIGHUP)
        assert process.wait(PATIENCE) == 0
    finally:
        os.close(ours)
        process.kill()
        process.wait()
    assert "stop.done" in (tmp_path / "log").read_text()


# What counts as new, without a server


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


async def test_what_is_being_written_is_left_alone_for_a_moment(authority: Authority) -> None:
    files, new = authority.signed(), authority.signed("new")
    watched = Renewal(*files)
    before = watched.shown()

    new.cert.replace(files.cert)
    await watched.look()
    new.key.replace(files.key)
    await watched.look()
    assert watched.shown() is before, "it changed between two looks"
    await watched.look()
    assert watched.shown() is not before


async def test_whoever_asks_does_not_wait_for_that(authority: Authority) -> None:
    files, new = authority.signed(), authority.signed("new")
    watched = Renewal(*files)
    before = watched.shown()
    for old, made in zip(files, new, strict=True):
        made.replace(old)

    await watched.look(at_once=True)

    assert watched.shown() is not before


async def test_what_is_the_same_is_not_read_again(authority: Authority) -> None:
    watched = Renewal(*authority.signed())
    before = watched.shown()

    for at_once in (False, True, False):
        await watched.look(at_once=at_once)

    assert watched.shown() is before


@pytest.mark.parametrize("way", ["missing", "of another", "open to all", "not yet good", "empty"])
async def test_a_pair_that_will_not_do_is_taken_once_it_is_mended(
    authority: Authority, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    files, new = authority.signed(), authority.signed("new")
    watched = Renewal(*files)
    before = watched.shown()
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
            for old, made in zip(files, authority.signed("later", since=DAY / 2), strict=True):
                made.replace(old)
        case _:
            files.cert.write_bytes(b"")

    for _ in range(3):
        await watched.look()
    assert watched.shown() is before
    assert [each.message for each in caplog.records] == ["tls.refused"]

    for old, made in zip(files, authority.signed("good"), strict=True):
        made.replace(old)
    for _ in range(2):
        await watched.look()
    assert watched.shown() is not before


async def test_a_link_that_is_turned_elsewhere_is_noticed(
    authority: Authority, tmp_path: Path
) -> None:
    one, two, link = authority.signed("one"), authority.signed("two"), tmp_path / "link"
    for files, folder in ((one, tmp_path / "first"), (two, tmp_path / "second")):
        folder.mkdir()
        files.cert.replace(folder / "tls.crt")
        files.key.replace(folder / "tls.key")
    link.symlink_to("first")
    watched = Renewal(link / "tls.crt", link / "tls.key")
    before = watched.shown()

    (tmp_path / "turned").symlink_to("second")
    (tmp_path / "turned").replace(link)
    for _ in range(2):
        await watched.look()

    assert watched.shown() is not before
