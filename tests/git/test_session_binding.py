"""Which session the commits of a repository are of, as people say it."""

from pathlib import Path

import pytest

from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.server_process import ServerProcess

STEERING = "12 pass\x1b[2J\x9b31m\u202e"


@pytest.fixture
def alice(work: WorkTree, server: ServerProcess) -> WorkTree:
    """In a repository with hooks, beside her server."""
    return work.with_environment(
        ACCORD_HOME=str(server.home), ACCORD_URL=server.url, ACCORD_TOKEN=server.admin_token
    )


def sessions(work: WorkTree) -> list[str]:
    found: list[str] = work.accord("git", "status", "--json").json["sessions"]
    return found


def test_a_session_that_is_opened_in_a_repository_works_there(alice: WorkTree) -> None:
    made = alice.accord("session", "create", "--json").json

    assert made["repo"] == alice.git("config", "accord.repo")
    assert sessions(alice) == [made["id"]]
    assert f"sessions    {made['id']}" in alice.accord("git", "status").out


def test_status_says_what_a_commit_made_now_would_be_of(alice: WorkTree, work: WorkTree) -> None:
    assert "next" not in alice.accord("git", "status").out
    alice.accord("session", "create")
    quiet = alice.accord("git", "status").out
    named = work.with_environment(PVP_SESSION_ID="ses_1").accord("git", "status").out

    assert "next        a commit made now names no session: there was no prompt" in quiet
    alice.commit("chore: nothing led to it")
    assert "PVP-Session" not in alice.git("log", "-1", "--format=%B")
    assert "next        a commit made now belongs to ses_1\n" in named


def test_people_among_themselves_say_whose_a_commit_is(alice: WorkTree) -> None:
    """Nothing that people alone say in a session is a reason for a commit, so nobody guesses."""
    id = alice.accord("session", "create").out.strip()
    alice.path.joinpath("plan.txt").write_text("Round down\n")
    assert alice.accord("session", "context", id, "add", "plan", "plan.txt").code == 0
    alice.commit("chore: not a word of it", "a.txt")
    assert alice.trailers() == {}

    alice.with_environment(PVP_SESSION_ID=id).commit("feat: round down", "b.txt")

    said = alice.accord("why", "HEAD").out
    assert alice.trailers() == {"PVP-Session": id, "Decision-By": "human:Alice"}
    assert "decided by   human:Alice" in said
    assert "the commit's own trailers, not confirmed by a server" in said


def test_all_of_it_fits_a_small_terminal_and_no_command_is_cut_in_two(alice: WorkTree) -> None:
    alice.accord("session", "create")
    shown = alice.with_environment(COLUMNS="80").accord("git", "status").out.splitlines()

    assert max(len(each) for each in shown if str(alice.path) not in each) <= 80
    assert any("`accord git install --rewrite-ref`" in each for each in shown)
    assert [each[:12].strip() for each in shown if each[:12].strip()] == [
        *("repository", "hooks", "records", "sessions", "server", "next", "notes")
    ]


def test_hooks_that_are_alike_are_said_in_one_line(work: WorkTree) -> None:
    assert "hooks       6 installed in" in work.accord("git", "status").out
    (work.path / ".git/hooks/pre-push").unlink()
    mixed = work.accord("git", "status").out
    assert "pre-push            not installed" in mixed
    assert "commit-msg          installed" in mixed
    work.accord("git", "uninstall")
    bare = " ".join(work.accord("git", "status").out.split())
    assert "; `accord git install` installs them" in bare
    assert "on a rebase" not in bare


def test_who_opens_a_second_is_told_that_hooks_do_not_guess(alice: WorkTree) -> None:
    first = alice.accord("session", "create").out.strip()
    ran = alice.accord("session", "create")
    second = ran.out.strip()
    assert "2 sessions are bound to this repository, so hooks cannot choose" in ran.err
    ran = alice.accord("git", "unbind", first)

    assert ran.out == f"Commits here belong to {second}\n"
    assert sessions(alice) == [second]


def test_a_session_may_be_kept_out_and_let_in_later(alice: WorkTree) -> None:
    id = alice.accord("session", "create", "--no-git").out.strip()
    assert sessions(alice) == []
    assert "none is bound" in alice.accord("git", "status").out
    ran = alice.with_environment(ACCORD_SESSION=id).accord("git", "bind")
    assert ran.out == f"Commits here belong to {id}\n"

    assert alice.accord("git", "unbind", id, "--json").json["sessions"] == []


def test_a_session_that_nobody_knows_is_not_bound(alice: WorkTree, work: WorkTree) -> None:
    unknown = alice.accord("git", "bind", "ses_unknown")
    away = work.accord("git", "bind", "ses_1")

    for ran in (unknown, away):
        assert ran.code == 4
        assert "No running server of yours on this machine knows ses_" in ran.err
    assert alice.accord("git", "bind").code == 2
    assert work.accord("git", "status", "--json").json["sessions"] is None
    assert "no server of yours is running" in work.accord("git", "status").out


def test_a_repository_without_hooks_is_left_alone(
    plain: WorkTree, server: ServerProcess, tmp_path: Path
) -> None:
    told = {"ACCORD_URL": server.url, "ACCORD_TOKEN": server.admin_token}
    alice = plain.with_environment(ACCORD_HOME=str(server.home), **told)
    ran = alice.accord("session", "create", "--json")
    assert (ran.code, ran.json["repo"]) == (0, None)
    assert alice.accord("git", "bind", ran.json["id"]).code == 5

    assert alice.in_directory(tmp_path).accord("session", "create", "--json").json["repo"] is None


@pytest.mark.parametrize("how", ["create", "bind"])
def test_a_pact_that_was_there_before_is_heeded(work: WorkTree, alice: WorkTree, how: str) -> None:
    ann = work.with_environment(PACT_AGENT_ID="ann")
    seats = ("--seat", "ann:orchestrator:A.md", "--seat", "bob:worker:B.md")
    given = ("--feature", "cart", "--branch", "cart", "--owner", "bob", "--reviewer", "ann")
    assert ann.accord("pact", "init", "--project", "shop", *seats).code == 0
    assert ann.accord("pact", "assign", "T1", *given).code == 0
    shown = ("checkpoint", "T1", "--evidence", STEERING)
    assert work.with_environment(PACT_AGENT_ID="bob").accord("pact", *shown).code == 0

    later = how == "bind"
    id = alice.accord("session", "create", *(["--no-git"] if later else [])).out.strip()
    assert not later or alice.accord("git", "bind", id).code == 0

    asked = (alice.accord("session", "context", id, "list").out for _ in range(50))
    assert any("session:tasks" in out for out in asked)
    ran = alice.accord("session", "context", id, "show", "session:tasks")
    assert ran.json["tasks"][0]["description"] == STEERING
    assert ran.out.replace("\n", "").isprintable()
