"""Starting what is measured, and looking into what it stored."""

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from bench.machine import cores, cpu_s, rss_kib
from bench.serve import READY

START_SECONDS = 60
STOP_SECONDS = 30
DATABASE = "accord.db"
ROOT = Path(__file__).resolve().parent.parent


class Running(NamedTuple):
    """A server process."""

    url: str
    pid: int
    home: Path
    ours: bool = True  # else what it keeps is its own affair

    @property
    def cpu_s(self) -> float:
        """CPU seconds so far."""
        return cpu_s(self.pid)

    @property
    def rss_kib(self) -> int:
        """Resident memory."""
        return rss_kib(self.pid)


def on_core(core: int | None) -> list[str]:
    """The option that pins a process of ours."""
    return [] if core is None else ["--core", str(core)]


def stop(process: "subprocess.Popen[str]") -> None:
    """Ask, wait, insist."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


@contextmanager
def temporary_directory(where: str | None) -> Iterator[Path]:
    """A directory for one measurement."""
    path = Path(tempfile.mkdtemp(prefix="accord-bench-", dir=where))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def accord(home: Path) -> Iterator[Running]:
    """Accord on this home, durable as by default, alone on its core."""
    home.mkdir(parents=True, exist_ok=True)
    ready = home / READY
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "bench.serve", str(home), *on_core(cores()[0])]
    with (home / "server.log").open("a") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, text=True, cwd=ROOT)
        try:
            told = json.loads(_when_written(ready, process))
            yield Running(told["ws_url"], process.pid, home)
        finally:
            stop(process)


@contextmanager
def running_accord(where: str | None) -> Iterator[Running]:
    """Accord on a home that is gone afterwards."""
    with temporary_directory(where) as home, accord(home) as server:
        yield server


def _when_written(ready: Path, process: "subprocess.Popen[str]") -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if ready.exists():
            return ready.read_text()
        time.sleep(0.01)
    log = (ready.parent / "server.log").read_text()
    raise RuntimeError(f"the server did not start: {log[-2000:]}")


@contextmanager
def probe(home: Path) -> Iterator[Running]:
    """The probe: FULL, no window, alone on the same core."""
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "bench.probe", "--db", str(home / "probe.db")]
    process = subprocess.Popen(
        [*command, *on_core(cores()[0])], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        port = _port(process.stdout)
        yield Running(f"ws://127.0.0.1:{port}", process.pid, home)
    finally:
        stop(process)


@contextmanager
def running_small_server(kind: str, home: Path, rows: int = 0) -> Iterator[Running]:
    """One of the servers of `small_servers`, on the same core."""
    words = [sys.executable, "-m", "bench.small_servers", kind, str(home / f"{kind}.db")]
    process = subprocess.Popen(
        [*words, "--rows", str(rows), *on_core(cores()[0])],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield Running(f"http://127.0.0.1:{_port(process.stdout)}", process.pid, home)
    finally:
        stop(process)


def _port(out: IO[str] | None) -> int:
    line = out.readline() if out else ""
    if not line.startswith("READY"):
        raise RuntimeError("the server did not start")
    return int(line.split()[1])


class Stored(NamedTuple):
    """What a log holds of one session."""

    rows: int
    newest: int
    kinds: dict[str, int]

    @property
    def is_complete(self) -> bool:
        """Whether there is something and nothing is missing."""
        return self.rows == self.newest > 0


def stored(home: Path, session: str) -> Stored:
    """One session as the file has it, read by another process than the server."""
    db = sqlite3.connect(f"file:{home / DATABASE}?mode=ro", uri=True)
    try:
        of = "FROM records WHERE stream = (SELECT key FROM streams WHERE name = ?)"
        room = (f"room/{session}",)
        rows, newest = db.execute(f"SELECT count(*), max(version) {of}", room).fetchone()
        kinds = f"SELECT json_extract(CAST(body AS TEXT), '$.kind'), count(*) {of} GROUP BY 1"
        return Stored(rows, newest or 0, dict(db.execute(kinds, room).fetchall()))
    finally:
        db.close()
