"""Where nobody reads on, or nothing more can be written, every command ends alike."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.cli import accord, environment

SMALLEST_PIPE = 4096
SEATS = 100
WAYS = {"buffered": {"PYTHONUNBUFFERED": ""}, "unbuffered": {"PYTHONUNBUFFERED": "1"}}
SPOKEN = ["--help", "--version", "session --help", "session create --help", "pact help"]
WRONG = {"nope": 2, "session lst": 2, "token issue --id": 2, "session": 2, "why x": 4}


def run(line: str, way: str, folder: Path, **to: int) -> tuple[int, bytes, bytes]:
    """How it ends with its output, its errors or both going there."""
    ran = subprocess.run(
        [sys.executable, "-m", "accord", *line.split()],
        stdin=subprocess.DEVNULL,
        stdout=to.get("stdout", subprocess.PIPE),
        stderr=to.get("stderr", subprocess.PIPE),
        env=environment(ACCORD_HOME=str(folder / "home"), **WAYS[way]),
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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("line", SPOKEN)
def test_a_reader_that_went_away_is_no_fault(
    line: str, way: str, unread: int, tmp_path: Path
) -> None:
    assert run(line, way, tmp_path, stdout=unread) == (141, b"", b"")
    os.close(unread)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("line", WRONG)
def test_nor_is_one_of_what_went_wrong(line: str, way: str, unread: int, tmp_path: Path) -> None:
    code, out, said = run(line, way, tmp_path)
    assert (code, bool(out), bool(said)) == (WRONG[line], line == "session", line != "session")

    assert run(line, way, tmp_path, stdout=unread, stderr=unread)[0] == 141
    os.close(unread)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("line", SPOKEN)
def test_a_full_disk_is_told(line: str, way: str, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        code, _, said = run(line, way, tmp_path, stdout=full.fileno())

    assert (code, said) == (6, b"accord: No space left on device; make room and try again\n")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("line", SPOKEN)
def test_output_that_the_shell_has_closed_is_not_missed(line: str, way: str) -> None:
    words = ["/bin/sh", "-c", f'exec "$0" -m accord {line} >&-', sys.executable]
    ran = subprocess.run(words, env=environment(**WAYS[way]), capture_output=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.fixture(scope="module")
def pact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pact of which there is more to say than a pipe holds."""
    folder = tmp_path_factory.mktemp("pact")
    subprocess.run(["git", "init", "-q", folder], check=True)
    roster = [f"s{n}:orchestrator,reviewer:S{n}.md" for n in range(SEATS)]
    seats = [word for seat in roster for word in ("--seat", seat)]
    ran = accord("pact", "init", "--project", "p", *seats, cwd=folder, PACT_AGENT_ID="s0")
    assert ran.code == 0, ran
    return folder


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("line", ["pact status", "pact status --json", "pact log"])
def test_a_reader_that_has_enough_before_all_is_said_is_none_either(
    line: str, way: str, pact: Path
) -> None:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    process = subprocess.Popen(
        [sys.executable, "-m", "accord", *line.split()],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        env=environment(PACT_AGENT_ID="s0", **WAYS[way]),
        cwd=pact,
    )
    os.close(writer)
    assert len(os.read(reader, 1)) == 1  # the rest does not fit in, and is waited for
    os.close(reader)

    _, said = process.communicate()
    assert (process.returncode, said) == (141, b"")
