"""Git is run within bounds, and nobody's environment leads it elsewhere."""

import gc
import os
import signal
import time
from pathlib import Path

import pytest

from accord.git import process
from accord.git.process import MAX_STDERR_BYTES, GitError
from accord.git.repository import Repository
from tests.helpers.git.repositories import create_repository


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return create_repository(tmp_path / "repo")


def shell(line: str) -> tuple[str, ...]:
    """A git command that does this."""
    return ("-c", f"alias.does=!{line}", "does")


def test_more_than_a_pipe_holds_goes_in_and_comes_out(repo: Repository) -> None:
    large = os.urandom(1 << 20)

    blob = repo.run_text("hash-object", "-w", "--stdin", data=large)

    assert repo.read_objects([blob])[blob].content == large
    assert repo.run(*shell("cat"), data=large).out == large


def test_what_git_does_not_read_harms_nothing(repo: Repository) -> None:
    assert repo.run("version", data=b"x" * (1 << 20)).code == 0


def test_git_that_takes_too_long_is_ended(repo: Repository) -> None:
    before = time.monotonic()

    with pytest.raises(GitError, match="did not finish within 0 s"):
        repo.run(*shell("exec sleep 100"), timeout_s=0.2)

    assert time.monotonic() - before < 60


def test_git_that_says_too_much_is_ended(repo: Repository) -> None:
    with pytest.raises(GitError, match="more than 1000 bytes"):
        repo.run(*shell("exec yes"), max_bytes=1000)


def test_error_output_of_git_is_cut_after_its_beginning(repo: Repository) -> None:
    done = repo.run(*shell(f"head -c {4 * MAX_STDERR_BYTES} /dev/zero | tr '\\0' x >&2; exit 3"))

    assert (done.code, len(done.err)) == (3, MAX_STDERR_BYTES)


def test_whoever_git_leaves_behind_is_not_waited_for(repo: Repository) -> None:
    before = time.monotonic()

    done = repo.run(*shell("sleep 100 >/dev/null & echo $!"))
    os.kill(int(done.out), 9)

    assert time.monotonic() - before < 60


def test_no_handle_stays_open(repo: Repository) -> None:
    gc.collect()  # what others left behind goes now, and not in between
    before = len(list(Path("/dev/fd").iterdir()))
    for words in (("version",), ("no-such-command",), shell("exec yes")):
        try:
            repo.run(*words, data=b"x" * 100_000, max_bytes=1000)
        except GitError:
            continue

    assert len(list(Path("/dev/fd").iterdir())) == before


def test_an_argument_that_no_process_can_have_is_refused(repo: Repository) -> None:
    with pytest.raises(GitError, match="could not be started"):
        repo.run("log", "a\0b")


def test_a_path_is_meant_whatever_the_environment_says(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = create_repository(tmp_path / "other", {"x": "1"})
    monkeypatch.setenv("GIT_DIR", str(other.git_directory))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")

    assert repo.files_changed_by("HEAD") == ("README.md",)
    assert repo.changed_paths() == []
    assert Repository().files_changed_by("HEAD") == ("x",)
    assert Repository().git_directory == other.git_directory


def test_asking_runs_nobodys_hooks_and_doing_does(repo: Repository) -> None:
    hook = repo.git_directory / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    repo.run("switch", "-q", "-c", "one")
    assert not (repo.root / "ran").exists()

    repo.run_with_hooks("switch", "-q", "-c", "two")

    assert (repo.root / "ran").exists()


def test_one_git_reads_what_others_write_meanwhile(repo: Repository) -> None:
    gc.collect()
    before = len(list(Path("/dev/fd").iterdir()))
    large = os.urandom(1 << 20)
    with repo:
        assert repo.read_objects(["refs/heads/side", "HEAD:nothing here", "HEAD"]).keys() == {
            "HEAD"
        }
        repo.run_with_hooks("commit", "-q", "--allow-empty", "-m", "second")
        repo.run_with_hooks("branch", "side")
        blob = repo.run_text("hash-object", "-w", "--stdin", data=large)
        repo.run_with_hooks("pack-refs", "--all")
        repo.run_with_hooks("repack", "-adq")
        found = repo.read_objects(["refs/heads/side", blob, *["HEAD:README.md"] * 20_000])
        assert (found["refs/heads/side"].sha, found[blob].content) == (repo.resolve("HEAD"), large)
        assert found["HEAD:README.md"].content == b"# Here\n"

    assert repo.read_objects(["HEAD"])
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_git_that_ends_while_it_is_asked_is_started_again(repo: Repository) -> None:
    with repo:
        repo.read_objects(["HEAD"])
        assert repo._batch is not None
        pid = repo._batch._git.pid
        os.kill(pid, 9)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(GitError, match="exited before"):
            repo.read_objects(["HEAD"])

        assert repo.read_objects(["HEAD"])


def test_signals_are_numbered_as_the_system_has_them() -> None:
    assert (process.SIGKILL, process.SIGPIPE) == (signal.SIGKILL, signal.SIGPIPE)
