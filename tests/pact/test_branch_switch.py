"""A pact and git: branches, merges and commits, and the ledger that goes along."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from accord.core.work.fold import fold
from accord.core.work.format import log_lines
from accord.core.work.format.state_and_task_files import render_state_yml
from accord.git.repository import Repository
from tests.helpers.git.repositories import create_repository
from tests.pact.team import Team, assignment, seats
from tests.spec import proves


class GitTeam(Team):
    """A team whose pact is committed on `main`, with a branch `cart` for its work."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.repo: Repository = create_repository(root, {"code.py": "one\n"})
        self.init()
        self.repo.run_with_hooks("add", ".")
        self.repo.run_with_hooks("commit", "-qm", "the pact")
        self.repo.run_with_hooks("branch", "cart")

    def commit(self, text: str) -> None:
        (self.root / "code.py").write_text(text)
        self.repo.run_with_hooks("commit", "-qm", "work", "--", "code.py")

    def accepted(self) -> None:
        """The task is done on its branch, and accepted there."""
        self.assign()
        self.good("bob", "join", "bob", "--roles", "worker")
        (self.root / "code.py").write_text("two\n")
        self.good("bob", "checkpoint", "T1", "--evidence", "x", "--commit")
        self.good("ann", "accept", "T1")


@pytest.fixture
def team(tmp_path: Path) -> GitTeam:
    return GitTeam(tmp_path / "repo")


@proves("OPEN-111", "PACT-9-1")
def test_join_switches_to_the_tasks_branch_and_takes_the_events_along(team: GitTeam) -> None:
    team.assign()
    before = team.kinds

    team.good("bob", "join", "bob", "--roles", "worker")

    assert team.repo.current_branch() == "cart"
    assert team.kinds == [*before, "join"]
    assert team("ann", "validate").code == 0
    assert not (team.repo.git_directory / "accord" / "pact-carry.jsonl").exists()
    team.good("bob", "join", "bob", "--roles", "worker")
    assert team.repo.current_branch() == "cart"


@proves("OPEN-111")
def test_join_stays_where_it_is_told_to_or_where_there_is_no_branch(team: GitTeam) -> None:
    team.good("ann", *assignment("T2", "pay"))
    ran = team("bob", "join", "bob", "--roles", "worker")
    assert (ran.code, team.repo.current_branch()) == (0, "main")
    assert "git switch -c pay" in ran.err
    team.assign()
    team.good("bob", "join", "bob", "--roles", "worker", "--no-git")
    assert team.repo.current_branch() == "main"


@proves("OPEN-111")
def test_a_dirty_tree_is_refused_and_nothing_changes(team: GitTeam) -> None:
    team.assign()
    (team.root / "code.py").write_text("unsaved\n")
    before = team.log

    ran = team("bob", "join", "bob", "--roles", "worker")

    assert (ran.code, "Uncommitted changes in code.py" in ran.err) == (5, True)
    assert (team.repo.current_branch(), team.log) == ("main", before)
    assert (team.root / "code.py").read_text() == "unsaved\n"


def test_both_branches_keep_what_each_has_recorded(team: GitTeam) -> None:
    team.good("ann", *assignment("M1", "pay"))
    team.repo.run_with_hooks("commit", "-qam", "M1 on main")
    team.repo.run_with_hooks("switch", "-q", "cart")
    team.assign("T1")
    team.repo.run_with_hooks("commit", "-qam", "T1 on cart")
    team.repo.run_with_hooks("switch", "-q", "main")
    team.good("ann", *assignment("M2", "pay"))
    (team.root / ".pact" / "STATE.yml").write_text("conflict\n")
    team.repo.run_with_hooks("checkout", "-q", "HEAD", "--", ".pact/STATE.yml")
    with (team.pact / "log.jsonl").open("a") as log:
        known = json.loads(
            team.repo.run_with_hooks("show", "cart:.pact/log.jsonl").splitlines()[-1]
        )
        log.write(json.dumps(known) + "\n")

    team.good("bob", "join", "bob", "--roles", "worker")

    assert team.repo.current_branch() == "main", (
        "the first open task is on pay, which has no branch"
    )
    assert set(team.statuses()) == {"M1", "M2", "T1"}


def test_when_git_refuses_to_switch_everything_is_as_before(team: GitTeam) -> None:
    team.assign()
    team.repo.run_with_hooks("worktree", "add", "-q", str(team.root.parent / "other"), "cart")
    before, state = team.log, team.state

    ran = team("bob", "join", "bob", "--roles", "worker")

    assert (ran.code, "git could not switch" in ran.err) == (5, True)
    assert (team.log, team.state, team.repo.current_branch()) == (before, state, "main")
    assert not (team.repo.git_directory / "accord" / "pact-carry.jsonl").exists()


@proves("OPEN-111", "PACT-7.1-8", "UNI-21", "PACT-9-1")
def test_merge_is_a_real_one_with_the_event_in_the_merge_commit(team: GitTeam) -> None:
    team.accepted()

    team.good("ann", "merge", "cart")

    assert team.repo.current_branch() == "main"
    assert (team.root / "code.py").read_text() == "two\n"
    parents = team.repo.run_with_hooks("log", "-1", "--format=%P|%s")
    assert (len(parents.split("|")[0].split()), parents.split("|")[1]) == (2, "Merge cart (cart)")
    assert team.kinds == ["init", "assign", "join", "checkpoint", "accept", "merge"]
    assert team("ann", "validate").code == 0
    for path, text in ((".pact/log.jsonl", team.log), (".pact/STATE.yml", team.state)):
        assert team.repo.read_file_at("main", path) == text.encode()
    assert team.repo.changed_paths() == []
    assert not team.repo.has_git_file("MERGE_HEAD", "accord/pact-merge", "accord/pact-carry.jsonl")


@proves("UNI-21", "OPEN-111")
@pytest.mark.parametrize("hook", ["pre-commit", "commit-msg"])
def test_a_merge_commit_that_a_hook_refuses_changes_nothing(team: GitTeam, hook: str) -> None:
    team.accepted()
    script = team.repo.git_directory / "hooks" / hook
    script.parent.mkdir(exist_ok=True)
    script.write_text("#!/bin/sh\necho no merge today >&2\nexit 1\n")
    script.chmod(0o755)
    before, head = team.log, team.repo.run_with_hooks("rev-parse", "main")
    status = team.repo.run_with_hooks("status", "--porcelain")

    ran = team("ann", "merge", "cart")

    assert (ran.code, "no merge today" in ran.err) == (5, True), ran
    assert (team.repo.current_branch(), team.log) == ("cart", before)
    assert team.repo.run_with_hooks("rev-parse", "main") == head
    assert team.repo.run_with_hooks("status", "--porcelain") == status
    assert not team.repo.has_git_file("MERGE_HEAD", "accord/pact-merge", "accord/pact-commit.jsonl")
    script.unlink()
    team.good("ann", "merge", "cart")


def test_the_next_verb_leaves_a_merge_that_a_person_started_alone(team: GitTeam) -> None:
    """Only the merge that an interrupted `pact merge` left behind is aborted."""
    team.accepted()
    team.repo.run_with_hooks("commit", "-qam", "accepted")
    team.repo.run_with_hooks("switch", "-q", "main")
    team.repo.run_with_hooks("merge", "-q", "--no-ff", "--no-commit", "cart")
    marker = team.repo.git_directory / "accord" / "pact-merge"
    marker.parent.mkdir(exist_ok=True)
    marker.write_text(team.repo.run_with_hooks("rev-parse", "main"))

    team.good("ann", *assignment("T2", "pay"))

    assert team.repo.has_git_file("MERGE_HEAD")
    assert not marker.exists()


@proves("OPEN-111")
def test_merge_says_when_the_branch_does_not_exist(team: GitTeam, tmp_path: Path) -> None:
    team.assign("T2", "pay")
    team.good("bob", "checkpoint", "T2", "--evidence", "x")
    team.good("ann", "accept", "T2")
    head = team.repo.run_with_hooks("rev-parse", "HEAD")

    ran = team("ann", "merge", "pay")

    assert (ran.code, team.kinds[-1]) == (0, "merge")
    assert "branch pay does not exist here, so git merged nothing" in ran.err
    assert team.repo.run_with_hooks("rev-parse", "HEAD") == head


@proves("UNI-21")
def test_a_branch_that_only_a_remote_has_is_not_shipped_without_it(
    team: GitTeam, tmp_path: Path
) -> None:
    team.accepted()
    team.repo.run_with_hooks("commit", "-qam", "accepted")
    team.repo.run_with_hooks("branch", "-f", "main")
    ann = cloned(team, tmp_path / "clone")
    Repository(ann.root).run_with_hooks("switch", "-q", "main")
    Repository(ann.root).run_with_hooks("branch", "-q", "-D", "cart")
    before = ann.log

    ran = ann("ann", "merge", "cart")

    assert (ran.code, ann.log) == (5, before), ran
    command = "git branch --track cart origin/cart"
    assert f"cart exists only as origin/cart; run `{command}` first" in ran.err
    subprocess.run(command.split(), cwd=ann.root, check=True, capture_output=True)
    assert "exists only as" not in ann("ann", "merge", "cart").err


@proves("UNI-21", "OPEN-111")
def test_a_merge_that_git_cannot_do_changes_nothing(team: GitTeam) -> None:
    team.accepted()
    team.repo.run_with_hooks("commit", "-qam", "accepted")
    team.repo.run_with_hooks("switch", "-q", "main")
    team.commit("three\n")
    team.repo.run_with_hooks("switch", "-q", "cart")
    before, head = team.log, team.repo.run_with_hooks("rev-parse", "main")

    ran = team("ann", "merge", "cart")

    assert (ran.code, "git could not merge" in ran.err) == (5, True), ran
    assert (team.repo.current_branch(), team.log) == ("cart", before)
    assert team.repo.run_with_hooks("rev-parse", "main") == head
    assert not team.repo.succeeds("rev-parse", "--verify", "MERGE_HEAD")
    assert "merge" not in team.kinds


@proves("UNI-21", "PACT-5-3")
def test_a_task_that_only_the_branch_knows_of_counts(team: GitTeam) -> None:
    team.accepted()
    team.good("ann", *assignment("T2"))
    team.repo.run_with_hooks("commit", "-qam", "one more task, on cart alone")
    lines = team.log.splitlines(keepends=True)
    team.repo.run_with_hooks("switch", "-q", "main")
    (team.pact / "log.jsonl").write_text("".join(lines[:-1]))
    head = team.repo.run_with_hooks("rev-parse", "main")

    ran = team("ann", "merge", "cart")

    assert (ran.code, "these tasks are not accepted: T2" in ran.err) == (5, True), ran
    assert team.repo.run_with_hooks("rev-parse", "main") == head


def test_a_branch_without_anything_new_is_not_shipped_by_mistake(team: GitTeam) -> None:
    team.assign()
    team.good("bob", "checkpoint", "T1", "--evidence", "I said so")
    team.good("ann", "accept", "T1")

    ran = team("ann", "merge", "cart")

    assert (ran.code, "--no-git" in ran.err) == (5, True)
    team.good("ann", "merge", "cart", "--no-git")
    assert team.kinds[-1] == "merge"


@proves("OPEN-111", "PACT-9-1")
def test_checkpoint_commits_only_when_asked_and_only_what_git_knows(team: GitTeam) -> None:
    team.assign()
    team.good("bob", "join", "bob", "--roles", "worker")
    (team.root / "code.py").write_text("two\n")
    (team.root / "notes.txt").write_text("private\n")
    head = team.repo.run_with_hooks("rev-parse", "HEAD")
    team.good("bob", "checkpoint", "T1", "--evidence", "one")
    assert team.repo.run_with_hooks("rev-parse", "HEAD") == head

    team.good("bob", "checkpoint", "T1", "--evidence", "two", "--commit")

    assert team.repo.run_with_hooks("log", "-1", "--format=%s") == "pact T1: checkpoint by bob"
    assert team.repo.differing_paths("HEAD~1", "HEAD") == {
        *("code.py", ".pact/log.jsonl", ".pact/STATE.yml")
    }
    assert team.repo.read_file_at("HEAD", ".pact/log.jsonl") == team.log.encode()
    assert team.repo.read_file_at("HEAD", ".pact/STATE.yml") == team.state.encode()
    assert team.repo.changed_paths() == []
    assert not team.repo.is_tracked("notes.txt")


def test_a_commit_that_a_hook_refuses_leaves_no_event(team: GitTeam) -> None:
    team.assign()
    team.good("bob", "join", "bob", "--roles", "worker")
    (team.root / "code.py").write_text("two\n")
    hook = team.repo.git_directory / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no lint >&2\nexit 1\n")
    hook.chmod(0o755)
    before, status = team.log, team.repo.run_with_hooks("status", "--porcelain")

    ran = team("bob", "checkpoint", "T1", "--evidence", "x", "--commit")

    assert (ran.code, "no lint" in ran.err) == (5, True)
    assert (team.log, team.repo.run_with_hooks("status", "--porcelain")) == (before, status)
    assert team("ann", "validate").code == 0


def test_work_is_not_committed_to_the_base_branch(team: GitTeam) -> None:
    team.assign()

    ran = team("bob", "checkpoint", "T1", "--evidence", "x", "--commit")

    assert (ran.code, "belongs on branch cart" in ran.err) == (5, True)
    assert team.kinds == ["init", "assign"]


def test_a_pact_that_git_ignores_stays_where_it_is(tmp_path: Path) -> None:
    repo = create_repository(tmp_path / "repo", {".gitignore": ".pact/\n", "code.py": "one\n"})
    team = Team(repo.root).init()
    repo.run_with_hooks("branch", "cart")
    repo.run_with_hooks("add", "CLAUDE.md", "AGENTS.md", "CY.md", ".gitattributes")
    repo.run_with_hooks("commit", "-qm", "entries")
    team.assign()
    before = team.log

    team.good("bob", "join", "bob", "--roles", "worker")
    (team.root / "code.py").write_text("two\n")
    team.good("bob", "checkpoint", "T1", "--evidence", "x", "--commit")
    team.good("ann", "accept", "T1")
    team.good("ann", "merge", "cart")

    assert team.log.startswith(before)
    assert team.kinds == ["init", "assign", "join", "checkpoint", "accept", "merge"]
    assert not repo.is_tracked(".pact/log.jsonl")
    assert repo.current_branch() == "main"


@proves("OPEN-103", "PACT-2.5-2", "PACT-8-1")
def test_branches_that_both_wrote_merge_without_loss_both_ways(team: GitTeam) -> None:
    repo = team.repo
    for branch, tasks in (("one", ("A1", "A2")), ("two", ("B1", "B2"))):
        repo.run_with_hooks("switch", "-q", "main")
        repo.run_with_hooks("switch", "-q", "-c", branch)
        for task in tasks:
            team.good("ann", *assignment(task, branch))
        team.good("bob", "checkpoint", tasks[0], "--evidence", branch)
        repo.run_with_hooks("commit", "-qam", branch)
    states = set[str]()
    for ours, theirs in (("one", "two"), ("two", "one")):
        repo.run_with_hooks("switch", "-q", "-C", "both", ours)
        repo.run_with_hooks("merge", "-q", "--no-edit", theirs)
        team.good("ann", "log", "--replay")
        assert team("ann", "validate").code == 0
        assert set(team.statuses()) == {"A1", "A2", "B1", "B2"}
        assert team.state == render_state_yml(fold(log_lines.parse_log(team.log.encode()).entries))
        states.add("\n".join(sorted(team.state.splitlines())))
        repo.run_with_hooks("checkout", "-q", "HEAD", "--", ".pact")
    assert len(states) == 1


@proves("PACT-6.4-1", "OPEN-103")
def test_the_same_task_on_two_branches_is_one_task_and_reported(team: GitTeam) -> None:
    repo = team.repo
    for branch in ("one", "two"):
        repo.run_with_hooks("switch", "-q", "-C", branch, "main")
        team.good("ann", *assignment("T1", branch))
        repo.run_with_hooks("commit", "-qam", branch)
    repo.run_with_hooks("merge", "-q", "--no-edit", "one")
    team.good("ann", "log", "--replay")

    ran = team("ann", "validate")

    # The later one is told of; within one second, the lower one.
    assert (ran.code, ran.out.count("error (e) line ")) == (2, 1), ran
    assert list(team.statuses()) == ["T1"]


def test_init_keeps_attributes_that_are_there(tmp_path: Path) -> None:
    repo = create_repository(tmp_path / "repo", {".gitattributes": "*.png binary\n"})

    Team(repo.root)("ann", "init", "--project", "p", *seats())

    assert (repo.root / ".gitattributes").read_text().startswith("*.png binary\n.pact/log.jsonl")


def cloned(team: GitTeam, path: Path) -> Team:
    """Somebody else's clone of the team's repository, which they push to."""
    team.repo.run_with_hooks("config", "receive.denyCurrentBranch", "ignore")
    team.repo.run_with_hooks("clone", "-q", str(team.root), str(path))
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        Repository(path).run_with_hooks("config", name, value)
    return Team(path)


def test_join_in_a_fresh_clone_creates_the_branch_from_the_remote(
    team: GitTeam, tmp_path: Path
) -> None:
    team.assign()
    team.repo.run_with_hooks("commit", "-qam", "T1 is assigned")
    bob = cloned(team, tmp_path / "clone")
    theirs = Repository(bob.root)
    (bob.root / "code.py").write_text("unsaved\n")
    ran = bob("bob", "join", "bob", "--roles", "worker")
    assert (ran.code, theirs.has_branch("cart"), bob.kinds[-1]) == (5, False, "assign"), ran
    theirs.run_with_hooks("checkout", "-q", "--", "code.py")

    ran = bob("bob", "join", "bob", "--roles", "worker")

    assert ran.code == 0
    assert ran.err == "accord: created branch cart from origin/cart and switched to it\n"
    assert theirs.current_branch() == "cart"
    assert theirs.run_with_hooks("rev-parse", "--abbrev-ref", "cart@{upstream}") == "origin/cart"
    assert bob.kinds == ["init", "assign", "join"]
    assert bob("bob", "validate").code == 0
    (bob.root / "code.py").write_text("two\n")
    bob.good("bob", "checkpoint", "T1", "--evidence", "x", "--commit")
    theirs.run_with_hooks("push", "-q")


@pytest.mark.parametrize("remotes", [0, 2])
def test_what_join_suggests_works_when_typed(team: GitTeam, tmp_path: Path, remotes: int) -> None:
    """Whether no remote has the branch or several have, and although `join` changed the ledger."""
    if not remotes:
        team.repo.run_with_hooks("branch", "-q", "-D", "cart")
    team.assign()
    team.repo.run_with_hooks("commit", "-qam", "T1 is assigned")
    bob = cloned(team, tmp_path / "clone")
    theirs = Repository(bob.root)
    if remotes:
        theirs.run_with_hooks("remote", "add", "-f", "fork", str(team.root))
    ran = bob("bob", "join", "bob", "--roles", "worker")
    assert (ran.code, theirs.has_branch("cart")) == (0, False)
    (command,) = re.findall("`(git .*?)`", ran.err)

    done = subprocess.run(["sh", "-c", command], cwd=bob.root, capture_output=True, check=False)

    assert done.returncode == 0, done
    ran = bob("bob", "join", "bob", "--roles", "worker")
    assert (ran.code, theirs.current_branch(), "git" in ran.err) == (0, "cart", False)
    assert bob.statuses() == {"T1": "in_progress"}


def test_a_checkpoint_tells_of_files_that_it_did_not_take(team: GitTeam) -> None:
    team.assign()
    team.good("bob", "join", "bob", "--roles", "worker")
    for name in ("a", "b", "c", "d"):
        (team.root / f"new-{name}.py").write_text("1\n")
    (team.root / "made").mkdir()
    (team.root / "made" / "x.py").write_text("1\n")

    ran = team("bob", "checkpoint", "T1", "--evidence", "x", "--commit")

    assert ran.code == 0
    assert "not committed, because untracked: made/, new-a.py, new-b.py and 2 more" in ran.err
    assert "use `git add` to include" in ran.err
    team.repo.run_with_hooks("add", ".")
    assert team("bob", "checkpoint", "T1", "--evidence", "x", "--commit").err == ""


def test_who_judges_what_only_another_branch_shows_is_told_where_to_go(
    team: GitTeam, tmp_path: Path
) -> None:
    team.assign()
    team.repo.run_with_hooks("commit", "-qam", "T1 is assigned")
    team.repo.run_with_hooks("switch", "-q", "cart")
    team.repo.run_with_hooks("merge", "-q", "main")
    team.repo.run_with_hooks("switch", "-q", "main")
    ann = cloned(team, tmp_path / "clone")
    theirs = Repository(ann.root)
    team.repo.run_with_hooks("switch", "-q", "cart")
    team.good("bob", "checkpoint", "T1", "--evidence", "x", "--commit")
    theirs.run_with_hooks("fetch", "-q")

    for verb, more in (("accept", ()), ("changes", ("--reason", "r"))):
        ran = ann("ann", verb, "T1", *more)
        assert ran.code == 5
        assert "origin/cart has " in ran.err
        way = "git switch cart && git merge origin/cart"
        assert f"about T1 that are missing here; `{way}` adds them" in ran.err
    ann.good("ann", *assignment("T2"))
    way = f"git commit -qm ledger .pact/ && {way}"
    assert f"; `{way}` adds them" in ann("ann", "accept", "T1").err
    done = subprocess.run(["sh", "-c", way], cwd=ann.root, capture_output=True, check=False)
    assert done.returncode == 0, done
    assert ann("ann", "accept", "T1").code == 0
    team.repo.run_with_hooks("switch", "-q", "main")
    assert "; `git switch cart` adds them" in team("ann", "accept", "T1").err
    assert "adds them" not in team("ann", "accept", "T9").err


def test_who_is_on_the_branch_already_only_merges(team: GitTeam, tmp_path: Path) -> None:
    team.assign()
    team.repo.run_with_hooks("commit", "-qam", "T1 is assigned")
    team.repo.run_with_hooks("branch", "-f", "cart")
    ann = cloned(team, tmp_path / "clone")
    theirs = Repository(ann.root)
    theirs.run_with_hooks("switch", "-q", "cart")
    team.repo.run_with_hooks("switch", "-q", "cart")
    team.good("bob", "checkpoint", "T1", "--evidence", "x", "--commit")
    theirs.run_with_hooks("fetch", "-q")

    assert "; `git merge origin/cart` adds them" in ann("ann", "accept", "T1").err
