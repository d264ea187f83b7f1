"""`make demo` end to end: a real server, a real repository and a real crash."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from accord.demo import scenario
from accord.demo.narration import CheckFailedError, Narrator
from tests.helpers.clients.cli import clean_environment

CHECKED = (
    "The git hooks are installed",
    "Running it before approval was refused",
    "README.md is unchanged",
    "The gate is still open",
    "The edit was made",
    "README.md begins '# The parser' now",
    "none twice and none missing",
    "The rejected command did not run",
    "docs/manual.md is still there",
    "The commit names its session",
    "The commit names who approved its content",
    "Its note lists the rejected alternative",
    "Claude responded only in the fork",
    "The plan is not in the trunk yet",
    "After the merge the plan is in the trunk",
    "The command was killed",
    "Claude acknowledged the stop",
    "The server refuses everything from Claude until the next prompt",
    "The log has not been tampered with",
    "The server stops cleanly",
    "One commit on main, with a different message",
    "accord why finds the decision behind the line",
    "accord why says who approved it",
    "accord why says what was rejected",
)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Not pytest's, whose path is too long for a Unix socket."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_demo_works_where_the_path_of_its_socket_is_short_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 20)))
    assert scenario.short_directory() == "/tmp"
    monkeypatch.setattr(tempfile, "tempdir", "/var/tmp")
    assert scenario.short_directory() is None


@pytest.mark.timeout(300)
def test_demo_passes_every_check_and_removes_its_files(short_folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "accord.demo"],
        capture_output=True,
        text=True,
        env=clean_environment(TMPDIR=str(short_folder)),
        timeout=280,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr
    checks = [line.strip() for line in ran.stdout.splitlines() if "✓" in line]
    assert len(checks) == len(CHECKED)
    assert all(what in line for what, line in zip(CHECKED, checks, strict=True))
    assert "INVALID_STATE" in ran.stdout
    assert "$ accord why README.md:1" in ran.stdout
    assert "approved by  human:alice (Alice) for Correct the title of README.md" in ran.stdout
    assert "\x1b" not in ran.stdout
    assert list(short_folder.iterdir()) == []


async def test_demo_exits_with_1_when_a_check_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def failing_scenario(narrator: Narrator, folder: Path) -> None:
        narrator.check("The moon is made of cheese", holds=False)

    monkeypatch.setattr(scenario, "run_scenario", failing_scenario)

    assert await scenario.run_demo() == 1
    output = capsys.readouterr().out
    assert "✗ The moon is made of cheese" in output
    assert "The demonstration failed" in output


def test_narrator_raises_when_a_check_fails() -> None:
    with pytest.raises(CheckFailedError):
        Narrator().check("Never", holds=None)
