"""A repository that somebody prepared: nothing leaks, nothing hangs, nothing is half done."""

import os
import subprocess
from pathlib import Path

import pytest

from accord.core.kernel.refusal import Refused, Why
from accord.core.work.verbs import Assignment, Caller
from accord.pact import verbs
from accord.pact.desk import Desk
from accord.pact.place import place
from tests.helpers.git import a_repository
from tests.pact.team import SEATS

T1 = Assignment("T1", "cart", "cart", "bob", "ann")


def at(root: Path, seat: str = "ann") -> tuple[Desk, Caller]:
    return Desk(place(root), seat), Caller(seat)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A repository without a pact."""
    return a_repository(tmp_path / "repo").root


@pytest.fixture
def root(bare: Path) -> Path:
    """One with a pact in its last commit, and a branch for the work."""
    verbs.init(*at(bare), "demo", SEATS, "")
    for words in (("add", "."), ("commit", "-qm", "the pact"), ("branch", "cart")):
        subprocess.run(["git", "-C", str(bare), *words], check=True)
    return bare


# The files that `init` looks after


def test_a_project_that_is_named_like_a_marker_leaves_nothing_behind(bare: Path) -> None:
    with pytest.raises(Refused, match="markers") as no:
        verbs.init(*at(bare), "a <!-- pact:end -->", SEATS, "")

    assert no.value.why is Why.MALFORMED
    assert not (bare / ".pact").exists()


@pytest.mark.parametrize("said", [b"caf\xe9\n", b"one\r\ntwo\r\n"])
@pytest.mark.parametrize("name", ["CLAUDE.md", ".gitattributes"])
def test_what_others_wrote_stays_to_the_byte(bare: Path, name: str, said: bytes) -> None:
    """In whatever encoding, with whatever line ends."""
    (bare / name).write_bytes(said)

    verbs.init(*at(bare), "demo", SEATS, "")
    once = (bare / name).read_bytes()
    verbs.init(*at(bare), "demo", SEATS, "")

    assert once.startswith(said.rstrip())
    assert once.count(b"\r\n") >= said.count(b"\r\n") - 1
    assert (bare / name).read_bytes() == once


def test_attributes_that_lead_outside_are_not_copied_in(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "private").write_text("a secret\n")
    (bare / ".gitattributes").symlink_to(tmp_path / "private")

    verbs.init(*at(bare), "demo", SEATS, "")

    assert "a secret" not in (bare / ".gitattributes").read_text()
    assert (tmp_path / "private").read_text() == "a secret\n"


@pytest.mark.timeout(30)
def test_a_pipe_for_a_state_holds_up_no_switch_of_branches(root: Path) -> None:
    verbs.assign(*at(root), T1)
    (root / ".pact" / "STATE.yml").unlink()
    os.mkfifo(root / ".pact" / "STATE.yml")

    done = verbs.join(*at(root, "bob"), "worker", "bob", git=True)

    assert done.notes == ["switched to branch cart"]
    assert (root / ".pact" / "STATE.yml").is_file()


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_every_shell_can_source_the_functions(root: Path, tmp_path: Path, shell: str) -> None:
    """Arguments arrive as they were typed, and none of them is run."""
    tool = tmp_path / "bin" / "accord"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    tool.chmod(0o755)
    env = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
    line = """. .pact/bin/pact.sh; pact_checkpoint T1 --evidence '$(touch x); `touch x` * -n'"""

    done = subprocess.run(
        [shell, "-euc", line], cwd=root, env=env, capture_output=True, text=True, check=False
    )

    said = "pact\ncheckpoint\nT1\n--evidence\n$(touch x); `touch x` * -n\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    assert not (root / "x").exists()
