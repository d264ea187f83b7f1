"""Disks without room, and disks that may only be read: told in a sentence, and nothing is lost."""

import resource
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest

from accord.client import ServerRefused, Session
from accord.core.room.prompts import PromptSubmit
from tests.chaos.ledger import Ledger
from tests.chaos.speakers import people
from tests.helpers.disk import a_disk, fill, seal
from tests.helpers.ear import Ear
from tests.helpers.server import ServerProcess, a_server, command

LARGE = "x" * 300_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Sixteen megabytes, where the machine lets us make such a disk."""
    with a_disk(tmp_path / "disk", "16m") as folder:
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
        async with Ear(await who["bob"].join(session.id)) as ear:
            dry()
            taken, no = await until_refused(session)
            assert no.code == "INTERNAL_ERROR"
            assert no.recoverable
            assert "It could not be stored, so nothing was changed" in no.message
            assert str(server.home) not in no.message
            assert healthy(server)
            await until_refused(other)
            wet()
            last = await session.prompt("again", "claude")
            assert await other.prompt("here too", "claude")
            await ear.until(lambda each: each.id == last)
            ear.check_once_in_order()
            heard = [each.id for each in ear.kept if isinstance(each.body, PromptSubmit)]
            assert heard == [*taken, last]
    server.stop()
    ledger = Ledger(server.home, tmp_path / "copy")
    ledger.read(whole=True)
    prompts = [said.id for said in ledger.of(session.id).said if said.kind == "PromptSubmit"]
    assert prompts == [*taken, last]


async def test_a_server_whose_files_cannot_grow_says_so_and_goes_on_later(tmp_path: Path) -> None:
    with a_server(tmp_path / "server") as server:
        await runs_dry(
            server,
            tmp_path,
            lambda: limit(server, 3 << 20),
            lambda: limit(server, resource.RLIM_INFINITY),
        )


async def test_a_server_on_a_full_disk_says_so_and_goes_on_later(
    disk: Path, tmp_path: Path
) -> None:
    with a_server(disk) as server:
        await runs_dry(
            server,
            tmp_path,
            lambda: fill(disk / "filler"),
            (disk / "filler").unlink,
        )


# Starting


def started(home: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A server that should not start."""
    words = command(home, 0, "token", folder / "ready.json")
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
def test_a_server_leaves_a_file_that_it_cannot_use_as_it_is(
    harm: Callable[[Path], None], code: int, says: str, tmp_path: Path
) -> None:
    with a_server(tmp_path) as server:
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
def test_a_server_on_a_disk_that_may_only_be_read_says_so(
    disk: Path, tmp_path: Path, *, fresh: bool
) -> None:
    if not fresh:
        with a_server(disk) as server:
            server.stop()
    seal(disk)

    said = started(disk / "home", tmp_path)

    assert said.returncode in {1, 3, 6}
    assert str(disk / "home") in said.stderr
    assert "read" in said.stderr.lower()
    assert "Traceback" not in said.stderr


def test_a_server_that_starts_on_a_full_disk_says_so(disk: Path, tmp_path: Path) -> None:
    (disk / "home").mkdir()
    fill(disk / "filler")

    said = started(disk / "home", tmp_path)

    assert said.returncode in {1, 6}
    assert "no room" in said.stderr.lower() or "no space" in said.stderr.lower()
    assert "Traceback" not in said.stderr
    (disk / "filler").unlink()
    with a_server(disk) as server:
        server.stop()


def test_two_servers_share_no_directory_and_a_dead_one_holds_none(tmp_path: Path) -> None:
    with a_server(tmp_path) as server:
        second = started(server.home, tmp_path)
        assert second.returncode == 6
        assert server.url in second.stderr
        server.kill()
        server.start()
