"""Full and read-only disks: the server reports them clearly and loses nothing."""

import resource
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest

from accord.client import ServerRefused, Session
from accord.core.room.conversation.prompts import PromptSubmit
from tests.chaos.load_clients import people
from tests.chaos.stored_log import StoredLog
from tests.helpers.clients.listener import RecordingListener
from tests.helpers.servers.server_process import ServerProcess, run_server, serve_command
from tests.helpers.stores.small_disk import fill_disk, mount_small_disk, remount_read_only

LARGE = "x" * 300_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Sixteen megabytes, where the machine lets us make such a disk."""
    with mount_small_disk(tmp_path / "disk", "16m") as folder:
        yield folder


def limit(server: ServerProcess, size: int) -> None:
    """No file of the server may grow beyond this."""
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, hard))


def healthy(server: ServerProcess) -> bool:
    """Whether it says that it is alive."""
    with urlopen(f"{server.url}/healthz", timeout=60) as answer:  # noqa: S310 - our own
        return bool(answer.status == 200)


async def until_refused(session: Session) -> tuple[list[str], ServerRefused]:
    """Say large things until there is no room; the ids of those that were taken."""
    taken: list[str] = []
    for _ in range(1000):
        try:
            taken.append(await session.prompt(LARGE, "claude"))
        except ServerRefused as no:
            return taken, no
    pytest.fail("there is always room")


async def runs_dry(
    server: ServerProcess, tmp_path: Path, dry: Callable[[], object], wet: Callable[[], None]
) -> None:
    """What happens when there is no room, and once there is room again, without a restart."""
    async with people(server) as who:
        session = await who["alice"].create(listen=False)
        await who["claude"].join(session.id, listen=False)
        other = await who["bob"].create(listen=False)
        await who["claude"].join(other.id, listen=False)
        async with RecordingListener(await who["bob"].join(session.id)) as ear:
            dry()
            taken, no = await until_refused(session)
            assert no.code == "INTERNAL_ERROR"
            assert no.recoverable
            assert "The message could not be stored, and nothing was changed" in no.message
            assert str(server.home) not in no.message
            assert healthy(server)
            await until_refused(other)
            wet()
            last = await session.prompt("again", "claude")
            assert await other.prompt("here too", "claude")
            await ear.wait_for(lambda each: each.id == last)
            ear.check_once_in_order()
            heard = [each.id for each in ear.sequenced if isinstance(each.body, PromptSubmit)]
            assert heard == [*taken, last]
    server.stop()
    ledger = StoredLog(server.home, tmp_path / "copy")
    ledger.read(whole=True)
    prompts = [said.id for said in ledger.of(session.id).said if said.kind == "PromptSubmit"]
    assert prompts == [*taken, last]


async def test_server_reports_a_file_size_limit_and_recovers(tmp_path: Path) -> None:
    with run_server(tmp_path / "server") as server:
        await runs_dry(
            server,
            tmp_path,
            lambda: limit(server, 3 << 20),
            lambda: limit(server, resource.RLIM_INFINITY),
        )


async def test_server_reports_a_full_disk_and_recovers(disk: Path, tmp_path: Path) -> None:
    with run_server(disk) as server:
        await runs_dry(
            server,
            tmp_path,
            lambda: fill_disk(disk / "filler"),
            (disk / "filler").unlink,
        )


# Starting


def started(home: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A server that should not start."""
    words = serve_command(home, 0, "token", folder / "ready.json")
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def spoil_header(file: Path) -> None:
    with file.open("r+b") as data:
        data.seek(100)
        data.write(b"\xff" * 300)


def cut_short(file: Path) -> None:
    with file.open("r+b") as data:
        data.truncate(file.stat().st_size // 2)


def replace(file: Path) -> None:
    file.write_bytes(b"Dear diary, " * 1000)


def make_later(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("harm", "code", "says"),
    [
        (spoil_header, 5, "damaged"),
        (cut_short, 5, "damaged"),
        (replace, 5, "not a log of Accord"),
        (make_later, 5, "later Accord"),
    ],
)
def test_server_does_not_change_an_unusable_file(
    harm: Callable[[Path], None], code: int, says: str, tmp_path: Path
) -> None:
    with run_server(tmp_path) as server:
        server.stop()
    file = server.home / "accord.db"
    harm(file)
    before = file.read_bytes()

    said = started(server.home, tmp_path)

    assert said.returncode == code
    assert said.stderr.startswith("accord: ")
    assert says in said.stderr
    assert "Traceback" not in said.stderr
    assert file.read_bytes() == before


@pytest.mark.parametrize("fresh", [True, False])
def test_server_reports_a_read_only_disk(disk: Path, tmp_path: Path, *, fresh: bool) -> None:
    if not fresh:
        with run_server(disk) as server:
            server.stop()
    remount_read_only(disk)

    said = started(disk / "home", tmp_path)

    assert said.returncode in {1, 3, 6}
    assert str(disk / "home") in said.stderr
    assert "read" in said.stderr.lower()
    assert "Traceback" not in said.stderr


def test_server_start_on_a_full_disk_reports_it(disk: Path, tmp_path: Path) -> None:
    (disk / "home").mkdir()
    fill_disk(disk / "filler")

    said = started(disk / "home", tmp_path)

    assert said.returncode in {1, 6}
    assert "no disk space" in said.stderr.lower() or "no space" in said.stderr.lower()
    assert "Traceback" not in said.stderr
    (disk / "filler").unlink()
    with run_server(disk) as server:
        server.stop()


def test_second_server_on_a_directory_is_refused_until_the_first_is_dead(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        second = started(server.home, tmp_path)
        assert second.returncode == 6
        assert server.url in second.stderr
        server.kill()
        server.start()
