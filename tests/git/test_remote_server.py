"""Hooks in a home without a bridge ask the server of the profile, elsewhere."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accord.git import bridge_client, remote_server
from accord.git.repository import Repository
from tests.helpers.git.hook_timeout import HOOK_TIMEOUT_S
from tests.helpers.git.server_elsewhere import ServerElsewhere, profiles_file, sign_in
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.certificates import CertificateAuthority, trust_authority
from tests.helpers.servers.server_process import ServerProcess, run_server

LIMIT_S = bridge_client.BRIDGE_TIMEOUT_S + 0.5
ATTEMPTS = 8  # a busy machine is late by chance, but not every time


@pytest.fixture
def elsewhere(server: ServerProcess) -> ServerElsewhere:
    return ServerElsewhere(server)


@contextmanager
def listening(answer: bytes = b"", pause_s: float = 0.0) -> Iterator[tuple[str, list[bytes]]]:
    """A program that accepts connections: its address, and what it was sent."""
    heard: list[bytes] = []
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                heard.append(connection.recv(65536))
                try:
                    while not ended.wait(pause_s or 5.0):
                        connection.sendall(answer)
                except OSError:
                    continue

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def assert_recorded(work: WorkTree, elsewhere: ServerElsewhere, text: str) -> None:
    """The last commit names the session, and its note has what was said."""
    assert work.trailers()["PVP-Session"] == elsewhere.session
    assert "human:alice" in work.trailers()["Decision-By"].split(",")
    assert text in work.note()
    assert len(work.decision_ids()) == 1


def test_a_commit_gets_trailers_and_note_from_the_server_of_the_environment(
    work: WorkTree, elsewhere: ServerElsewhere
) -> None:
    alice = work.with_environment(**elsewhere.environment)
    elsewhere.bind(alice)
    elsewhere.prompt("Add a login")

    alice.commit("feat: add a login")

    assert_recorded(alice, elsewhere, "Add a login")
    assert elsewhere.session in alice.accord("git", "status").out


def test_a_commit_gets_trailers_and_note_from_the_server_of_the_profile(
    work: WorkTree, elsewhere: ServerElsewhere
) -> None:
    sign_in(work, elsewhere.server)
    elsewhere.bind(work)
    elsewhere.prompt("Add a login")
    work.commit("feat: add a login")
    assert_recorded(work, elsewhere, "Add a login")

    file = profiles_file(work)
    before = file.read_text()
    expired = re.sub(r"expires_at = \d+", "expires_at = 1", before)
    file.write_text(re.sub(r'token = "[^"]*"', 'token = "ended"', expired))
    elsewhere.prompt("Add a logout")
    work.commit("feat: add a logout")

    assert_recorded(work, elsewhere, "Add a logout")
    assert "expires_at = 1\n" not in file.read_text()


def test_a_device_that_was_revoked_is_named_as_the_reason(
    work: WorkTree, elsewhere: ServerElsewhere
) -> None:
    sign_in(work, elsewhere.server)
    elsewhere.bind(work)
    file = profiles_file(work)
    device = re.search(r'(?m)^device = "([^"]*)"', file.read_text())
    assert device
    elsewhere.server.admin_request("DELETE", f"/admin/devices/{device[1]}")
    file.write_text(re.sub(r"expires_at = \d+", "expires_at = 1", file.read_text()))
    elsewhere.prompt("Add a login")
    work.write("login.txt", "login\n")

    ran = work.run("git", "commit", "-q", "-m", "feat: add a login")

    assert ran.code == 0
    assert "This device is not signed in, or was revoked; log in again" in ran.err
    assert work.trailers() == {}


def test_the_settings_file_selects_the_server(work: WorkTree, elsewhere: ServerElsewhere) -> None:
    sign_in(work, elsewhere.server)
    elsewhere.bind(work)
    file = work.path / ".accord.toml"
    with listening() as (other, heard):
        current = profiles_file(work)
        current.write_text(re.sub(r'(?m)^current = ".*"', 'current = "gone"', current.read_text()))
        file.write_text(f'url = "{elsewhere.server.url}"\n')
        elsewhere.prompt("Add a login")
        work.commit("feat: add a login")
        assert_recorded(work, elsewhere, "Add a login")

        file.write_text(f'url = "{other}"\n')
        elsewhere.prompt("Add a logout")
        work.commit("feat: add a logout")

    assert work.trailers() == {}
    assert heard == []


def test_a_tracked_settings_file_selects_no_server(
    work: WorkTree, elsewhere: ServerElsewhere
) -> None:
    with listening() as (other, heard):
        work.write(".accord.toml", f'url = "{other}"\n')
        work.with_environment(ACCORD_TOKEN=elsewhere.token).commit("feat: add a login")

    assert heard == []


@pytest.mark.parametrize(
    ("url", "kept"),
    [("http://127.0.0.1:7420", True), ("https://evil.example.org", False), ("nonsense", False)],
)
def test_an_address_from_a_file_gets_the_token_only_on_this_machine(
    work: WorkTree, monkeypatch: pytest.MonkeyPatch, url: str, *, kept: bool
) -> None:
    (work.path / ".accord.toml").write_text(f'url = "{url}"\nsession = "ses_1"\n')
    monkeypatch.chdir(work.path)
    env = {"ACCORD_TOKEN": "x.y.z"}

    bridge_client.apply_settings_file(Repository(), env)

    expected = {"ACCORD_URL": url, "ACCORD_SESSION": "ses_1"}
    assert env == expected | ({"ACCORD_TOKEN": "x.y.z"} if kept else {})


def test_an_address_without_a_profile_gets_no_token(work: WorkTree, server: ServerProcess) -> None:
    sign_in(work, server)
    with listening() as (other, heard):
        work.with_environment(ACCORD_URL=other).commit("feat: add a login")

    assert heard == []


@pytest.mark.parametrize("url", ["http://192.0.2.1:7420", "ws://example.org", "ftp://127.0.0.1"])
def test_a_token_is_never_sent_in_the_clear_to_another_host(url: str, tmp_path: Path) -> None:
    env = {"ACCORD_URL": url, "ACCORD_TOKEN": "x.y.z", "HOME": str(tmp_path)}
    env |= {"ACCORD_HOME": str(tmp_path)}
    began = time.monotonic()

    answer = bridge_client.request("status", env, {"repo": "x"})

    assert answer is None
    if not url.startswith("ftp"):
        assert remote_server.find_server(env, began) is None


@pytest.mark.parametrize("pause_s", [0.0, 0.1], ids=["silent", "one byte at a time"])
def test_a_server_that_does_not_answer_costs_at_most_a_second(
    tmp_path: Path, pause_s: float
) -> None:
    with listening(b"x", pause_s) as (url, heard):
        env = {"ACCORD_URL": url, "ACCORD_TOKEN": "x.y.z", "HOME": str(tmp_path)}
        env |= {"ACCORD_HOME": str(tmp_path)}
        took: list[float] = []
        while len(took) < ATTEMPTS and (not took or took[-1] > LIMIT_S):
            began = time.monotonic()
            assert bridge_client.request("status", env, {"repo": "x"}) is None
            took.append(time.monotonic() - began)

    assert heard
    assert min(took) < LIMIT_S, took


def test_a_server_with_tls_is_asked_when_its_authority_is_trusted(
    work: WorkTree, tmp_path: Path
) -> None:
    authority = CertificateAuthority(tmp_path / "authority")
    flags = authority.issue_certificate().server_flags
    with trust_authority(authority), run_server(tmp_path / "tls", "token", *flags) as server:
        elsewhere = ServerElsewhere(server)
        stranger = work.with_environment(**elsewhere.environment)
        alice = stranger.with_environment(SSL_CERT_FILE=str(authority.file))
        elsewhere.bind(alice)
        stranger.commit("feat: add a page", "page.txt")
        assert stranger.trailers() == {}
        elsewhere.prompt("Add a login")

        alice.commit("feat: add a login")

    assert server.url.startswith("https://")
    assert_recorded(alice, elsewhere, "Add a login")


def test_a_server_that_is_named_is_asked_instead_of_one_s_own_on_this_machine(
    work: WorkTree, server: ServerProcess, tmp_path: Path
) -> None:
    """Two servers of one person: one here, and the team's, which the environment names."""
    authority = CertificateAuthority(tmp_path / "authority")
    flags = authority.issue_certificate().server_flags
    with trust_authority(authority), run_server(tmp_path / "tls", "token", *flags) as team:
        elsewhere = ServerElsewhere(team)
        own = {"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path)}
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "accord").symlink_to(server.home)
        assert bridge_client.request("status", own, {"repo": "x"}, HOOK_TIMEOUT_S) is not None
        trust = {"SSL_CERT_FILE": str(authority.file), "ACCORD_TIMEOUT": "60"}
        named = {**elsewhere.environment, **trust, "ACCORD_HOME": ""}
        alice = work.with_environment(**own, **named)
        elsewhere.bind(alice)
        elsewhere.prompt("Add a login")
        shown = alice.accord("git", "status")

        alice.commit("feat: add a login")

    assert team.url in shown.out
    assert_recorded(alice, elsewhere, "Add a login")
