"""`accord why` on work of a pact: which task it was, who did it and who accepted it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.clients.cli import CommandRun, run_accord
from tests.pact.team import SEATS, assignment
from tests.pact.test_branch_switch import GitTeam

UNSIGNED = "the pact's log here; no signature proves who wrote it"


@pytest.fixture
def team(tmp_path: Path) -> GitTeam:
    return GitTeam(tmp_path / "repo")


def why(team: GitTeam, *words: str, **env: str) -> CommandRun:
    return run_accord("why", *words, cwd=team.root, **env)


def tasks(team: GitTeam, target: str) -> list[dict[str, Any]]:
    (reason,) = why(team, target, "--json").json["reasons"]
    found: list[dict[str, Any]] = reason["accepted"]
    return found


def head(team: GitTeam) -> str:
    return team.repo.run_text("rev-parse", "HEAD")


def test_a_line_of_an_accepted_checkpoint_says_whose_it_is_and_who_accepted_it(
    team: GitTeam,
) -> None:
    team.accepted()
    shown = head(team)
    ran = why(team, "code.py:1", TZ="UTC", COLUMNS="80")
    (task,) = tasks(team, "code.py:1")

    assert ran.code == 0
    assert "There is no recorded decision for this commit" in ran.out
    at = task.pop("at")
    assert ran.out.endswith(
        "\n"
        "  T1 · cart\n"
        "    done by      bob\n"
        f"    accepted by  ann, {at[:10]} {at[11:16]}\n"
        "    evidence     x\n"
        f"    source       {UNSIGNED}\n"
    )
    assert task == {
        "task": "T1",
        "feature": "cart",
        "owner": "bob",
        "by": "ann",
        "commit": shown,
        "evidence": "x",
        "signed": False,
    }
    assert max(map(len, ran.out.splitlines())) <= 80


def test_what_was_shown_with_a_later_commit_names_that_one(team: GitTeam) -> None:
    team.assign()
    team.good("bob", "join", "bob", "--roles", "worker")
    team.commit("two\n")
    early = head(team)
    team.repo.run_with_hooks("commit", "-q", "--allow-empty", "-m", "more")
    team.good("bob", "checkpoint", "T1", "--evidence", "x")
    team.good("ann", "accept", "T1")

    assert f", with all of {head(team)[:10]}" in why(team, early).out


def test_it_is_known_after_the_merge_and_not_of_what_was_there_before(team: GitTeam) -> None:
    before = head(team)
    team.accepted()
    shown = head(team)
    team.good("ann", "merge", "cart")
    team.commit("two\nthree\n")
    late = head(team)

    assert [each["task"] for each in tasks(team, shown)] == ["T1"]
    assert (tasks(team, before), tasks(team, late)) == ([], [])
    whole = why(team, "code.py", "--json").json["reasons"]
    names = {each["commit"]: [task["task"] for task in each["accepted"]] for each in whole}
    assert names == {shown: ["T1"], late: []}
    assert why(team, before).code == 4


def test_a_feature_that_begins_later_did_not_bring_what_was_merged_before(team: GitTeam) -> None:
    team.accepted()
    first = head(team)
    team.good("ann", "merge", "cart")
    team.repo.run_with_hooks("branch", "pay")
    team.good("ann", *assignment("T2", "pay"))
    team.good("bob", "join", "bob", "--roles", "worker")
    assert team.repo.current_branch() == "pay"
    (team.root / "pay.py").write_text("1\n")
    team.repo.run_with_hooks("add", "pay.py")
    team.good("bob", "checkpoint", "T2", "--evidence", "y", "--commit")
    team.good("ann", "accept", "T2")

    assert [each["task"] for each in tasks(team, first)] == ["T1"]
    assert [each["task"] for each in tasks(team, "pay.py:1")] == ["T2"]


def test_what_nobody_accepted_has_no_name(team: GitTeam) -> None:
    team.assign()
    team.good("bob", "join", "bob", "--roles", "worker")
    team.commit("two\n")
    team.good("bob", "checkpoint", "T1", "--evidence", "x")
    assert tasks(team, "HEAD") == []
    team.good("ann", "accept", "T1")
    team.commit("slipped in\n")

    assert tasks(team, "HEAD") == []
    assert [each["task"] for each in tasks(team, "HEAD~1")] == ["T1"]


def test_work_on_the_base_branch_itself_is_known_by_its_own_commit_alone(team: GitTeam) -> None:
    flags = ("--feature", "cart", "--branch", "main", "--owner", "bob", "--reviewer", "ann")
    team.good("ann", "assign", "T1", *flags)
    team.commit("two\n")
    early = head(team)
    team.commit("three\n")
    team.good("bob", "checkpoint", "T1", "--evidence", "x")
    team.good("ann", "accept", "T1")

    assert [each["task"] for each in tasks(team, head(team))] == ["T1"]
    assert tasks(team, early) == []


def test_a_line_that_somebody_else_wrote_into_the_log_accepts_nothing(team: GitTeam) -> None:
    team.assign()
    team.good("bob", "join", "bob", "--roles", "worker")
    team.commit("two\n")
    team.good("bob", "checkpoint", "T1", "--evidence", "x")
    forged = team.events[-1] | {"event_id": "f" * 32, "event_type": "accept"}
    forged["payload"] = {"commit": head(team)}
    with (team.pact / "log.jsonl").open("a") as log:
        log.write(json.dumps(forged) + "\n")

    assert tasks(team, "HEAD") == []


def test_a_signature_that_the_roster_s_key_made_is_told(tmp_path: Path) -> None:
    team = GitTeam.__new__(GitTeam)
    super(GitTeam, team).__init__(tmp_path / "repo")
    from tests.helpers.git.repositories import create_repository

    team.repo = create_repository(team.root, {"code.py": "one\n"})
    homes = {seat: str(tmp_path / seat) for seat in ("ann", "bob")}

    def do(seat: str, *words: str) -> str:
        ran = team(seat, *words, ACCORD_HOME=homes[seat])
        assert ran.code == 0, ran
        return ran.out.strip()

    keys = [f"{seat}={do(seat, 'key')}" for seat in homes]
    seats = [word for each in SEATS[:2] for word in ("--seat", each)]
    do("ann", "init", "--project", "p", *seats, *(w for k in keys for w in ("--key", k)))
    team.repo.run_with_hooks("add", ".")
    team.repo.run_with_hooks("commit", "-qm", "the pact")
    team.repo.run_with_hooks("branch", "cart")
    do("ann", *assignment("T1"))
    do("bob", "join", "bob", "--roles", "worker")
    (team.root / "code.py").write_text("two\n")
    do("bob", "checkpoint", "T1", "--evidence", "x", "--commit")
    do("ann", "accept", "T1")

    assert tasks(team, "HEAD")[0]["signed"] is True
    told = "signed with the reviewer's key from its roster"
    assert told in " ".join(why(team, "HEAD").out.split())
    text = team.log.replace('"evidence":"x"', '"evidence":"y"')
    assert text != team.log
    (team.pact / "log.jsonl").write_text(text)
    assert tasks(team, "HEAD")[0]["signed"] is False


@pytest.mark.parametrize("log", [b"", b"\xff\n", b"{}\n", b'{"event_type":"init"}\n'])
def test_a_pact_that_is_odd_keeps_nobody_from_asking(team: GitTeam, log: bytes) -> None:
    (team.pact / "log.jsonl").write_bytes(log)
    ran = why(team, "HEAD")

    assert (ran.code, "There is no recorded decision" in ran.out) == (4, True)
