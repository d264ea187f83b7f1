"""The name of a change and the paths it touches, from one look at it."""

import os
import subprocess
from pathlib import Path
from shutil import which

import pytest

from accord.git import commit_content
from accord.git.process import MAX_OUTPUT_BYTES
from accord.git.repository import Repository
from tests.helpers.git.repositories import create_repository
from tests.helpers.git.work_tree import WorkTree

SHAPE = ("-p", "-U3", "--no-renames", "--no-color")


def named(repo: Repository, *words: str) -> str:
    """By two programs, one after the other, as anybody would do it."""
    diff = subprocess.run(
        ["git", "-c", "core.quotePath=false", "diff-tree", "-r", *SHAPE, *words],
        cwd=repo.root,
        capture_output=True,
        check=True,
    )
    ran = subprocess.run(
        ["git", "patch-id", "--verbatim"],
        input=diff.stdout,
        cwd=repo.root,
        capture_output=True,
        check=True,
    )
    return ran.stdout.decode().partition(" ")[0]


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """A first commit, odd names, a mode, a removal, nothing at all, and a merge."""
    made = create_repository(tmp_path / "repo", {"a": "1\n", "b": "2\n"})
    made.run_with_hooks("switch", "-q", "-c", "side")
    for name in ('quo"te', "tab\there", "line\nfeed", "Grüße.txt", "back\\slash", "plain"):
        (made.root / name).write_text("x\n")
        made.run_with_hooks("add", "--all")
        made.run_with_hooks("commit", "-q", "-m", "one")
    (made.root / "a").chmod(0o755)
    (made.root / "empty").touch()
    (made.root / "zero").write_bytes(b"\0\n")
    made.run_with_hooks("add", "--all")
    made.run_with_hooks("rm", "-q", "b")
    made.run_with_hooks("commit", "-q", "-m", "all kinds")
    made.run_with_hooks("commit", "-q", "--allow-empty", "-m", "nothing")
    made.run_with_hooks("switch", "-q", "main")
    (made.root / "c").write_text("3\n")
    made.run_with_hooks("add", "--all")
    made.run_with_hooks("commit", "-q", "-m", "aside")
    made.run_with_hooks("merge", "-q", "--no-ff", "-m", "together", "side")
    return made


def test_one_look_tells_what_two_would(repo: Repository) -> None:
    commits = repo.commits("HEAD")

    for commit in commits:
        before = (commit.parents[0],) if commit.parents else ("--root",)
        found = commit_content.patch_of(repo, commit)
        assert found.files == repo.files_changed_by(commit.sha)
        assert found.patch_id == named(repo, *before, commit.sha)
    assert len(commits) == 11


def test_patch_ids_are_the_same_for_one_commit_and_for_many(repo: Repository) -> None:
    commits = repo.commits("HEAD")
    each = {commit.sha: commit_content.patch_of(repo, commit).patch_id for commit in commits}

    assert commit_content.patch_ids_of(repo, each, merges=True) == {
        k: v for k, v in each.items() if v
    }
    merge = commits[0].sha
    assert merge not in commit_content.patch_ids_of(repo, each)
    assert commit_content.patch_ids_of(repo, [merge], merges=True) == {merge: each[merge]}


def test_an_older_git_names_all_but_merges(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shas = [commit.sha for commit in repo.commits("HEAD")]
    plain = commit_content.patch_ids_of(repo, shas)
    older = tmp_path / "git"
    older.write_text(
        f'#!/bin/sh\ncase "$*" in *--diff-merges*) exit 129;; esac\nexec {which("git")} "$@"\n'
    )
    older.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    assert commit_content.patch_ids_of(repo, shas, merges=True) == plain


def test_a_change_that_nobody_would_read_has_a_record_all_the_same(session: WorkTree) -> None:
    session.commit("feat: begin", "a.txt")
    session.git("switch", "-qc", "topic")
    session.commit("feat: everything", "all.txt", f"{'x' * 79}\n" * (MAX_OUTPUT_BYTES // 80 + 1))
    everything = session.decision_ids()
    session.commit("feat: a little", "b.txt")
    little = session.decision_ids()
    session.git("switch", "-q", "main")
    session.commit("feat: meanwhile", "c.txt")
    session.git("switch", "-q", "topic")
    session.git("rebase", "-q", "main")

    assert [len(everything), len(little)] == [1, 1]
    assert [session.decision_ids(rev) for rev in ("HEAD~1", "HEAD")] == [everything, little]


def test_many_changes_are_named_in_parts(plain: WorkTree, monkeypatch: pytest.MonkeyPatch) -> None:
    shas = [plain.commit(f"feat: {n}", f"{n}.txt", f"{n}\n" * 100 * n) for n in range(1, 10)]
    repo = Repository(plain.path)
    whole = commit_content.patch_ids_of(repo, shas)
    assert set(whole) == set(shas)
    monkeypatch.setattr(commit_content, "MAX_BATCH_BYTES", 2500)
    assert commit_content.patch_ids_of(repo, shas) == whole
    monkeypatch.setattr(commit_content, "MAX_OUTPUT_BYTES", 2500)
    few = commit_content.patch_ids_of(repo, shas)
    assert {shas[0]} <= set(few) < set(shas)
    assert few.items() <= whole.items()
    monkeypatch.setattr(commit_content, "MAX_BATCHES", 1)

    assert commit_content.patch_ids_of(repo, shas) == {}
