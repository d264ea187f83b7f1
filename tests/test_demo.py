"""`make demo`: the whole story, with a real server, a real repository and a real crash."""

import subprocess
import sys
from pathlib import Path

import pytest

from accord.demo import play
from accord.demo.stage import SceneFailedError, Stage
from tests.helpers.cli import environment

CHECKED = (
    "Git will remember why",
    "Running it before anybody agreed was refused",
    "README.md is unchanged",
    "The gate is still open",
    "It ran",
    "README.md begins '# The parser' now",
    "none twice and none missing",
    "It never ran",
    "docs/manual.md is still there",
    "The commit names its session",
    "It says who approved",
    "Its record has the proposal that lost",
    "Claude answered in the fork alone",
    "The trunk knows nothing of the plan yet",
    "Now the plan is in the trunk",
    "The command is dead",
    "Claude says that it has stopped",
    "The server lets it do nothing until it is asked again",
    "Nobody has changed what is on record",
    "The server stops cleanly",
    "One commit on main, with another message",
    "The line leads to its decision",
    "The line says who approved it",
    "The line says what was not done instead",
)


@pytest.mark.timeout(300)
def test_the_story_plays_to_its_end_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "accord.demo"],
        capture_output=True,
        text=True,
        env=environment(TMPDIR=str(tmp_path)),
        timeout=280,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr
    told = [line.strip() for line in ran.stdout.splitlines() if "✓" in line]
    assert len(told) == len(CHECKED)
    assert all(what in line for what, line in zip(CHECKED, told, strict=True))
    assert "INVALID_STATE" in ran.stdout
    assert "$ accord why README.md:1" in ran.stdout
    assert "approved by  human:alice for Correct the title of README.md: One word." in ran.stdout
    assert "\x1b" not in ran.stdout
    assert list(tmp_path.iterdir()) == []


async def test_a_story_that_goes_wrong_does_not_end_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def goes_wrong(stage: Stage, folder: Path) -> None:
        stage.proved("The moon is made of cheese", holds=False)

    monkeypatch.setattr(play, "play", goes_wrong)

    assert await play.perform() == 1
    told = capsys.readouterr().out
    assert "✗ The moon is made of cheese" in told
    assert "It did not happen as it should" in told


def test_what_does_not_hold_ends_the_story() -> None:
    with pytest.raises(SceneFailedError):
        Stage().proved("Never", holds=None)
