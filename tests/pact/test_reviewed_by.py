"""`Reviewed-By` without a server: whoever accepted by the log, on the commits that it saw."""

import json
from pathlib import Path
from typing import Any

import pytest

from accord.core.work.verbs import ActingSeat
from accord.git.records import decisions_ref
from accord.git.records.decisions_ref import DecisionLink
from accord.pact import reviewed_by, verbs
from accord.pact.location import find_location
from accord.pact.reviewed_by import ReviewCoverage
from accord.pact.workspace import Workspace
from tests.pact.team import Team, assignment
from tests.pact.test_branch_switch import GitTeam
from tests.spec import proves

ANN = ReviewCoverage({"ann": ("1" * 40,)}, is_complete=True)


@pytest.fixture
def team(tmp_path: Path) -> GitTeam:
    return GitTeam(tmp_path / "repo")


def trailers(team: GitTeam, commit: str = "HEAD") -> list[str]:
    found = team.repo.run_text("log", "-1", "--format=%(trailers:unfold)", commit).split("\n")
    return [each for each in found if each]


def on_record(team: GitTeam, *commits: str) -> None:
    """As the hooks leave it: each of these commits has a decision."""
    for commit in commits:
        id = f"dec_{commit[:12]}"
        note = {"version": 1, "decisions": [{"id": id, "pvp_session": "s"}]}
        decisions_ref.attach_decisions(
            team.repo, {commit: DecisionLink(frozenset({id}))}, {id: note}
        )


def reviewers(team: GitTeam, commit: str) -> Any:
    note = json.loads(team.repo.run_text("notes", "--ref=pvp", "show", commit))
    return [each["by"] for each in note.get("reviews", []) if each["commit"] == commit]


def payloads(team: GitTeam, kind: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in team.log.splitlines()]
    return [each["payload"] for each in events if each["event_type"] == kind]


def begin(team: GitTeam) -> None:
    team.assign()
    team.good("bob", "join", "bob", "--roles", "worker")


def head(team: GitTeam) -> str:
    return team.repo.run_text("rev-parse", "HEAD")


@proves("UNI-14")
@pytest.mark.parametrize("own", [True, False])
def test_a_merge_names_whoever_accepted_all_that_it_brings(team: GitTeam, own: bool) -> None:
    begin(team)
    team.commit("one and a half\n")
    before = head(team)
    if own:
        (team.root / "code.py").write_text("two\n")
    team.good("bob", "checkpoint", "T1", "--evidence", "x", *(["--commit"] if own else []))
    shown = head(team)
    team.good("ann", "accept", "T1")
    on_record(team, before)

    team.good("ann", "merge", "cart")

    assert (shown != before) is own
    (said,) = payloads(team, "checkpoint")
    assert (said["evidence"], said["commit"], len(said.get("files", ""))) == (
        *("x", before),
        64 if own else 0,
    )
    assert payloads(team, "accept") == [{"commit": shown}]
    assert trailers(team) == ["Reviewed-By: agent:ann"]
    assert reviewers(team, before) == ["agent:ann"]


@proves("UNI-14")
def test_what_comes_after_the_review_bears_no_name_and_takes_it_from_the_merge(
    team: GitTeam,
) -> None:
    begin(team)
    team.commit("two\n")
    seen = head(team)
    team.good("bob", "checkpoint", "T1", "--evidence", "x")
    team.good("ann", "accept", "T1")
    team.commit("slipped in\n")
    late = head(team)
    on_record(team, seen, late)

    ran = team("ann", "merge", "cart")

    assert ran.code == 0
    assert f"{late[:10]} came after the review, so the merge commit names no reviewer" in ran.err
    assert trailers(team) == trailers(team, late) == []
    assert (reviewers(team, seen), reviewers(team, late)) == (["agent:ann"], [])
    assert team("ann", "validate").code == 0


@proves("UNI-14")
def test_an_amended_commit_is_not_the_one_that_was_accepted(team: GitTeam) -> None:
    team.accepted()
    (team.root / "code.py").write_text("another\n")
    team.repo.run_with_hooks("commit", "--quiet", "--amend", "--no-edit", "--", "code.py")

    ran = team("ann", "merge", "cart")

    assert (ran.code, trailers(team)) == (0, [])
    assert "ann is not named as a reviewer: the commit it accepted is not on cart" in ran.err


@proves("UNI-14")
def test_a_commit_of_the_ledger_alone_is_no_work_to_review(team: GitTeam) -> None:
    team.accepted()
    team.repo.run_with_hooks("commit", "--quiet", "-m", "the ledger", "--", ".pact")

    team.good("ann", "merge", "cart")

    assert trailers(team) == ["Reviewed-By: agent:ann"]


@proves("UNI-14")
def test_an_event_of_another_tool_that_names_no_commit_names_no_reviewer(team: GitTeam) -> None:
    team.accepted()
    lines = [json.loads(line) for line in team.log.splitlines()]
    for each in lines:
        for name in ("commit", "files"):
            each["payload"].pop(name, None)
    (team.pact / "log.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    team.repo.run_with_hooks("commit", "--quiet", "-m", "as another tool has it", "--", ".pact")

    ran = team("ann", "merge", "cart")

    assert (ran.code, trailers(team)) == (0, [])
    assert "ann is not named as a reviewer" in ran.err


@proves("UNI-14")
@pytest.mark.parametrize("lie", ["human:bob", "system:ann", "ann", "human:ann\nApproved-By: x"])
def test_a_server_may_say_what_somebody_is_and_not_who(lie: str) -> None:
    assert reviewed_by.reviewer_names(ANN, {"ann": "human:ann"}) == {"ann": "human:ann"}
    assert reviewed_by.reviewer_names(ANN, {"ann": lie}) == {"ann": "agent:ann"}
    assert reviewed_by.reviewer_names(ANN, {"bob": "human:bob"}) == {"ann": "agent:ann"}


def test_where_nobody_is_to_be_named_a_merge_has_its_subject_only() -> None:
    assert (
        reviewed_by.merge_message("Merge F (feat)", ReviewCoverage({}, is_complete=True), {})
        == "Merge F (feat)"
    )
    part = ANN._replace(is_complete=False)
    assert (
        reviewed_by.merge_message("Merge F (feat)", part, {"ann": "agent:ann"}) == "Merge F (feat)"
    )


# What is accepted is what was shown


def shows(team: GitTeam, *flags: str, task: str = "T1") -> None:
    team.good("bob", "checkpoint", task, "--evidence", "x", *flags)


def refused(team: GitTeam, *flags: str, code: int = 5, task: str = "T1") -> str:
    """Why Ann may not accept it, and nothing was recorded."""
    before = team.log
    ran = team("ann", "accept", task, *flags)
    assert (ran.code, team.log) == (code, before), ran
    return ran.err


def edit(team: GitTeam, text: str) -> None:
    (team.root / "code.py").write_text(text)


@proves("UNI-14")
def test_work_that_was_amended_after_it_was_shown_is_not_accepted(team: GitTeam) -> None:
    begin(team)
    edit(team, "two\n")
    shows(team, "--commit")
    edit(team, "another\n")
    team.repo.run_with_hooks("commit", "--quiet", "--amend", "--no-edit", "--", "code.py")

    said = refused(team)

    assert "The commit that bob showed for T1 is not on cart: it was amended or rebased" in said
    assert "bob has to run `accord pact checkpoint T1` again" in said
    assert "not on cart" in refused(team, "--commit", head(team))
    shows(team)
    team.good("ann", "accept", "T1")
    assert payloads(team, "accept") == [{"commit": head(team)}]
    team.good("ann", "merge", "cart")
    assert trailers(team) == ["Reviewed-By: agent:ann"]


@proves("UNI-14")
@pytest.mark.parametrize("own", [True, False])
def test_what_came_after_it_was_shown_is_accepted_only_when_it_is_shown(
    team: GitTeam, own: bool
) -> None:
    begin(team)
    edit(team, "two\n") if own else team.commit("two\n")
    shows(team, *(["--commit"] if own else []))
    seen = head(team)
    team.commit("three\n")
    late = head(team)

    said = refused(team)

    assert f"{late[:10]} came after the commit that bob showed for T1, {seen[:10]}" in said
    assert f"`accord pact accept T1 --commit {seen[:10]}` accepts only that" in said
    assert "came after" in refused(team, "--commit", late)
    assert "does not contain" in refused(team, "--commit", "main")
    team.good("ann", "accept", "T1", "--commit", seen[:10])
    on_record(team, seen, late)
    ran = team("ann", "merge", "cart")
    assert payloads(team, "accept") == [{"commit": seen}]
    assert "so the merge commit names no reviewer" in ran.err
    assert (trailers(team), reviewers(team, seen), reviewers(team, late)) == ([], ["agent:ann"], [])


@proves("UNI-14")
def test_work_that_was_rebased_is_shown_again(team: GitTeam) -> None:
    begin(team)
    team.commit("two\n")
    team.commit("three\n")
    shows(team)
    team.repo.run_with_hooks("reset", "--quiet", "--soft", "HEAD~2")
    team.repo.run_with_hooks("commit", "--quiet", "-m", "squashed", "--", "code.py")

    assert "amended or rebased" in refused(team)


def test_another_message_is_the_same_work(team: GitTeam) -> None:
    begin(team)
    edit(team, "two\n")
    shows(team, "--commit")
    team.repo.run_with_hooks("commit", "--quiet", "--amend", "-m", "feat: two")

    ran = team("ann", "accept", "T1", "--json")

    assert json.loads(ran.out)["commit"] == head(team)


@proves("UNI-14")
def test_what_a_hook_makes_of_a_commit_is_what_is_shown(team: GitTeam) -> None:
    begin(team)
    hook = team.repo.git_directory / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho formatted >> code.py\ngit add code.py\n")
    hook.chmod(0o755)
    edit(team, "two\n")

    shows(team, "--commit")

    assert [each.get("commit") for each in payloads(team, "checkpoint")][-1] == head(team)
    team.good("ann", "accept", "T1")
    assert payloads(team, "accept") == [{"commit": head(team)}]
    assert team("ann", "validate").code == 0


def test_a_checkpoint_that_has_nothing_to_commit_shows_what_there_is(team: GitTeam) -> None:
    begin(team)
    team.commit("two\n")
    seen = head(team)
    shows(team, "--commit")
    assert head(team) != seen, "the ledger was committed"

    team.good("ann", "accept", "T1")

    assert payloads(team, "accept") == [{"commit": seen}]
    team.good("ann", "merge", "cart")
    assert trailers(team) == ["Reviewed-By: agent:ann"]


@proves("UNI-14")
def test_what_somebody_may_run_is_no_record_of_the_pact(team: GitTeam) -> None:
    begin(team)
    team.commit("two\n")
    shows(team)
    (team.pact / "bin" / "pact.sh").write_text("rm -rf ~\n")
    team.repo.run_with_hooks("commit", "--quiet", "-m", "slipped in", "--", ".pact")

    assert "came after" in refused(team)


def test_a_reviewer_names_the_commit_where_a_tool_named_none(team: GitTeam) -> None:
    begin(team)
    team.commit("two\n")
    shows(team)
    lines = team.log.splitlines()
    event = json.loads(lines[-1])
    del event["payload"]["commit"]
    (team.pact / "log.jsonl").write_text("\n".join([*lines[:-1], json.dumps(event), ""]))
    team.good("ann", "log", "--replay")

    assert "'nothing' is not a commit in this repository" in refused(
        team, "--commit", "nothing", code=4
    )
    assert "'--all' is not a commit in this repository" in refused(team, "--commit=--all", code=4)
    elsewhere = team.repo.run_text("commit-tree", "HEAD^{tree}", "-m", "of no branch")
    assert "is not on branch cart" in refused(team, "--commit", elsewhere)
    team.good("ann", "accept", "T1", "--commit", "cart")
    assert payloads(team, "accept") == [{"commit": head(team)}]


def test_without_a_branch_nothing_is_accepted_by_name(team: GitTeam) -> None:
    team.good("ann", *assignment("T2", "pay"))
    shows(team, task="T2")

    said = refused(team, "--commit", "HEAD", task="T2")

    assert "There is no branch pay here" in said
    team.good("ann", "accept", "T2")
    assert payloads(team, "accept") == [{}]


def test_in_no_repository_there_is_no_commit_to_name(tmp_path: Path) -> None:
    team = Team(tmp_path / "plain").init()
    team.assign()
    team.good("bob", "checkpoint", "T1", "--evidence", "x")

    ran = team("ann", "accept", "T1", "--commit", "HEAD")

    assert (ran.code, "There is no branch cart here" in ran.err) == (5, True)
    team.good("ann", "accept", "T1")


@proves("UNI-14", "UNI-21")
def test_a_merge_that_was_interrupted_is_marked_by_the_next(
    team: GitTeam, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(team)
    team.commit("two\n")
    seen = head(team)
    on_record(team, seen)
    shows(team)
    team.good("ann", "accept", "T1")

    def dies(*_: object) -> list[str]:
        raise KeyboardInterrupt

    desk = Workspace(find_location(team.root), "ann")
    with monkeypatch.context() as patched:
        patched.setattr(reviewed_by, "record_reviewers", dies)
        with pytest.raises(KeyboardInterrupt):
            verbs.merge(desk, ActingSeat("ann"), "cart", git=True)
    assert (trailers(team), reviewers(team, seen)) == ([], [])
    assert (team.repo.has_git_file("MERGE_HEAD"), "merge" in team.kinds) == (True, False)

    team.good("ann", "merge", "cart")

    assert (trailers(team), reviewers(team, seen)) == (["Reviewed-By: agent:ann"], ["agent:ann"])
    assert team.kinds.count("merge") == 1


@proves("UNI-14", "UNI-21")
def test_a_merge_that_git_already_has_gets_its_event_and_its_reviewers(team: GitTeam) -> None:
    begin(team)
    team.commit("two\n")
    seen = head(team)
    on_record(team, seen)
    shows(team)
    team.good("ann", "accept", "T1")
    team.repo.run_with_hooks("commit", "-qam", "accepted")
    team.repo.run_with_hooks("switch", "-q", "main")
    team.repo.run_with_hooks("merge", "-q", "--no-ff", "--no-edit", "cart")

    ran = team("ann", "merge", "cart")

    assert (ran.code, "only the event was missing" in ran.err) == (0, True)
    assert reviewers(team, seen) == ["agent:ann"]
    assert team.kinds.count("merge") == 1
