"""A repository that somebody prepared: nothing leaks, nothing hangs, nothing is half done."""

import json
import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.verbs import ActingSeat, Assignment
from accord.pact import verbs
from accord.pact.location import find_location
from accord.pact.workspace import Workspace
from tests.core.work.story import line, log
from tests.helpers.git.repositories import create_repository
from tests.pact.team import SEATS, Team
from tests.spec import proves

T1 = Assignment("T1", "cart", "cart", "bob", "ann")


def at(root: Path, seat: str = "ann") -> tuple[Workspace, ActingSeat]:
    return Workspace(find_location(root), seat), ActingSeat(seat)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A repository without a pact."""
    return create_repository(tmp_path / "repo").root


@pytest.fixture
def root(bare: Path) -> Path:
    """One with a pact in its last commit, and a branch for the work."""
    verbs.init(*at(bare), "demo", SEATS, "")
    for words in (("add", "."), ("commit", "-qm", "the pact"), ("branch", "cart")):
        subprocess.run(["git", "-C", str(bare), *words], check=True)
    return bare


# The files that `init` looks after


def test_a_project_that_is_named_like_a_marker_leaves_nothing_behind(bare: Path) -> None:
    with pytest.raises(Refused, match="must not contain") as no:
        verbs.init(*at(bare), "a <!-- pact:end -->", SEATS, "")

    assert no.value.reason is Reason.MALFORMED
    assert not (bare / ".pact").exists()


@pytest.mark.parametrize("said", [b"caf\xe9\n", b"one\r\ntwo\r\n"])
@pytest.mark.parametrize("name", ["CLAUDE.md", ".gitattributes"])
def test_what_others_wrote_stays_to_the_byte(bare: Path, name: str, said: bytes) -> None:
    """In whatever encoding, with whatever line ends."""
    (bare / name).write_bytes(said)

    verbs.init(*at(bare), "demo", SEATS, "")
    once = (bare / name).read_bytes()
    verbs.init(*at(bare), "demo", SEATS, "")

    assert once.startswith(said.rstrip())
    assert once.count(b"\r\n") >= said.count(b"\r\n") - 1
    assert (bare / name).read_bytes() == once


def test_attributes_that_lead_outside_are_not_copied_in(bare: Path, tmp_path: Path) -> None:
    (tmp_path / "private").write_text("a secret\n")
    (bare / ".gitattributes").symlink_to(tmp_path / "private")

    verbs.init(*at(bare), "demo", SEATS, "")

    assert "a secret" not in (bare / ".gitattributes").read_text()
    assert (tmp_path / "private").read_text() == "a secret\n"


@pytest.mark.timeout(60)
def test_a_pipe_for_a_state_holds_up_no_switch_of_branches(root: Path) -> None:
    verbs.assign(*at(root), T1)
    (root / ".pact" / "STATE.yml").unlink()
    os.mkfifo(root / ".pact" / "STATE.yml")

    done = verbs.join(*at(root, "bob"), "worker", "bob", git=True)

    assert done.notes == ["switched to branch cart"]
    assert (root / ".pact" / "STATE.yml").is_file()


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_every_shell_can_source_the_functions(root: Path, tmp_path: Path, shell: str) -> None:
    """Arguments arrive as they were typed, and none of them is run."""
    tool = tmp_path / "bin" / "accord"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    tool.chmod(0o755)
    env = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
    line = """. .pact/bin/pact.sh; pact_checkpoint T1 --evidence '$(touch x); `touch x` * -n'"""

    done = subprocess.run(
        [shell, "-euc", line], cwd=root, env=env, capture_output=True, text=True, check=False
    )

    said = "pact\ncheckpoint\nT1\n--evidence\n$(touch x); `touch x` * -n\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    assert not (root / "x").exists()


# Names in a log that somebody wrote by hand


def by_hand(root: Path, **fields: object) -> None:
    event = line("assign", "ann", "T1", "cart", owner="bob", reviewer="ann", spec="t.md")
    event["payload"] |= fields
    with (root / ".pact" / "log.jsonl").open("ab") as file:
        file.write(log(event))


def test_a_branch_that_is_a_flag_of_git_moves_nobody(root: Path) -> None:
    repository = find_location(root).repository
    assert repository
    repository.run("update-ref", "refs/heads/--detach", "HEAD")
    by_hand(root, branch="--detach")

    done = verbs.join(*at(root, "bob"), "worker", "bob", git=True)

    assert repository.current_branch() == "main"
    assert done.notes == [
        "'--detach', the branch of your task in the log, is not a valid branch name"
    ]


def test_no_feature_ships_into_a_base_that_is_a_flag_of_git(root: Path) -> None:
    log_file = root / ".pact" / "log.jsonl"
    log_file.write_bytes(
        log_file.read_bytes().replace(b'"base_branch":"main"', b'"base_branch":"--detach"')
    )
    repository = find_location(root).repository
    assert repository
    repository.run("update-ref", "refs/heads/--detach", "HEAD")
    by_hand(root, branch="cart")
    verbs.checkpoint(*at(root, "bob"), "T1", "it works", commit=False)
    verbs.accept(*at(root), "T1")

    with pytest.raises(Refused, match="The base branch --detach does not exist"):
        verbs.merge(*at(root), "cart", git=True)

    assert repository.current_branch() == "main"


def test_a_command_that_is_suggested_does_only_what_it_says(root: Path) -> None:
    by_hand(root, branch="x;rm$IFS-rf")

    done = verbs.join(*at(root, "bob"), "worker", "bob", git=True)

    assert done.notes == [
        "branch x;rm$IFS-rf does not exist yet; `git switch -c 'x;rm$IFS-rf'` creates it"
    ]


def test_a_note_steers_no_terminal(root: Path) -> None:
    by_hand(root, branch="\x1b[2J\nforged")

    ran = Team(root)("bob", "join", "bob", "--roles", "worker")

    assert ran.code == 0
    assert "\x1b" not in ran.err
    assert ran.err.count("\n") == 1


def test_no_name_in_a_log_forges_a_line_of_the_state(root: Path) -> None:
    by_hand(root, branch="cart\n    status: shipped", spec="t\n        status: accepted")

    text = at(root)[0].check_state_file()[1].decode()

    assert [each.strip() for each in text.splitlines() if "status:" in each] == [
        "branch: cart     status: shipped",
        "status: in_progress",
        "status: assigned",
        "spec: t         status: accepted",
    ]


def test_whoever_does_what_the_roster_does_not_foresee_hears_that_it_counts(root: Path) -> None:
    lax = verbs.assign(*at(root, "bob"), T1)
    joined = verbs.join(*at(root), "orchestrator,reviewer", "ann", git=False)

    (note,) = lax.notes
    assert note.startswith(
        "bob does not have the role orchestrator in the roster (worker); the event was recorded"
    )
    assert note.endswith("--strict-roles would refuse it")
    assert joined.notes == []


# Times and STATE.yml


@pytest.mark.parametrize("ts", ["9999-12-31T23:59:59.5Z", "9999-12-31T23:59:59Z"])
def test_the_end_of_time_stops_nobody_and_is_told(root: Path, ts: str) -> None:
    event = line("join", "bob", roles=["worker"]) | {"ts": ts}
    with (root / ".pact" / "log.jsonl").open("ab") as file:
        file.write(log(event))

    verbs.assign(*at(root), T1)
    verbs.checkpoint(*at(root, "bob"), "T1", "it works", commit=False)
    verbs.accept(*at(root), "T1")

    desk = at(root)[0]
    assert desk.load_checked().work.tasks["T1"].status == "accepted"
    assert "time" in {each.check for each in desk.validate() if each.warning}


@proves("PACT-3.1-1", "PACT-5-3")
def test_a_state_file_that_lies_ships_nothing_and_is_told(root: Path) -> None:
    """Rule 2 is decided by the log alone."""
    verbs.assign(*at(root), T1)
    verbs.checkpoint(*at(root, "bob"), "T1", "it works", commit=False)
    state = root / ".pact" / "STATE.yml"
    state.write_text(state.read_text().replace("awaiting_review", "accepted"))
    desk = at(root)[0]
    assert {each.check for each in desk.validate()} == {"a"}

    with pytest.raises(Refused, match="these tasks are not accepted: T1"):
        verbs.merge(*at(root, "bob"), "cart", git=False)

    desk.rebuild_state_file()
    assert desk.validate() == []


# Lines that hide other lines


def assigned_twice(root: Path) -> None:
    """A feature of two tasks, of which one is accepted."""
    verbs.assign(*at(root), T1)
    verbs.assign(*at(root), msgspec.structs.replace(T1, task="T2"))
    verbs.checkpoint(*at(root, "bob"), "T1", "it works", commit=False)
    verbs.accept(*at(root), "T1")


def hiding(root: Path) -> bytes:
    """A line that takes the id of the second assignment, and says nothing."""
    lines = at(root)[0].ledger.read()[0].splitlines()
    id = next(each["event_id"] for each in map(json.loads, lines) if each["task_id"] == "T2")
    return log(line("noop", "bob", id=id))


@proves("OPEN-103", "PACT-5-3")
@pytest.mark.parametrize("git", [True, False])
def test_no_line_hides_a_task_from_the_second_rule(root: Path, git: bool) -> None:
    assigned_twice(root)
    with (root / ".pact" / "log.jsonl").open("ab") as file:
        file.write(hiding(root))
    desk = at(root)[0]
    assert "T2" not in desk.load_checked().work.tasks, "two v1 tools agree on the state"

    with pytest.raises(Refused, match="different events have the event_id") as no:
        verbs.merge(*at(root, "bob"), "cart", git=git)

    assert no.value.reason is Reason.DAMAGED
    assert "id" in {each.check for each in desk.validate() if not each.warning}


def test_no_rewritten_line_hides_a_task_that_the_base_knows(root: Path) -> None:
    assigned_twice(root)
    repository = find_location(root).repository
    assert repository
    repository.run("commit", "-qam", "two tasks", hooks=True)
    file = root / ".pact" / "log.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(hiding(root) if b'"T2"' in each else each for each in lines))

    with pytest.raises(Refused, match="different events have the event_id"):
        verbs.merge(*at(root, "bob"), "cart", git=True)


def test_another_roster_with_an_earlier_time_is_told_as_an_error(root: Path) -> None:
    seats = [{"id": name, "roles": ["worker"], "entry": f"{name}.md"} for name in ("ann", "bob")]
    usurped = line(
        "init", "ann", project="demo", protocol_version=1, seats=seats, base_branch="main"
    )
    with (root / ".pact" / "log.jsonl").open("ab") as file:
        file.write(log(usurped | {"role": "orchestrator"}))

    told = {each.check for each in at(root)[0].validate() if not each.warning}

    assert "roster" in told


def test_what_may_be_in_a_line_that_cannot_be_read_is_not_said_to_be_missing(root: Path) -> None:
    with (root / ".pact" / "log.jsonl").open("ab") as file:
        file.write(b"not json\n")

    with pytest.raises(Refused, match="line 2: The line is not valid JSON"):
        verbs.checkpoint(*at(root, "bob"), "T1", "it works", commit=False)
