"""A hook that is killed leaves a commit without a record; whatever runs next makes it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.git.conftest import SESSION
from tests.helpers.git.work_tree import WorkTree

ALONE = dict.fromkeys(SESSION, "")
# Hooks that end the one that called them, and a git that ends whoever writes records with it.
FATAL = "#!/bin/sh\nkill -9 $PPID\n"
SHIM = """#!/bin/sh
for word; do
  case "$word" in fast-import) {then} ;; esac
done
exec {git} "$@"
"""
MOMENTS = {
    "before it writes": 'kill -9 "$PPID"; exit 1',
    "after it wrote": '{git} "$@"; kill -9 "$PPID"; exit 1',
}


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def git_of(work: WorkTree) -> str:
    return work.run("sh", "-c", "command -v git").out.strip()


def killed(work: WorkTree, message: str, name: str, *words: str, then: str = "") -> str:
    """A commit whose `post-commit` is killed, at once or as the shim says; says which."""
    work.write(name, f"{message}\n")
    hook = work.path / ".git/hooks/earlier-than-accord/post-commit"
    if then:
        git = git_of(work)
        shims = work.home / "shims"
        shims.mkdir(exist_ok=True)
        program(shims / "git", SHIM.format(git=git, then=then.format(git=git)))
        work.with_environment(PATH=f"{shims}{os.pathsep}{work.env['PATH']}").git(
            "commit", "-qm", message
        )
    else:
        program(hook, FATAL)
        work.git("commit", "-q", *(words or ("-m", message)))
        hook.unlink()
    return work.head()


def commits_again(session: WorkTree) -> None:
    session.with_environment(**ALONE).commit("chore: on", "on.txt")


def pushes(session: WorkTree) -> None:
    remote = WorkTree.create(session.home.parent, "remote", "--bare")
    session.git("push", "-q", str(remote.path), "HEAD:main")


def heals(session: WorkTree) -> None:
    assert "by its own trailers" in session.accord("git", "heal").out


def asks(session: WorkTree) -> None:
    ran = session.accord("why", "a.txt:1")
    assert (ran.code, ran.err) == (0, "")
    assert "decided by   human:alice and ai:claude" in ran.out
    assert "the commit's own trailers, not confirmed by a server" in ran.out


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize("then", [commits_again, pushes, heals, asks])
def test_whatever_runs_next_makes_the_record(
    session: WorkTree, then: Callable[[WorkTree], None], *, first: bool
) -> None:
    before = [] if first else [session.commit("feat: before")]
    sha = killed(session, "feat: begin", "a.txt")
    assert session.decision_ids(sha) == []

    then(session)

    (id,) = session.decision_ids(sha)
    (made,) = json.loads(session.note(sha))["decisions"]
    assert made["git_sha"] == sha
    assert (made["branch"], made["files_changed"]) == ("main", ["a.txt"])
    assert made["pvp_messages"] == ["msg-01", "msg-05"]
    assert "approvals" not in made
    assert session.accord("git", "heal", "--json").json["healed"] == []
    assert session.decision_ids(sha) == [id]
    assert all(session.decision_ids(each) for each in before)


@pytest.mark.parametrize("moment", MOMENTS)
def test_whenever_it_was_killed_there_is_one_decision(session: WorkTree, moment: str) -> None:
    sha = killed(session, "feat: begin", "a.txt", then=MOMENTS[moment])
    before = session.decision_ids(sha)

    assert session.accord("git", "heal").code == 0

    after = session.decision_ids(sha)
    assert len(after) == 1
    assert before in ([], after)


def test_the_next_commit_looks_once_and_for_all_that_was_missed(session: WorkTree) -> None:
    old = killed(session, "feat: one", "a.txt")
    # Without `commit-msg` nothing is noted, and nobody settles what was noted before.
    (session.path / ".git/accord-owed").unlink()
    new = killed(session, "feat: two", "b.txt")
    assert (session.path / ".git/accord-owed").exists()

    session.with_environment(**ALONE).commit("chore: on", "on.txt")

    assert not (session.path / ".git/accord-owed").exists()
    assert [len(session.decision_ids(each)) for each in (old, new, "HEAD")] == [1, 1, 0]


@pytest.mark.parametrize("then", ["2026-11-15T10:00:00Z", "2026-11-15T11:00:00Z"])
def test_an_amend_that_was_not_seen_has_the_decision_of_what_it_amended(
    session: WorkTree, then: str
) -> None:
    """Also where it was amended later: then git tells of head and branch in turns."""
    session.with_environment(GIT_COMMITTER_DATE="2026-11-15T10:00:00Z").commit(
        "feat: begin", "a.txt"
    )
    before = session.decision_ids()
    program(session.path / ".git/hooks/earlier-than-accord/post-rewrite", FATAL)
    later = session.with_environment(GIT_COMMITTER_DATE=then)
    sha = killed(later, "feat: b", "b.txt", "--amend", "-m", "feat: b\n\nPVP-Session: ses_1")
    assert session.decision_ids(sha) == []

    session.accord("git", "heal")

    assert session.decision_ids(sha) == before


def test_a_rebase_of_what_has_no_record_costs_none(session: WorkTree) -> None:
    session.commit("feat: begin")
    session.git("switch", "-qc", "topic")
    killed(session, "feat: one", "a.txt")
    session.git("switch", "-q", "main")
    session.with_environment(**ALONE).git(
        "commit", "-q", "--allow-empty", "--no-verify", "-m", "chore: on"
    )
    # As if the hook of that commit had been killed as well, before it saw what was owed.
    for ref in ("refs/notes/pvp", "refs/accord/decisions"):
        session.git("update-ref", "-d", ref)
    session.git("switch", "-q", "topic")
    session.git("rebase", "-q", "main")

    ran = session.accord("why", "a.txt:1", "--json")

    assert ran.code == 0
    (reason,) = ran.json["reasons"]
    (made,) = reason["record"]["decisions"]
    assert (made["branch"], made["files_changed"]) == ("topic", ["a.txt"])


def test_a_branch_that_is_gone_is_not_made_up(session: WorkTree) -> None:
    session.commit("feat: begin")
    session.git("switch", "-qc", "topic")
    sha = killed(session, "feat: one", "a.txt")
    session.git("switch", "-q", "--detach", "topic")
    session.git("branch", "-qD", "topic")

    session.accord("git", "heal")

    (made,) = json.loads(session.note(sha))["decisions"]
    assert "branch" not in made


def test_what_came_from_elsewhere_gets_no_record_of_ours(session: WorkTree, tmp_path: Path) -> None:
    """Its record is with whoever made it; from the words alone would come a second decision."""
    session.commit("feat: begin", "a.txt")
    session.git("clone", "-q", str(session.path), str(tmp_path / "clone"))
    clone = session.in_directory(tmp_path / "clone")
    clone.accord("git", "install")

    assert clone.accord("git", "heal").out == "0 commits linked to decisions again\n"
    assert clone.accord("why", "a.txt:1").code == 4
    assert clone.git("for-each-ref", "refs/notes", "refs/accord") == ""


def test_another_work_tree_s_commit_is_found(session: WorkTree, tmp_path: Path) -> None:
    session.commit("feat: begin")
    session.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    other = session.in_directory(tmp_path / "other")
    other.write("a.txt", "1\n")
    hook = session.path / ".git/hooks/earlier-than-accord/post-commit"
    program(hook, FATAL)
    other.git("commit", "-q", "-m", "feat: elsewhere")
    hook.unlink()

    session.accord("git", "heal", "other")

    (made,) = json.loads(other.note())["decisions"]
    assert made["branch"] == "other"


def test_who_only_asks_offline_writes_nothing(session: WorkTree) -> None:
    killed(session, "feat: begin", "a.txt")

    assert session.accord("why", "--offline", "HEAD").code == 4
    assert session.git("for-each-ref", "refs/notes", "refs/accord") == ""
