"""A hook that is killed leaves a commit without a record; whatever runs next makes it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.git.conftest import SESSION
from tests.helpers.worktree import Work

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
    path.write_text(text)
    path.chmod(0o755)


def git_of(work: Work) -> str:
    return work.run("sh", "-c", "command -v git").out.strip()


def killed(work: Work, message: str, name: str, *words: str, then: str = "") -> str:
    """A commit whose `post-commit` is killed, at once or as the shim says; says which."""
    work.write(name, f"{message}\n")
    hook = work.path / ".git/hooks/post-commit.before-accord"
    if then:
        git = git_of(work)
        shims = work.home / "shims"
        shims.mkdir(exist_ok=True)
        program(shims / "git", SHIM.format(git=git, then=then.format(git=git)))
        work.told(PATH=f"{shims}{os.pathsep}{work.env['PATH']}").git("commit", "-qm", message)
    else:
        program(hook, FATAL)
        work.git("commit", "-q", *(words or ("-m", message)))
        hook.unlink()
    return work.head()


def commits_again(session: Work) -> None:
    session.told(**ALONE).commit("chore: on", "on.txt")


def pushes(session: Work) -> None:
    remote = Work.new(session.home.parent, "remote", "--bare")
    session.git("push", "-q", str(remote.path), "HEAD:main")


def heals(session: Work) -> None:
    assert "by its own trailers" in session.accord("git", "heal").out


def asks(session: Work) -> None:
    ran = session.accord("why", "a.txt:1")
    assert (ran.code, ran.err) == (0, "")
    assert "decided by   human:alice and ai:claude" in ran.out
    assert "the commit's own trailers; no server vouches for it" in ran.out


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize("then", [commits_again, pushes, heals, asks])
def test_whatever_runs_next_makes_the_record(
    session: Work, then: Callable[[Work], None], *, first: bool
) -> None:
    before = [] if first else [session.commit("feat: before")]
    sha = killed(session, "feat: begin", "a.txt")
    assert session.decisions(sha) == []

    then(session)

    (id,) = session.decisions(sha)
    (made,) = json.loads(session.note(sha))["decisions"]
    assert made["git_sha"] == sha
    assert (made["branch"], made["files_changed"]) == ("main", ["a.txt"])
    assert made["pvp_messages"] == ["msg-01", "msg-05"]
    assert "approvals" not in made
    assert session.accord("git", "heal", "--json").json["healed"] == []
    assert session.decisions(sha) == [id]
    assert all(session.decisions(each) for each in before)


@pytest.mark.parametrize("moment", MOMENTS)
def test_whenever_it_was_killed_there_is_one_decision(session: Work, moment: str) -> None:
    sha = killed(session, "feat: begin", "a.txt", then=MOMENTS[moment])
    before = session.decisions(sha)

    assert session.accord("git", "heal").code == 0

    after = session.decisions(sha)
    assert len(after) == 1
    assert before in ([], after)


def test_the_next_commit_looks_once_and_for_all_that_was_missed(session: Work) -> None:
    old = killed(session, "feat: one", "a.txt")
    # Without `commit-msg` nothing is noted, and nobody settles what was noted before.
    (session.path / ".git/accord-owed").unlink()
    new = killed(session, "feat: two", "b.txt")
    assert (session.path / ".git/accord-owed").exists()

    session.told(**ALONE).commit("chore: on", "on.txt")

    assert not (session.path / ".git/accord-owed").exists()
    assert [len(session.decisions(each)) for each in (old, new, "HEAD")] == [1, 1, 0]


@pytest.mark.parametrize("then", ["2026-11-15T10:00:00Z", "2026-11-15T11:00:00Z"])
def test_an_amend_that_was_not_seen_has_the_decision_of_what_it_amended(
    session: Work, then: str
) -> None:
    """Also where it was amended later: then git tells of head and branch in turns."""
    session.told(GIT_COMMITTER_DATE="2026-11-15T10:00:00Z").commit("feat: begin", "a.txt")
    before = session.decisions()
    program(session.path / ".git/hooks/post-rewrite.before-accord", FATAL)
    later = session.told(GIT_COMMITTER_DATE=then)
    sha = killed(later, "feat: b", "b.txt", "--amend", "-m", "feat: b\n\nPVP-Session: ses_1")
    assert session.decisions(sha) == []

    session.accord("git", "heal")

    assert session.decisions(sha) == before


def test_a_rebase_of_what_has_no_record_costs_none(session: Work) -> None:
    session.commit("feat: begin")
    session.git("switch", "-qc", "topic")
    killed(session, "feat: one", "a.txt")
    session.git("switch", "-q", "main")
    session.told(**ALONE).git("commit", "-q", "--allow-empty", "--no-verify", "-m", "chore: on")
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


def test_a_branch_that_is_gone_is_not_made_up(session: Work) -> None:
    session.commit("feat: begin")
    session.git("switch", "-qc", "topic")
    sha = killed(session, "feat: one", "a.txt")
    session.git("switch", "-q", "--detach", "topic")
    session.git("branch", "-qD", "topic")

    session.accord("git", "heal")

    (made,) = json.loads(session.note(sha))["decisions"]
    assert "branch" not in made


def test_what_came_from_elsewhere_gets_no_record_of_ours(session: Work, tmp_path: Path) -> None:
    """Its record is with whoever made it; from the words alone would come a second decision."""
    session.commit("feat: begin", "a.txt")
    session.git("clone", "-q", str(session.path), str(tmp_path / "clone"))
    clone = session.at(tmp_path / "clone")
    clone.accord("git", "install")

    assert clone.accord("git", "heal").out == "0 commits tied to decisions again\n"
    assert clone.accord("why", "a.txt:1").code == 4
    assert clone.git("for-each-ref", "refs/notes", "refs/accord") == ""


def test_another_work_tree_s_commit_is_found(session: Work, tmp_path: Path) -> None:
    session.commit("feat: begin")
    session.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    other = session.at(tmp_path / "other")
    other.write("a.txt", "1\n")
    hook = session.path / ".git/hooks/post-commit.before-accord"
    program(hook, FATAL)
    other.git("commit", "-q", "-m", "feat: elsewhere")
    hook.unlink()

    session.accord("git", "heal", "other")

    (made,) = json.loads(other.note())["decisions"]
    assert made["branch"] == "other"


def test_who_only_asks_offline_writes_nothing(session: Work) -> None:
    killed(session, "feat: begin", "a.txt")

    assert session.accord("why", "--offline", "HEAD").code == 4
    assert session.git("for-each-ref", "refs/notes", "refs/accord") == ""
