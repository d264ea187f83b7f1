"""`accord serve`: how it begins, what it says to whom, and how it ends."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from accord.cli.data_dir_lock import GITIGNORE_FILE, LOCK_FILE, lock_data_dir
from accord.cli.serve import command
from accord.client import Client
from accord.core.kernel.refusal import Reason, Refused
from tests.helpers.clients.cli import clean_environment, run_accord

PATIENCE = 60.0


class Serving:
    """A server started by its command."""

    def __init__(self, folder: Path, *flags: str, **streams: Any) -> None:
        self.ready_file = folder / "ready.json"
        self.home = folder / "data"
        words = [*flags, "--data-dir", str(self.home), "--ready-file", str(self.ready_file)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "accord", "serve", "--port", "0", *words],
            stdin=subprocess.DEVNULL,
            env=clean_environment(),
            **streams,
        )

    def wait(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while not self.ready_file.exists():
            assert self.process.poll() is None, "it ended"
            assert time.monotonic() < deadline, "it is not ready"
            select.select([], [], [], 0.01)
        ready: dict[str, Any] = json.loads(self.ready_file.read_text())
        return ready

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[Serving]:
    made = Serving(folder, *flags, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.communicate()


def port_of(ready: dict[str, Any]) -> str:
    return str(ready["url"]).rpartition(":")[2]


def test_the_ready_file_tells_its_owner_alone_how_to_come_in(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        ready = server.wait()

        assert ready["pid"] == server.process.pid
        assert ready["ws_url"] == ready["url"].replace("http", "ws") + "/ws"
        assert ready["admin_token"]
        assert server.ready_file.stat().st_mode & 0o777 == 0o600
        assert server.home.stat().st_mode & 0o777 == 0o700


def test_a_pipe_gets_the_address_and_never_the_token(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        ready = server.wait()
        assert server.end(signal.SIGTERM) == 0
        out, err = server.process.communicate()

    assert out.decode() == f"{ready['url']}\n"
    assert ready["admin_token"].encode() not in err


def test_a_terminal_gets_the_way_in(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    server = Serving(tmp_path, stdout=theirs, stderr=theirs)
    os.close(theirs)
    with closing(os.fdopen(ours, "rb", buffering=0)) as screen:
        ready = server.wait()
        server.end(signal.SIGINT)
        shown = read_all(screen).replace("\r\n", "\n")

    url, token = ready["url"], ready["admin_token"]
    assert f"is listening on {url}\n" in shown
    in_shell = re.search(rf"^accord login '{url}#code=([a-z2-7]{{26}})'$", shown, re.MULTILINE)
    in_browser = re.search(rf"^{url}#code=([a-z2-7]{{26}})$", shown, re.MULTILINE)
    assert in_shell
    assert in_browser
    assert in_shell[1] != in_browser[1], "a code is good once"
    assert token not in shown
    assert str(server.home) in shown
    assert "Ctrl-C stops it" in shown
    assert server.process.returncode == 0


def read_all(screen: Any) -> str:
    shown = b""
    while True:
        try:
            piece = screen.read(4096)
        except OSError:  # the other end is gone
            return shown.decode()
        if not piece:
            return shown.decode()
        shown += piece


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_it_stops_cleanly_while_people_are_connected(
    how: signal.Signals, tmp_path: Path
) -> None:
    with serving(tmp_path) as server:
        ready = server.wait()
        async with Client(ready["url"], token=ready["admin_token"]) as client:
            await client.create(name="Still here")

            assert server.end(how) == 0

        _, err = server.process.communicate()
        assert b"Traceback" not in err, err.decode()


def test_a_second_server_is_told_who_was_first(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        ready = server.wait()

        second = run_accord("serve", "--port", "0", "--data-dir", str(server.home))

    assert second.code == 6
    assert ready["url"] in second.err
    assert "another --data-dir" in second.err


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        port = port_of(server.wait())

        second = run_accord("serve", "--port", port, "--data-dir", str(tmp_path / "other"))

    assert second.code == 6
    assert f"127.0.0.1:{port}" in second.err


@pytest.mark.parametrize("host", ["nohost.invalid", "192.0.2.1"])
def test_an_address_of_no_machine_or_another_is_bad_input(host: str, tmp_path: Path) -> None:
    ran = run_accord("serve", "--host", host, "--data-dir", str(tmp_path / "d"))

    assert ran.code == 2
    assert "try --host 127.0.0.1" in ran.err


def test_a_file_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "data"):
        ran = run_accord("serve", "--port", "0", "--data-dir", str(place))

        assert ran.code == 2
        assert "use another --data-dir" in ran.err


def test_without_a_terminal_it_says_how_to_sign_in(tmp_path: Path) -> None:
    home = tmp_path / "my data"
    words = ["serve", "--port", "0", "--data-dir", str(home)]
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        [sys.executable, "-m", "accord", *words], stdout=pipe, stderr=pipe, env=clean_environment()
    )
    assert server.stdout is not None
    url = server.stdout.readline().decode().strip()
    server.terminate()
    _, err = server.communicate(timeout=PATIENCE)

    assert url.startswith("http://127.0.0.1:")
    first, *_ = (json.loads(line) for line in err.decode().splitlines())
    assert (first["event"], first["url"], first["data"]) == ("serve.ready", url, str(home))
    assert f"accord invite --role admin --name YOU --data-dir '{home}'" in first["detail"]
    assert "code=" not in err.decode()


def test_what_is_seldom_meant_is_warned_of_and_starts_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "data" / "keys").mkdir(mode=0o700, parents=True)
    (tmp_path / "data").chmod(0o700)
    assert run_accord("keys", "rotate", "--data-dir", str(tmp_path / "data")).code == 0
    (tmp_path / "data" / "accord.db").unlink()
    words = ["serve", "--port", "0", "--data-dir", str(tmp_path / "data")]
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        [sys.executable, "-m", "accord", *words],
        stdout=pipe,
        stderr=pipe,
        env=clean_environment(ACCORD_PROT="1"),
    )
    assert server.stdout is not None
    assert server.stdout.readline()
    server.terminate()
    _, err = server.communicate(timeout=PATIENCE)

    told = [json.loads(line) for line in err.decode().splitlines()]
    assert [each["event"] for each in told[:3]] == ["settings.slip", "store.new", "serve.ready"]
    assert told[0]["detail"] == "ACCORD_PROT is not a setting; Did you mean ACCORD_PORT?"
    assert "restore" in told[1]["detail"]


def test_after_a_kill_the_data_is_free_again(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.wait()
        server.end(signal.SIGKILL)
        server.ready_file.unlink()

        with serving(tmp_path) as again:
            assert again.wait()["pid"] == again.process.pid


def test_a_data_directory_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with lock_data_dir(tmp_path / "home") as lock:
        lock.write_note("http://here")
        with pytest.raises(Refused, match="http://here") as no, lock_data_dir(tmp_path / "home"):
            pass
        assert no.value.reason is Reason.UNAVAILABLE
    with lock_data_dir(tmp_path / "home"):
        assert "starting" in (tmp_path / "home" / LOCK_FILE).read_text()


def test_a_data_directory_of_our_own_stays_out_of_a_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    with lock_data_dir(tmp_path / "ours"), lock_data_dir(theirs):
        pass
    (tmp_path / "ours" / "secret.pem").touch()

    words = ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"]
    seen = subprocess.run(words, check=True, capture_output=True, text=True).stdout

    assert seen == f"?? theirs/{LOCK_FILE}\n"
    assert not (theirs / GITIGNORE_FILE).exists()


def test_trust_ends_at_the_border_of_this_machine(tmp_path: Path) -> None:
    ran = run_accord(
        "serve", "--auth", "open", "--host", "192.0.2.1", "--data-dir", str(tmp_path / "d")
    )

    assert ran.code == 3
    assert "--auth token" in ran.err


@pytest.mark.parametrize(
    "flags",
    [
        ("--port", "http"),
        ("--port", "65536"),
        ("--rate-limit", "0"),
        ("--rate-limit", "fast"),
        ("--bridge-port", "on"),
        ("--auth", "none"),
        ("--durability", "some"),
    ],
)
def test_flags_that_make_no_sense_are_bad_input(flags: tuple[str, str], tmp_path: Path) -> None:
    ran = run_accord("serve", *flags, "--data-dir", str(tmp_path / "d"))

    assert ran.code == 2
    assert not (tmp_path / "d").exists()


def test_a_foreign_file_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "accord.db").write_text("my diary")

    ran = run_accord("serve", "--port", "0", "--data-dir", str(home))

    assert ran.code == 5
    assert (home / "accord.db").read_text() == "my diary"


def test_an_unknown_store_is_refused(tmp_path: Path) -> None:
    ran = run_accord(
        *("serve", "--port", "0", "--store", "punchcards:box", "--data-dir", str(tmp_path / "d"))
    )

    assert ran.code == 2
    assert "sqlite:" in ran.err


def test_a_server_is_set_up_by_file_environment_and_flag(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "accord.toml").write_text('auth = "open"\nport = 1\n')
    with serving(tmp_path) as server:
        ready = server.wait()

        with urlopen(f"{ready['url']}/sessions?as=alice", timeout=PATIENCE) as said:  # noqa: S310
            assert said.status == 200


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("prot = 8000", "there is no setting 'prot'; did you mean port?"),
        ('durability = "some"', "durability: 'some' is not valid; write full or normal"),
    ],
)
def test_a_file_with_a_slip_starts_nothing(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "team.toml"
    file.write_text(text)

    ran = run_accord("serve", "--data-dir", str(tmp_path / "d"), "--config", str(file))

    assert (ran.code, ran.err) == (2, f"accord: {file}: {says}\n")
    assert not (tmp_path / "d").exists()


def test_a_limit_that_there_is_not_is_bad_input(tmp_path: Path) -> None:
    ran = run_accord("serve", "--limit", "gate=5", "--data-dir", str(tmp_path / "d"))

    assert ran.code == 2
    assert "did you mean gates?" in ran.err


@pytest.mark.parametrize(
    ("host", "tls", "is_exposed"),
    [
        ("127.0.0.1", False, False),
        ("::1", False, False),
        ("localhost", False, False),
        ("0.0.0.0", False, True),  # noqa: S104 - the address that the warning is about
        ("::", False, True),
        ("192.168.1.7", False, True),
        ("192.168.1.7", True, False),
    ],
)
def test_serving_other_machines_without_tls_is_said_loudly(
    host: str, tls: bool, is_exposed: bool
) -> None:
    said = command.exposure_warning(host, tls=tls)

    assert bool(said) is is_exposed
    assert not said or "--tls-cert" in said


@pytest.mark.parametrize("flags", [("--host", "0.0.0.0"), ()], ids=["exposed", "loopback"])  # noqa: S104 - the address that the warning is about
def test_a_server_without_tls_warns_on_the_terminal_and_in_its_log(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    log = tmp_path / "log"
    ours, theirs = pty.openpty()
    with log.open("wb") as errors:
        server = Serving(tmp_path, *flags, stdout=theirs, stderr=errors)
    os.close(theirs)
    with closing(os.fdopen(ours, "rb", buffering=0)) as screen:
        server.wait()
        server.end(signal.SIGINT)
        shown = read_all(screen)

    warning = "Not encrypted. Other machines can reach 0.0.0.0"
    logged = [line for line in log.read_text().splitlines() if "serve.exposed" in line]
    assert (warning in shown) is bool(flags)
    assert len(logged) == bool(flags)
    assert all("warn" in line.lower() and "--tls-cert" in line for line in logged)
    assert not flags or shown.index(warning) < shown.index("is listening on")
