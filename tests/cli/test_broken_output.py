"""Where nobody reads on, or nothing more can be written, every command ends alike."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.clients.cli import clean_environment, run_accord

SMALLEST_PIPE = 4096
PACT_SEATS = 100
BUFFERING = {"buffered": {"PYTHONUNBUFFERED": ""}, "unbuffered": {"PYTHONUNBUFFERED": "1"}}
HELPFUL = ["--help", "session create --help", "pact help"]
REFUSED = {"nope": 2, "token issue --id": 2, "session": 2, "why x": 4}


def run(line: str, buffering: str, folder: Path, **to: int) -> tuple[int, bytes, bytes]:
    """How it ends with its output, its errors or both going there."""
    ran = subprocess.run(
        [sys.executable, "-m", "accord", *line.split()],
        stdin=subprocess.DEVNULL,
        stdout=to.get("stdout", subprocess.PIPE),
        stderr=to.get("stderr", subprocess.PIPE),
        env=clean_environment(ACCORD_HOME=str(folder / "home"), **BUFFERING[buffering]),
        cwd=folder,
        check=False,
    )
    return ran.returncode, ran.stdout or b"", ran.stderr or b""


@pytest.fixture
def unread() -> int:
    """A pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("buffering", BUFFERING)
@pytest.mark.parametrize("line", HELPFUL)
def test_a_reader_that_went_away_ends_a_command_with_141(
    line: str, buffering: str, unread: int, tmp_path: Path
) -> None:
    assert run(line, buffering, tmp_path, stdout=unread) == (141, b"", b"")
    os.close(unread)


@pytest.mark.parametrize("buffering", BUFFERING)
@pytest.mark.parametrize("line", REFUSED)
def test_a_refusal_that_nobody_reads_ends_with_141(
    line: str, buffering: str, unread: int, tmp_path: Path
) -> None:
    code, out, said = run(line, buffering, tmp_path)
    assert (code, bool(out), bool(said)) == (REFUSED[line], line == "session", line != "session")

    assert run(line, buffering, tmp_path, stdout=unread, stderr=unread)[0] == 141
    os.close(unread)


@pytest.mark.parametrize("buffering", BUFFERING)
@pytest.mark.parametrize("line", HELPFUL)
def test_full_disk_is_reported(line: str, buffering: str, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        code, _, said = run(line, buffering, tmp_path, stdout=full.fileno())

    assert (code, said) == (
        6,
        b"accord: No space left on device; free some disk space and try again\n",
    )


@pytest.mark.parametrize("buffering", BUFFERING)
@pytest.mark.parametrize("line", HELPFUL)
def test_closed_output_is_no_error(line: str, buffering: str) -> None:
    words = ["/bin/sh", "-c", f'exec "$0" -m accord {line} >&-', sys.executable]
    ran = subprocess.run(
        words, env=clean_environment(**BUFFERING[buffering]), capture_output=True, check=False
    )

    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.fixture(scope="module")
def pact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pact of which there is more to say than a pipe holds."""
    folder = tmp_path_factory.mktemp("pact")
    subprocess.run(["git", "init", "-q", folder], check=True)
    roster = [f"s{n}:orchestrator,reviewer:S{n}.md" for n in range(PACT_SEATS)]
    seats = [word for seat in roster for word in ("--seat", seat)]
    ran = run_accord("pact", "init", "--project", "p", *seats, cwd=folder, PACT_AGENT_ID="s0")
    assert ran.code == 0, ran
    return folder


@pytest.mark.parametrize("buffering", BUFFERING)
@pytest.mark.parametrize("line", ["pact status", "pact log"])
def test_a_reader_that_stops_early_ends_a_command_with_141(
    line: str, buffering: str, pact: Path
) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", *line.split()],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        env=clean_environment(PACT_AGENT_ID="s0", **BUFFERING[buffering]),
        cwd=pact,
    )
    os.close(writer)
    assert len(os.read(reader, 1)) == 1  # the rest does not fit in, and is waited for
    os.close(reader)

    _, said = process.communicate()
    assert (process.returncode, said) == (141, b"")
