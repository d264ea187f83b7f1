"""What `pre-push` is told, and that none of it slips by."""

import io
import sys
from pathlib import Path

import pytest

from accord.git.hooks import dispatch
from tests.helpers.git.work_tree import WorkTree

REFUSES = {"minCoverage": "100", "enforceMetadata": "true", "warnOnly": "false"}
SAYS = "0 of 1 commits say how they were decided"
# Their ids alone are longer than the 2 MiB that Linux takes as arguments.
MANY = 50_000


@pytest.fixture
def strict(work: WorkTree) -> WorkTree:
    """A repository that takes no push of what says nothing, with a commit that says nothing."""
    for name, value in REFUSES.items():
        work.git("config", f"accord.{name}", value)
    work.commit("said in my own way")
    return work


@pytest.mark.parametrize(
    "name", ["a\u00a0b", "a\u3000b", "a\u2028b", "a\x85b", "\udcff\udcfe"], ids=ascii
)
def test_a_branch_may_be_called_anything(strict: WorkTree, tmp_path: Path, name: str) -> None:
    remote = WorkTree.create(tmp_path, "remote", "--bare")
    strict.git("branch", name)
    ran = strict.run("git", "push", "-q", str(remote.path), name)

    assert (ran.code, SAYS in ran.err) == (1, True)


def test_what_is_pushed_may_be_named_with_spaces(strict: WorkTree, tmp_path: Path) -> None:
    remote = WorkTree.create(tmp_path, "remote", "--bare")
    ran = strict.run("git", "push", "-q", str(remote.path), "HEAD@{0 days ago}:refs/heads/x")

    assert (ran.code, SAYS in ran.err) == (1, True)


def test_names_are_no_text_in_any_locale(
    strict: WorkTree, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the locale says UTF-8, Python refuses to read what is none."""
    line = b"refs/heads/\xff %s refs/heads/\xff %s\n" % (strict.head().encode(), b"0" * 40)
    monkeypatch.chdir(strict.path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line), "utf-8", "strict"))

    assert dispatch.main(["pre-push", "origin", "there"]) == 1
    assert SAYS in capsys.readouterr().err


def test_branches_may_be_more_than_a_command_line_holds(strict: WorkTree) -> None:
    """The refs themselves are not read; git would take long to write so many."""
    base = strict.head()
    chain = [
        f"commit refs/heads/many\ncommitter A <a@example.org> {n} +0000\ndata 0\n"
        for n in range(MANY)
    ]
    chain[0] += f"from {base}\n"
    strict.git("fast-import", "--quiet", data="".join(chain).encode())
    tips = strict.git("rev-list", f"{base}..many").splitlines()
    rows = "\n".join(f"refs/heads/b{n} {sha} refs/heads/b{n} {base}" for n, sha in enumerate(tips))
    ran = strict.run(".git/hooks/pre-push", "origin", "there", data=f"{rows}\n".encode())

    assert (ran.code, "commits say how they were decided" in ran.err) == (1, True)
