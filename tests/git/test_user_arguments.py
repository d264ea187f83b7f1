"""Wherever one asks, there is an answer or a sentence, and git's own words are the last resort."""

import os
from pathlib import Path

import pytest

from tests.helpers.git.work_tree import WorkTree

NOWHERE = "This directory is not in a git repository; run `git init` to create one"
NOTHING_YET = "This repository has no commits yet"
NO_RANGE = (
    "does not name commits in this repository; write a range as OLD..NEW, "
    "and see `git branch --all` for branch names"
)
NO_REMOTE = "This repository has no remote origin; `git remote` lists its remotes"
VERBS: dict[str, tuple[str, ...]] = {
    "install": (),
    "uninstall": (),
    "status": (),
    "bind": ("ses_1",),
    "unbind": ("ses_1",),
    "places": (),
    "parse": (),
    "coverage": (),
    "tree": (),
    "heal": (),
    "share": (),
    "fetch": (),
    "export": (),
    "log": ("--by", "alice"),
    "branch": ("fork_1",),
}


@pytest.mark.parametrize("verb", VERBS)
def test_outside_a_repository_every_verb_says_so(
    plain: WorkTree, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "none").mkdir()
    ran = plain.in_directory(tmp_path / "none").accord("git", verb, *VERBS[verb])

    assert (ran.code, ran.out, ran.err) == (4, "", f"accord: {NOWHERE}\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("git", "coverage"), 0, "There are no commits in this range"),
        (("git", "coverage", "--threshold", "80"), 0, "There are no commits in this range"),
        (("git", "coverage", "x..y"), 4, f"x..y {NO_RANGE}"),
        (("git", "tree"), 0, "No commit here belongs to a session yet"),
        (("git", "heal"), 0, "0 commits linked to decisions again"),
        (("git", "heal", "x"), 4, f"x {NO_RANGE}"),
        (("git", "parse"), 4, NOTHING_YET),
        (("git", "parse", "x"), 4, "x is not a commit in this repository"),
        (("git", "export"), 4, NOTHING_YET),
        (("git", "branch", "f"), 4, NOTHING_YET),
        (("git", "log", "--session", "s"), 0, "there is no commit here of s"),
        (("git", "share"), 4, NO_REMOTE),
        (("git", "fetch"), 4, NO_REMOTE),
        (("why", "HEAD"), 4, NOTHING_YET),
        (("why", "a.txt:1"), 4, "a.txt:1 is neither a tracked file here nor a commit"),
    ],
)
def test_commands_explain_a_repository_without_commits(
    plain: WorkTree, words: tuple[str, ...], code: int, said: str
) -> None:
    ran = plain.accord(*words)

    assert (ran.code, (ran.out + ran.err).removeprefix("accord: ").strip()) == (code, said)


def test_a_repository_of_somebody_else_is_not_called_none(plain: WorkTree) -> None:
    plain.commit("begin")
    other = plain.with_environment(GIT_TEST_ASSUME_DIFFERENT_OWNER="1")
    ran = other.accord("git", "status")

    assert ran.code == 5
    assert "dubious ownership" in ran.err
    assert other.accord("why", "HEAD").code == 5


def test_a_bare_repository_gets_no_hooks_unless_somebody_works_beside_it(
    session: WorkTree, tmp_path: Path
) -> None:
    session.commit("feat: begin")
    session.git("clone", "-q", "--bare", str(session.path), str(tmp_path / "bare"))
    bare = session.in_directory(tmp_path / "bare")
    ran = bare.accord("git", "install")
    assert (ran.code, "install them in a clone" in ran.err) == (5, True)
    assert bare.run("git", "config", "accord.repo").code == 1
    assert not (tmp_path / "bare/hooks/post-commit").exists()
    bare.git("worktree", "add", "-q", str(tmp_path / "tree"), "main")

    assert bare.accord("git", "install").code == 0
    tree = bare.in_directory(tmp_path / "tree")
    tree.commit("feat: go on", "b.txt")
    assert tree.decision_ids()


def test_a_bare_repository_tells_why(session: WorkTree, tmp_path: Path) -> None:
    session.commit("feat: begin", "in/a.txt")
    session.git("clone", "-q", "--mirror", str(session.path), str(tmp_path / "bare"))
    bare = session.in_directory(tmp_path / "bare")

    assert session.decision_ids()[0] in bare.accord("why", "in/a.txt:1").out
    assert bare.accord("why", "in").err == "accord: in is a directory; name a file in it\n"


def test_a_shallow_clone_says_that_a_line_may_be_older(session: WorkTree, tmp_path: Path) -> None:
    session.commit("feat: begin", "a.txt")
    session.commit("feat: go on", "b.txt")
    session.git("clone", "-q", "--depth=1", f"file://{session.path}", str(tmp_path / "shallow"))
    clone = session.in_directory(tmp_path / "shallow")

    assert "git fetch --unshallow" in clone.accord("why", "a.txt:1").err
    assert "unshallow" not in clone.accord("why", "HEAD").err


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [
        ("gone.txt", 4, "was deleted in"),
        ("gone.txt:1", 4, "was deleted in"),
        ("a.txt:3", 4, "a.txt has only 2 lines"),
        ("empty.txt:1", 4, "empty.txt is empty"),
        ("a.txt:0", 2, "line numbers start at 1"),
        ("a.txt:2-1", 2, "line numbers start at 1"),
        ("new.txt", 4, "new.txt is not committed yet"),
        ("/etc/hosts", 4, "/etc/hosts is not in this repository"),
        ("../elsewhere:1", 4, "../elsewhere is not in this repository"),
        (".", 2, ". is a directory"),
        ("", 2, "Name a file"),
        (os.fsdecode(b"caf\xe9"), 4, "caf\\xe9 is neither"),
        ("HEAD~99", 4, "HEAD~99 is neither"),
    ],
)
def test_why_says_what_it_cannot_explain(
    session: WorkTree, word: str, code: int, said: str
) -> None:
    session.commit("feat: begin", "a.txt", "one\ntwo\n")
    session.commit("feat: empty", "empty.txt", "")
    session.commit("feat: for now", "gone.txt")
    session.git("rm", "-q", "gone.txt")
    session.git("commit", "-qm", "feat: no longer")
    (session.path / "new.txt").write_text("new")
    ran = session.accord("why", word)

    assert (ran.code, said in ran.err) == (code, True), ran.err


def test_binary_and_empty_files_have_reasons(session: WorkTree) -> None:
    (session.path / "image").write_bytes(bytes(range(256)))
    session.write("empty", "")
    session.git("add", "image")
    session.git("commit", "-qm", "feat: begin")

    for word in ("image", "image:1", "empty"):
        ran = session.accord("why", word)
        assert (ran.code, session.decision_ids()[0] in ran.out) == (0, True), word


def test_a_directory_is_no_message_and_no_proof(plain: WorkTree) -> None:
    for verb in ("check-message", "verify"):
        ran = plain.accord("git", verb, ".")

        assert (ran.code, ran.out, ran.err) == (
            2,
            "",
            "accord: . is a directory; give the name of a file\n",
        )
