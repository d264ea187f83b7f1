"""`make demo`: the whole story, with a real server, a real repository and a real crash."""

import subprocess
import sys
from pathlib import Path

from tests.helpers.cli import environment

CHECKED = (
    "Running it before anybody agreed was refused",
    "README.md is unchanged",
    "The gate is still open",
    "It ran",
    "README.md begins '# The parser' now",
    "none twice and none missing",
    "It never ran",
    "docs/manual.md is still there",
    "Nobody has changed what is on record",
    "The server stops cleanly",
)


def test_the_story_plays_to_its_end_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "accord.demo"],
        capture_output=True,
        text=True,
        env=environment(TMPDIR=str(tmp_path)),
        timeout=100,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr
    told = [line.strip() for line in ran.stdout.splitlines() if "✓" in line]
    assert len(told) == len(CHECKED)
    assert all(what in line for what, line in zip(CHECKED, told, strict=True))
    assert "INVALID_STATE" in ran.stdout
    assert "Fast-forward" in ran.stdout
    assert "\x1b" not in ran.stdout
    assert list(tmp_path.iterdir()) == []
