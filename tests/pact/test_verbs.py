"""Every verb as one types it, with its refusals and exit codes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from accord.cli.pact.board import render_board
from accord.core.views.pact_board import work_view
from accord.core.work.fold import fold
from accord.core.work.format import log_lines
from tests.helpers.clients.cli import run_accord
from tests.helpers.git.repositories import create_repository
from tests.pact.team import Team, assignment, seats
from tests.spec import proves

DATA = Path(__file__).parents[1] / "data" / "pact"


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path / "work").init()


@proves("PACT-1-1", "PACT-3-1", "PACT-3.1-1", "PACT-3.2-1", "PACT-6.1-1", "UNI-14")
def test_a_task_goes_from_hand_to_hand_in_plain_files(team: Team) -> None:
    team.assign()
    (team.pact / "STATE.yml").write_text("a lie\n")
    team.good("bob", "join", "bob", "--roles", "worker")
    team.good("bob", "checkpoint", "T1", "--evidence", "one")
    team.good("ann", "changes", "T1", "--reason", "more")
    assert "status: changes_requested" in team.state
    team.good("bob", "checkpoint", "T1", "--evidence", "two\nlines")
    team.good("ann", "accept", "T1")
    team.good("ann", "merge", "cart")

    assert team.kinds == [
        *("init", "assign", "join", "checkpoint", "changes_requested", "checkpoint"),
        *("accept", "merge"),
    ]
    assert team.statuses() == {"T1": "accepted"}
    assert "    status: shipped\n" in team.state
    assert "evidence: two lines\n" in team.state
    assert team("cy", "validate").code == 0
    assert sorted(each.name for each in team.pact.iterdir()) == [
        *("PROJECT.md", "STATE.yml", "bin", "log.jsonl", "tasks"),
    ]


def test_each_verb_confirms_in_one_line_what_it_did_and_what_comes_next(tmp_path: Path) -> None:
    repo = create_repository(tmp_path / "repo", {"code.py": "one\n"})
    team = Team(repo.root)
    judge = "`accord pact accept T1` or `accord pact changes T1 --reason …`"
    submit = "`accord pact checkpoint T1 --evidence …`"

    assert team.good("ann", "init", "--project", "demo", *seats()) == (
        "Started the pact demo with the seats ann, bob, cy. "
        "Next: commit the new files, then assign the first task with `accord pact assign`.\n"
    )
    assert team.good("ann", "init", "--project", "demo", *seats()) == (
        "The pact demo exists already; its files are up to date.\n"
    )
    for words in (("add", "."), ("commit", "-qm", "the pact"), ("branch", "cart")):
        repo.run_with_hooks(*words)
    assert team.good("bob", "join", "bob", "--roles", "worker") == (
        "bob joined; nothing waits for you. `accord pact watch` reports changes.\n"
    )
    assert team.good("ann", *assignment("T1")) == (
        "Assigned T1 to bob; ann reviews it. Next: describe it in .pact/tasks/T1.md; "
        "bob starts with `accord pact join bob --roles worker`.\n"
    )
    assert team.good("bob", "join", "bob", "--roles", "worker") == (
        f"bob joined; for you: T1. Next: {submit}.\n"
    )
    team.good("ann", *assignment("T2"))
    assert team.good("bob", "checkpoint", "T1", "--evidence", "x") == (
        f"Submitted T1. Next: ann runs {judge}.\n"
    )
    assert team.good("ann", "join", "ann", "--roles", "reviewer") == (
        f"ann joined; for you: T1. Next: {judge}.\n"
    )
    assert team.good("ann", "changes", "T1", "--reason", "y") == (
        f"Requested changes to T1. Next: bob changes it, then runs {submit}.\n"
    )
    (repo.root / "code.py").write_text("two\n")
    assert team.good("bob", "checkpoint", "T1", "--evidence", "x", "--commit") == (
        f"Committed and submitted T1. Next: ann runs {judge}.\n"
    )
    shown = repo.run_text("rev-parse", "HEAD")[:10]
    assert team.good("ann", "accept", "T1") == (
        f"Accepted T1 at {shown}. Next: cart still needs T2.\n"
    )
    team.good("bob", "checkpoint", "T2", "--evidence", "x")
    assert team.good("ann", "accept", "T2").endswith(
        " Next: `accord pact merge cart` ships the feature.\n"
    )
    assert team.good("ann", "merge", "cart") == (
        f"Merged cart into main as {repo.run_text('rev-parse', 'HEAD')[:10]} and shipped it. "
        "Next: push main.\n"
    )
    assert team.good("ann", "log", "--replay") == "Rebuilt STATE.yml from the log.\n"


def test_a_merge_without_git_confirms_that_no_branch_was_merged(team: Team) -> None:
    team.assign()
    team.good("bob", "checkpoint", "T1", "--evidence", "x")
    team.good("ann", "accept", "T1")

    assert team.good("ann", "merge", "cart") == "Shipped cart; no branch was merged.\n"


@proves("PACT-6.4-1", "PACT-7.1-4")
def test_assign_refuses_an_id_that_a_skipped_assign_used(team: Team) -> None:
    """Another tool may have assigned a task to a shipped feature, which has no effect."""
    team.assign()
    team.good("bob", "checkpoint", "T1", "--evidence", "x")
    team.good("ann", "accept", "T1")
    team.good("ann", "merge", "cart")
    late = team.events[1] | {"event_id": "late", "ts": "2099-01-01T00:00:00Z", "task_id": "T9"}
    hidden = team.events[1] | {"task_id": "T8"}  # the event_id of another event
    with (team.pact / "log.jsonl").open("a") as log:
        log.write("".join(json.dumps(event) + "\n" for event in (late, hidden)))
    before = team.log
    assert team.statuses() == {"T1": "accepted"}

    for task in ("T9", "T8"):
        ran = team("ann", *assignment(task, "pay"))
        assert (ran.code, team.log) == (5, before), ran
        assert f"used the task id {task}" in ran.err
    team.assign("T7", "pay")


@proves("PACT-7.1-1", "PACT-6.5-1", "PACT-3.3-2", "OPEN-101", "OPEN-102")
def test_init_writes_its_files_and_never_the_log_again(team: Team) -> None:
    claude = team.root / "CLAUDE.md"
    claude.write_text(f"# My rules\n{claude.read_text()}after\n")
    before, charter = team.log, (team.pact / "PROJECT.md").read_bytes()

    team.init()
    text = claude.read_text()
    team.init()

    assert (team.log, claude.read_text()) == (before, text)
    assert (team.pact / "PROJECT.md").read_bytes() == charter
    assert text.startswith("# My rules\n")
    assert "after\n" in text
    assert text.count("PACT_AGENT_ID=ann\n") == 1
    again = team("ann", "init", "--project", "other", *seats())
    assert (again.code, team.log) == (5, before)
    assert "never rewritten" in again.err


@proves("PACT-7.1-1", "PACT-5-1", "OPEN-102")
def test_a_refused_init_leaves_nothing_behind(tmp_path: Path) -> None:
    team = Team(tmp_path / "work")
    (tmp_path / "elsewhere").mkdir()
    (team.root / "out").symlink_to(tmp_path / "elsewhere")

    for bad in ("bob:worker:../B.md", "bob:worker", "bob:boss:B.md", "bob:worker:out/B.md"):
        ran = team("ann", "init", "--project", "p", "--seat", "ann:worker:A.md", "--seat", bad)
        assert ran.code == 2, ran

    assert [each.name for each in team.root.iterdir()] == ["out"]


def test_a_linked_entry_file_becomes_one_of_its_own(tmp_path: Path) -> None:
    team = Team(tmp_path / "work")
    (team.root / "CLAUDE.md").write_text("shared rules\n")
    (team.root / "AGENTS.md").symlink_to("CLAUDE.md")

    team.init()

    agents, claude = ((team.root / name).read_text() for name in ("AGENTS.md", "CLAUDE.md"))
    assert "PACT_AGENT_ID=bob" in agents
    assert "PACT_AGENT_ID=bob" not in claude
    assert agents.startswith("shared rules\n")


def test_a_link_that_leads_outside_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    team = Team(tmp_path / "work")
    (tmp_path / "private").write_text("a secret\n")
    (team.root / "AGENTS.md").symlink_to(tmp_path / "private")
    team.pact.mkdir()
    (team.pact / "STATE.yml").symlink_to(tmp_path / "private")

    team.init()

    assert "a secret" not in (team.root / "AGENTS.md").read_text()
    assert (tmp_path / "private").read_text() == "a secret\n"
    (team.pact / "tasks").rmdir()
    (tmp_path / "outside").mkdir()
    (team.pact / "tasks").symlink_to(tmp_path / "outside")
    before = team.log
    assert team("ann", *assignment("T1")).code == 2
    assert (team.log, list((tmp_path / "outside").iterdir())) == (before, [])


VERBS = ("init", "join", "assign", "checkpoint", "accept", "changes", "merge", "status", "log")


@proves("PACT-6.5-2", "OPEN-100", "OPEN-114")
@pytest.mark.parametrize("verb", [*VERBS, "validate", "watch"])
def test_without_a_name_every_verb_is_refused_before_anything_else(
    tmp_path: Path, verb: str
) -> None:
    for name in ({}, {"PACT_AGENT_ID": ""}):
        ran = run_accord("pact", verb, cwd=tmp_path, **name)
        assert (ran.code, ran.out) == (3, "")
        assert "PACT_AGENT_ID not set" in ran.err
    assert list(tmp_path.iterdir()) == []


@proves("PACT-7.1-19", "PACT-7-1", "OPEN-100")
def test_help_needs_no_name_and_tells_verbs_and_rules(tmp_path: Path) -> None:
    ran = run_accord("pact", "help", cwd=tmp_path)

    assert ran.code == 0
    for word in (*VERBS, "validate", "help", "No one accepts their own work", "every one of"):
        assert word in ran.out


@pytest.mark.parametrize(
    "words", [["status"], ["log"], ["log", "--replay"], ["validate"], ["watch"]]
)
def test_where_there_is_no_pact_that_is_said(tmp_path: Path, words: list[str]) -> None:
    team = Team(tmp_path / "work")
    ran = team("ann", *words)

    assert (ran.code, ran.out, "no pact here yet" in ran.err) == (4, "", True)
    assert list(team.root.iterdir()) == []
    team.pact.mkdir()
    (team.pact / "log.jsonl").touch()
    assert team("ann", *words) == ran
    assert list(team.pact.iterdir()) == [team.pact / "log.jsonl"]


# What is said, by whom, and the exit code; a refusal is one sentence and changes nothing.
REFUSALS = [
    ("eve", ["join", "eve", "--roles", "worker"], 3, "not a seat"),
    ("bob", ["join", "ann", "--roles", "worker"], 3, "PACT_AGENT_ID=ann"),
    ("bob", ["join", "bob"], 2, "Roles"),
    ("bob", ["join"], 2, "which seat"),
    ("ann", assignment("T2", reviewer="bob"), 3, "separation of duties"),
    ("ann", assignment("T2", reviewer="eve"), 4, "eve"),
    ("ann", assignment("../T2"), 2, "Task id"),
    ("ann", assignment("T1"), 5, "already exists"),
    ("ann", ["assign", "T2"], 2, "--feature"),
    ("bob", ["checkpoint", "T1"], 2, "--evidence"),
    ("bob", ["checkpoint", "T1", "--evidence", " "], 2, "--evidence"),
    ("bob", ["checkpoint", "T9", "--evidence", "x"], 4, "no task T9"),
    ("ann", ["checkpoint", "T1", "--evidence", "x"], 3, "owner: bob"),
    ("bob", ["accept", "T1"], 3, "Only the reviewer (ann)"),
    ("ann", ["accept", "T1"], 5, "assigned"),
    ("ann", ["changes", "T1"], 2, "--reason"),
    ("ann", ["changes", "T1", "--reason", "x"], 5, "assigned"),
    ("ann", ["merge", "cart"], 5, "these tasks are not accepted: T1"),
    ("ann", ["merge", "none"], 4, "no feature none"),
    ("ann", ["merge", "cart", "--force"], 2, "no flag --force"),
    ("ann", ["assign", "T2", "--deps", "x"], 2, "no flag --deps"),
    ("bob", ["checkpoint", "T1", "--evidence", "x", "--commit"], 5, "needs a git repository"),
    ("Bob!", ["accept", "T1"], 2, "not a valid seat name"),
]


@proves("PACT-5-1", "OPEN-114", "OPEN-100", "OPEN-108", "PACT-7-1")
def test_refusals_are_a_sentence_a_code_and_nothing_else(team: Team) -> None:
    team.assign()
    before = team.log

    for seat, words, code, said in REFUSALS:
        ran = team(seat, *words)
        assert (ran.code, ran.out, said in ran.err) == (code, "", True), (words, ran)
    assert team.log == before


@proves("PACT-7.1-3", "PACT-3.4-1", "OPEN-109", "OPEN-108")
def test_assign_makes_the_tasks_file_and_never_over_another(team: Team) -> None:
    (team.pact / "tasks" / "T2.md").write_text("mine\n")
    team.assign("T1")
    team.assign("T2")
    team.good("ann", *assignment("T3"), "--spec", "docs/t3.md")

    assert (team.pact / "tasks" / "T1.md").read_text().startswith("---\nid: T1\nfeature: cart\n")
    assert (team.pact / "tasks" / "T2.md").read_text() == "mine\n"
    assert [event["payload"]["spec"] for event in team.events[1:]] == [
        *(".pact/tasks/T1.md", ".pact/tasks/T2.md", "docs/t3.md"),
    ]


@proves("OPEN-96", "PACT-7.1-5")
def test_a_checkpoint_of_an_assigned_task_joins_first(team: Team) -> None:
    team.assign()
    done = json.loads(team.good("bob", "checkpoint", "T1", "--evidence", "x", "--json"))

    assert team.kinds[2:] == ["join", "checkpoint"]
    assert done["events"] == [event["event_id"] for event in team.events[2:]]


@proves("OPEN-99")
def test_a_role_that_the_roster_does_not_foresee_warns_or_binds(team: Team) -> None:
    words = assignment("T1")

    strict = team("bob", *words, "--strict-roles")
    lax = team("bob", *words)

    assert (strict.code, "does not have the role orchestrator" in strict.err) == (3, True)
    assert (lax.code, "does not have the role orchestrator" in lax.err) == (0, True)
    assert [event["role"] for event in team.events] == ["orchestrator", "orchestrator"]


@proves("PACT-7.1-9", "OPEN-112", "PACT-3.2-1")
def test_status_is_fresh_whatever_the_file_says_and_writes_nothing(team: Team) -> None:
    team.assign()
    right = team.state
    (team.pact / "STATE.yml").write_text("<<<<<<< ours\n")

    ran = team("bob", "status")

    assert (ran.code, ran.out) == (0, right)
    assert "drift" in ran.err
    assert team.state == "<<<<<<< ours\n"
    (team.pact / "STATE.yml").unlink()
    assert "missing" in team("bob", "status").err


@proves("OPEN-106")
def test_a_last_line_without_its_line_break_is_read_and_the_next_event_follows_it(
    team: Team,
) -> None:
    team.assign()
    log = team.pact / "log.jsonl"
    log.write_bytes(log.read_bytes().removesuffix(b"\n"))
    assert team.statuses() == {"T1": "assigned"}
    assert team("ann", "validate").code == 0

    team.good("bob", "join", "bob", "--roles", "worker")

    assert team.kinds == ["init", "assign", "join"]
    assert team.statuses() == {"T1": "in_progress"}
    assert team("ann", "validate").code == 0


@proves("PACT-7.1-10", "PACT-8-1", "OPEN-112", "PACT-7.1-11")
def test_replay_rebuilds_the_state_however_often(team: Team) -> None:
    team.assign()
    right = team.state
    for _ in range(2):
        (team.pact / "STATE.yml").write_text("garbage\n")
        found = team("ann", "validate")
        assert (found.code, "drift" in found.out) == (2, True)
        team.good("ann", "log", "--replay")
        assert team.state == right
    assert team.good("ann", "log") == team.log
    assert json.loads(team.good("ann", "log", "--json")) == team.events


def test_the_board_is_for_people(team: Team) -> None:
    team.assign("T1")
    team.assign("T2", "pay")
    team.good("bob", "checkpoint", "T1", "--evidence", "\x1b[2Jall good")

    board = team.good("ann", "status", "--board")

    assert "cart  awaiting review  (0 of 1 task accepted, branch cart)" in board
    assert re.search(r"T1 +awaiting review +bob → ann  \\x1b\[2Jall good", board)
    assert "pay  in progress" in board


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_the_board_fits_where_it_is_shown(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real log with long names and long evidence."""
    monkeypatch.setenv("COLUMNS", str(columns))
    work = fold(log_lines.parse_log((DATA / "pactify-log.jsonl").read_bytes()).entries)
    shown = list(render_board(work_view(work)))
    arrows = {each.index("→") for each in shown if "→" in each and " claude →" in each}
    said = [each for each in shown if "→" in each and each.endswith("…")]

    head = shown[: shown.index("")]
    assert "\n".join(head).count("(") == len(work.seats)
    assert all(len(each) <= columns for each in head)
    assert len(arrows) == 1, "names are below each other"
    assert {len(each) for each in said} <= {min(columns, 100)}
    assert bool(said) == (columns > 60)


@proves("OPEN-107")
def test_the_extended_view_is_asked_for(team: Team) -> None:
    team.assign()
    with (team.pact / "log.jsonl").open("a") as log:
        started = team.events[1] | {"event_type": "start", "event_id": "x", "payload": {}}
        log.write(json.dumps(started) + "\n")

    def status(*words: str) -> str:
        shown = json.loads(team.good("ann", "status", "--json", *words))
        return str(shown["features"][0]["tasks"][0]["status"])

    assert (status(), status("--extended")) == ("assigned", "in_progress")
    assert team("ann", "validate").code == 0


@proves("PACT-7.1-18", "OPEN-106", "PACT-8-3")
def test_validate_tells_every_finding_with_its_line(team: Team) -> None:
    team.assign()
    good = team.events[1]
    with (team.pact / "log.jsonl").open("a") as log:
        log.write("not json\n")
        log.write(json.dumps(good | {"event_id": "2"}) + "\n")
        log.write(json.dumps(good | {"event_id": "", "task_id": "T2", "agent_id": "eve"}) + "\n")
        log.write('{"torn":')

    ran = team("ann", "validate")
    told = [line.split(":")[0] for line in ran.out.splitlines()]

    assert ran.code == 2
    assert told[:5] == [
        "error (line) line 3",
        "error (line) line 6",
        "error (b) line 5",
        "error (e) line 4",
        "error (g) line 5",
    ]
    found = json.loads(team("ann", "validate", "--json").out)
    assert (found["valid"], found["findings"][0]["line"]) == (False, 3)


@proves("OPEN-106")
@pytest.mark.parametrize("bad", ["not json\n", '{"event_id":"half', "[]\n"])
def test_nothing_is_written_behind_a_line_that_cannot_be_read(team: Team, bad: str) -> None:
    team.assign()
    with (team.pact / "log.jsonl").open("a") as log:
        log.write(bad)
    before = team.log

    ran = team("ann", *assignment("T2"))

    assert (ran.code, "line 3" in ran.err) == (5, True), ran
    assert team.log == before
    assert team("ann", "status").code == 0
    assert team.good("ann", "log") == before


@proves("PACT-1.2-4", "OPEN-113", "PACT-7.1-16", "OPEN-134")
def test_a_later_version_stops_everything_but_help_and_validate(team: Team) -> None:
    later = team.events[0]
    later["payload"]["protocol_version"] = 2
    (team.pact / "log.jsonl").write_text(json.dumps(later) + "\n")
    before = team.log

    for words in (["status"], ["log"], ["log", "--replay"], ["watch"], assignment("T1")):
        ran = team("ann", *words)
        assert (ran.code, ran.out, "upgrade" in ran.err) == (2, "", True), words
    assert team("ann", "validate").code == 2
    assert "error (f)" in team("ann", "validate").out
    assert team("ann", "help").code == 0
    assert team.log == before


@proves("PACT-3.4-3")
def test_a_task_file_that_contradicts_the_log_is_told(team: Team) -> None:
    team.assign()
    file = team.pact / "tasks" / "T1.md"
    file.write_text(file.read_text().replace("owner: bob", "owner: cy"))

    ran = team("ann", "validate")

    assert (ran.code, "owner is cy in the file, but bob in the log" in ran.out) == (0, True)


@proves("PACT-7-2", "PACT-3.5-1")
def test_shells_have_the_verbs_as_functions(team: Team, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "accord"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nexec python -m accord "$@"\n')
    tool.chmod(0o755)
    line = "source .pact/bin/pact.sh && pact_join bob --roles worker >&2 && pact_status"
    path = f"{tool.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PACT_AGENT_ID": "bob"}

    done = subprocess.run(
        ["bash", "-c", line], cwd=team.root, env=env, capture_output=True, text=True, check=False
    )
    helped = subprocess.run(
        ["bash", ".pact/bin/pact.sh", "--help"],
        cwd=team.root,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, team.state), done.stderr
    assert team.kinds[-1] == "join"
    assert "The two rules" in helped.stdout


def test_another_directory_can_be_named(tmp_path: Path) -> None:
    team = Team(tmp_path / "work").init(PACT_DIR="team")

    assert not (team.root / ".pact").exists()
    assert team("ann", "status", PACT_DIR="team").out.startswith("project: demo\n")
    away = run_accord(
        *("pact", "status"), cwd=tmp_path, PACT_AGENT_ID="ann", PACT_DIR=str(team.root / "team")
    )
    assert away.code == 0


def test_a_pact_is_found_from_below(tmp_path: Path) -> None:
    repo = create_repository(tmp_path / "repo")
    team = Team(repo.root).init()
    below = team.root / "src" / "deep"
    below.mkdir(parents=True)

    assert run_accord("pact", "status", cwd=below, PACT_AGENT_ID="ann").out == team.state
    assert (team.root / ".gitattributes").read_text() == (
        ".pact/log.jsonl merge=union\n.pact/STATE.yml merge=union\n"
    )
    assert team.events[0]["payload"]["base_branch"] == "main"


@proves("PACT-6.2-3", "PACT-6.3-2", "OPEN-136")
def test_seats_are_names_that_init_declares_and_nothing_adds_one(team: Team) -> None:
    assert team("dee", "join", "dee", "--roles", "worker").code == 3
    assert all(set(seat) == {"id", "roles", "entry"} for seat in team.events[0]["payload"]["seats"])
    assert team.events[0]["payload"]["protocol_version"] == 1
