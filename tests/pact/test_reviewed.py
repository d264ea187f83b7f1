"""`Reviewed-By` without a server: whoever accepted by the log, on the commits that it saw."""

import json
from pathlib import Path
from typing import Any

import pytest

from accord.git import decisions
from accord.git.decisions import Link
from accord.pact import reviewed
from accord.pact.reviewed import Found
from tests.pact.test_git import GitTeam
from tests.spec import proves

ANN = Found({"ann": ("1" * 40,)}, whole=True)


@pytest.fixture
def team(tmp_path: Path) -> GitTeam:
    return GitTeam(tmp_path / "repo")


def trailers(team: GitTeam, commit: str = "HEAD") -> list[str]:
    found = team.repo.ask("log", "-1", "--format=%(trailers:unfold)", commit).split("\n")
    return [each for each in found if each]


def on_record(team: GitTeam, *commits: str) -> None:
    """As the hooks leave it: each of these commits has a decision."""
    for commit in commits:
        id = f"dec_{commit[:12]}"
        note = {"version": 1, "decisions": [{"id": id, "pvp_session": "s"}]}
        decisions.attach(team.repo, {commit: Link(frozenset({id}))}, {id: note})


def reviewers(team: GitTeam, commit: str) -> Any:
    note = json.loads(team.repo.ask("notes", "--ref=pvp", "show", commit))
    return note["decisions"][0].get("reviewed_by", [])


def payloads(team: GitTeam, kind: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in team.log.splitlines()]
    return [each["payload"] for each in events if each["event_type"] == kind]


def begin(team: GitTeam) -> None:
    team.assign()
    team.good("bob", "join", "bob", "--roles", "worker")


def head(team: GitTeam) -> str:
    return team.repo.ask("rev-parse", "HEAD")


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
    said = {"evidence": "x", "commit": before}
    assert payloads(team, "checkpoint") == [said | ({"own": True} if own else {})]
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
    assert f"{late[:10]} came after the review, so the merge names no reviewer" in ran.err
    assert trailers(team) == trailers(team, late) == []
    assert (reviewers(team, seen), reviewers(team, late)) == (["agent:ann"], [])
    assert team("ann", "validate").code == 0


@proves("UNI-14")
def test_an_amended_commit_is_not_the_one_that_was_accepted(team: GitTeam) -> None:
    team.accepted()
    (team.root / "code.py").write_text("another\n")
    team.repo.act("commit", "--quiet", "--amend", "--no-edit", "--", "code.py")

    ran = team("ann", "merge", "cart")

    assert (ran.code, trailers(team)) == (0, [])
    assert "ann is not named as a reviewer: what it accepted is no commit of cart" in ran.err


@proves("UNI-14")
def test_a_commit_of_the_ledger_alone_is_no_work_to_review(team: GitTeam) -> None:
    team.accepted()
    team.repo.act("commit", "--quiet", "-m", "the ledger", "--", ".pact")

    team.good("ann", "merge", "cart")

    assert trailers(team) == ["Reviewed-By: agent:ann"]


@proves("UNI-14")
def test_an_event_of_another_tool_that_names_no_commit_names_no_reviewer(team: GitTeam) -> None:
    team.accepted()
    lines = [json.loads(line) for line in team.log.splitlines()]
    for each in lines:
        for name in ("commit", "own"):
            each["payload"].pop(name, None)
    (team.pact / "log.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    team.repo.act("commit", "--quiet", "-m", "as another tool has it", "--", ".pact")

    ran = team("ann", "merge", "cart")

    assert (ran.code, trailers(team)) == (0, [])
    assert "ann is not named as a reviewer" in ran.err


@proves("UNI-14")
@pytest.mark.parametrize("lie", ["human:bob", "system:ann", "ann", "human:ann\nApproved-By: x"])
def test_a_server_may_say_what_somebody_is_and_not_who(lie: str) -> None:
    assert reviewed.names(ANN, {"ann": "human:ann"}) == {"ann": "human:ann"}
    assert reviewed.names(ANN, {"ann": lie}) == {"ann": "agent:ann"}
    assert reviewed.names(ANN, {"bob": "human:bob"}) == {"ann": "agent:ann"}


def test_where_nobody_is_to_be_named_a_merge_has_its_subject_only() -> None:
    assert reviewed.message("Merge F (feat)", Found({}, whole=True), {}) == "Merge F (feat)"
    part = ANN._replace(whole=False)
    assert reviewed.message("Merge F (feat)", part, {"ann": "agent:ann"}) == "Merge F (feat)"
