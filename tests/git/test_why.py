"""From a line of code to what led there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.git.conftest import SESSION
from tests.git.records.test_relink import branch, forge
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.measure.cpu_time import machine_slowdown, measure_child_cpu
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves


def test_a_squashed_commit_leads_to_all_its_decisions_and_a_line_to_those_of_its_file(
    session: WorkTree,
) -> None:
    ids = branch(session)
    forge(session, "All of it (#7)")
    whole, line = session.accord("why", "HEAD"), session.accord("why", "a.txt:2")

    assert (whole.code, line.code) == (0, 0), line.err
    assert "follows from 2 decisions, found by a branch it squashed" in whole.out
    assert all(id in whole.out for id in ids)
    assert whole.out.count(" on topic") == 2
    assert "a.txt:2\n  │ 2\n" in line.out
    assert "All of it (#7)" in line.out
    assert "follows from 1 decision, found by a branch it squashed" in line.out
    assert sum(id in line.out for id in ids) == 1


def test_a_line_that_was_moved_or_indented_keeps_its_reason(session: WorkTree) -> None:
    long = "    a_line_that_is_long_enough_for_git_to_see_it_move()\n"
    first = session.commit("feat: begin", "a.py", f"{long}one\ntwo\n")
    session.commit("refactor: move", "a.py", f"one\ntwo\n    {long}")
    ran = session.accord("why", "a.py:3", "--json")

    assert ran.json["reasons"][0]["commit"] == first


def test_commits_that_the_repository_ignores_are_passed_over(session: WorkTree) -> None:
    first = session.commit("feat: begin", "a.py", "alpha = one\n")
    second = session.commit("style: reformat", "a.py", "alpha = 'one'\n")
    session.commit("chore: ignore it", ".git-blame-ignore-revs", f"{second}\n")

    assert session.accord("why", "a.py:1", "--json").json["reasons"][0]["commit"] == first


def test_a_file_tells_of_each_commit_behind_it(session: WorkTree) -> None:
    session.commit("feat: one", "a.txt", "1\n2\n3\n")
    session.commit("feat: two", "a.txt", "1\n2\n3\n4\n")
    ran = session.accord("why", "a.txt")

    assert ran.code == 0
    assert ran.out.index("feat: one") < ran.out.index("feat: two")
    assert "a.txt, 3 lines" in ran.out


def test_a_line_that_is_not_committed_has_no_reason_yet(session: WorkTree) -> None:
    session.commit("feat: one", "a.txt", "1\n")
    (session.path / "a.txt").write_text("1\nmine\n")

    assert "not committed yet" in session.accord("why", "a.txt:2").out


@pytest.mark.parametrize(
    ("word", "code"),
    [("nothing.txt:1", 4), ("a.txt:99", 4), ("a.txt:0", 2), ("--help-me", 2), ("-x", 2)],
)
def test_why_says_what_it_cannot_find(session: WorkTree, word: str, code: int) -> None:
    session.commit("feat: one", "a.txt", "1\n")
    ran = session.accord("why", word)

    assert ran.code == code
    assert ran.err.startswith("accord")


def test_without_a_record_the_message_speaks_for_itself(plain: WorkTree) -> None:
    plain.commit("feat: one\n\nPVP-Session: ses_9\nDecision-By: human:zoe")
    ran = plain.accord("why", "HEAD")

    assert ran.code == 4
    assert "There is no recorded decision" in ran.out
    assert "human:zoe, according to the message" in ran.out


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_why_fits_the_width_of_the_terminal(session: WorkTree, columns: int) -> None:
    told = {"COLUMNS": str(columns), "PVP_DECISION_BY": ",".join(f"human:p{n}" for n in range(20))}
    session.with_environment(**told).commit(
        f"feat: {'a long header ' * 4}", "a.txt", "x = 1 + 1 " * 20 + "\n"
    )
    shown = session.with_environment(**told).accord("why", "a.txt:1").out

    assert max(map(len, shown.splitlines())) <= columns
    assert "    decided by   human:p0, human:p1" in shown
    assert "human:p18 and human:p19" in " ".join(shown.split())


def test_words_of_others_cannot_steer_the_terminal(session: WorkTree) -> None:
    session.commit("feat: \x1b[2Jone", "a.txt", "\x1b]0;owned\x07\n")
    ran = session.accord("why", "a.txt:1")

    assert "\x1b" not in ran.out


def test_outside_a_repository_a_sentence_says_so(plain: WorkTree, tmp_path: Path) -> None:
    ran = plain.in_directory(tmp_path / "home").accord("why", "a.txt:1")

    assert (ran.code, "not in a git repository" in ran.err) == (4, True)


def test_a_server_that_is_named_tells_what_was_said(
    session: WorkTree, server: ServerProcess, tmp_path: Path
) -> None:
    person = {"ACCORD_URL": server.url, "ACCORD_TOKEN": server.admin_token}
    someone = session.with_environment(**person)
    id = someone.accord("session", "create", "--name", "Rounding").out.strip()
    told = someone.with_environment(ACCORD_SESSION=id)
    (tmp_path / "notes.md").write_text("Round once, at the end")
    notes = str(tmp_path / "notes.md")
    ran = told.accord("session", "context", id, "add", "rounding", notes)
    assert ran.code == 0, ran.err
    log = [json.loads(row) for row in told.accord("session", "log", "--json").out.splitlines()]
    (prompt,) = [each["id"] for each in log if each["type"] == "context.add"]
    told.with_environment(PVP_SESSION_ID=id, PVP_MESSAGES=prompt).commit("fix: round once")

    assert "rounding" in told.accord("why", "file.txt:1").out
    assert "rounding" not in told.accord("why", "file.txt:1", "--offline").out
    assert "rounding" not in session.accord("why", "file.txt:1").out


# Coverage, tree, aliases


@proves("OPEN-58", "PVP-18.4-3")
def test_a_push_is_only_warned_of_unless_the_repository_wants_more(
    session: WorkTree, work: WorkTree, tmp_path: Path
) -> None:
    remote = WorkTree.create(tmp_path, "remote", "--bare")
    work.git("remote", "add", "origin", str(remote.path))
    session.commit("feat: covered")
    work.commit("not covered", "b.txt")
    assert "accord" not in work.run("git", "push", "-q", "origin", "main").err
    work.git("config", "accord.minCoverage", "80")
    work.git("switch", "-qc", "topic")
    work.commit("again not", "c.txt")
    ran = work.run("git", "push", "-q", "origin", "topic")
    assert ran.code == 0
    assert "0 of 1 commits say how they were decided; this repository requires 80 %" in ran.err
    work.commit("and again", "d.txt")
    work.git("config", "accord.enforceMetadata", "true")
    work.git("config", "accord.warnOnly", "false")

    assert work.run("git", "push", "-q", "origin", "topic").code == 1


def test_coverage_of_a_range_has_a_threshold(session: WorkTree, work: WorkTree) -> None:
    session.commit("feat: covered")
    work.commit("not covered", "b.txt")
    ran = work.accord("git", "coverage", "--threshold", "50")
    assert (ran.code, ran.out.splitlines()[0]) == (
        0,
        "50 %  1 of 2 commits with PVP trailers; 1 with a record",
    )

    assert work.accord("git", "coverage", "HEAD~1..HEAD", "--threshold", "50%").code == 5
    assert work.accord("git", "coverage", "nowhere..HEAD").code == 4
    work.git("notes", "--ref=pvp", "copy", "HEAD~1", "HEAD")
    assert work.accord("git", "coverage", "--threshold", "80").code == 5
    told = work.accord("git", "coverage", "--records", "--threshold", "80")
    assert (told.code, told.out.split(";")[0]) == (
        *(0, "100 %  2 of 2 commits with PVP trailers or a record"),
    )
    assert work.accord("git", "coverage", "--threshold", "101").code == 2


@proves("PVP-18.5-1", "OPEN-77")
def test_the_tree_has_forks_as_branches_and_merges_as_merge_commits(session: WorkTree) -> None:
    session.commit("feat: begin")
    made = session.accord("git", "branch", "fork x/1").out.strip()
    assert made == "pvp/fork_20_x_2f_1"
    session.git("switch", "-q", made)
    session.with_environment(PVP_FORK_ID="fork x/1").commit("explore: aside", "b.txt")
    session.git("switch", "-q", "main")
    session.git(
        "merge",
        "-q",
        "--no-ff",
        "-m",
        f"feat: take it\n\nPVP-Session: {SESSION['PVP_SESSION_ID']}\nDecision-By: human:alice",
        made,
    )
    ran = session.accord("git", "tree")

    trunk, fork = ran.out.split("└─ ")
    assert trunk.startswith(f"{SESSION['PVP_SESSION_ID']}\n├─ trunk ↔ main\n")
    assert "◆" in trunk
    assert "← fork fork x/1" in trunk
    assert fork.startswith(f"fork fork x/1 ↔ {made}  merged by {session.head()[:10]}")
    told = session.accord("git", "tree", "--json").json["sessions"][0]["forks"][1]
    assert (told["fork"], told["merged_by"]) == ("fork x/1", session.head())


@proves("OPEN-75", "GIT-ALIAS-1", "GIT-ALIAS-2", "GIT-ALIAS-3", "GIT-ALIAS-4")
def test_aliases_find_what_trailers_say_and_nothing_else(work: WorkTree, tmp_path: Path) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    (place / "accord").write_text(f'#!/bin/sh\nexec {sys.executable} -m accord "$@"\n')
    (place / "accord").chmod(0o755)
    work.accord("git", "install", "--aliases")
    work.with_environment(PVP_SESSION_ID="ses1", PVP_DECISION_BY="human:al").commit("feat: one")
    work.with_environment(PVP_SESSION_ID="ses12", PVP_DECISION_BY="human:alan").commit(
        "feat: two", "b.txt"
    )
    work.commit(
        "feat: three\n\nPVP-Session: ses1 said\nDecision-By: human:al\nin the text.", "c.txt"
    )
    with_path = work.with_environment(PATH=f"{place}{os.pathsep}{work.env['PATH']}")

    assert [each[11:] for each in with_path.git("pvp-session", "ses1").splitlines()] == [
        "feat: one"
    ]
    assert [each[11:] for each in with_path.git("pvp-by", "al").splitlines()] == ["feat: one"]
    assert [each[11:] for each in with_path.git("pvp-by", "human:alan").splitlines()] == [
        "feat: two"
    ]
    assert "Session: ses12" in with_path.git("pvp-log")
    assert '"version": 1' in with_path.git("pvp-notes", "HEAD~1")


# Speed

SIZES = [
    2000,
    pytest.param(50_000, marks=pytest.mark.long),
]


def history(work: WorkTree, size: int) -> None:
    """So many commits, the first of which wrote the line that is asked about."""
    with subprocess.Popen(
        ["git", "fast-import", "--quiet"], cwd=work.path, env=work.env, stdin=subprocess.PIPE
    ) as git:
        assert git.stdin
        for number in range(size):
            message = f"feat: change {number}\n\nPVP-Session: ses_{number}\nDecision-By: human:a\n"
            path, content = f"src/d{number % 50}/f{number % 1000}.py", f"x = {number}\n"
            if not number:
                path, content = "old.py", "".join(f"line {n}\n" for n in range(200))
            git.stdin.write(
                f"commit refs/heads/main\ncommitter A <a@b> {1_700_000_000 + number} +0000\n"
                f"data {len(message)}\n{message}\nM 100644 inline {path}\n"
                f"data {len(content)}\n{content}\n".encode()
            )
    work.git("reset", "-q", "--hard", "main")


@pytest.mark.parametrize("size", SIZES)
def test_a_line_is_explained_within_a_second(plain: WorkTree, size: int) -> None:
    history(plain, size)
    assert plain.accord("git", "install").code == 0
    plain.with_environment(PVP_SESSION_ID="ses_1").commit(
        "feat: last", "old.py", "first\n" + "".join(f"line {n}\n" for n in range(200))
    )
    ran, took = plain.accord("why", "old.py:150", "--offline", "--json"), []
    for _ in range(3):
        again, cpu = measure_child_cpu(
            lambda: plain.accord("why", "old.py:150", "--offline", "--json")
        )
        assert again.code == ran.code
        took.append(cpu / machine_slowdown())
    print(f"\n{size} commits: {min(took):.2f} s for a line")

    assert ran.json["reasons"][0]["subject"] == "feat: change 0"
    assert min(took) < 1.0
