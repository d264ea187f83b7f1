"""Commits made while no server answers wait for their record, and get it from the server later."""

from pathlib import Path

import pytest

from tests.helpers.git.server_elsewhere import ServerElsewhere, profiles_file, sign_in
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.server_process import ServerProcess

NOTICE = "accord: This commit has no record yet: "


@pytest.fixture
def elsewhere(server: ServerProcess) -> ServerElsewhere:
    return ServerElsewhere(server)


@pytest.fixture
def alice(work: WorkTree, elsewhere: ServerElsewhere) -> WorkTree:
    """In a repository that is bound to a session elsewhere."""
    someone = work.with_environment(**elsewhere.environment)
    elsewhere.bind(someone)
    return someone


def commit(work: WorkTree, message: str, name: str) -> str:
    """Commit a new file; what the hooks say."""
    work.write(name, f"{message}\n")
    ran = work.run("git", "commit", "-q", "-m", message)
    assert ran.code == 0, ran.err
    return ran.err


def pending_file(work: WorkTree) -> Path:
    return work.path / ".git" / "accord-pending-commits"


def test_commits_made_without_a_server_get_what_was_said_before_each(
    alice: WorkTree, elsewhere: ServerElsewhere, server: ServerProcess
) -> None:
    elsewhere.prompt("Add a login")
    server.kill()
    first = commit(alice, "feat: add a login", "login.py")
    server.restart()
    elsewhere.prompt("Add a logout")
    server.kill()
    second = commit(alice, "feat: add a logout", "logout.py")
    assert first.startswith(f"{NOTICE}the server that ACCORD_URL names did not answer")
    assert "`accord git heal`" in first
    assert second == ""
    assert alice.decision_ids("HEAD") == alice.decision_ids("HEAD~") == []

    server.restart()
    elsewhere.prompt("Add a page")
    assert commit(alice, "feat: add a page", "page.py") == ""

    notes = [alice.note(rev) for rev in ("HEAD~2", "HEAD~", "HEAD")]
    said = ("Add a login", "Add a logout", "Add a page")
    assert [[text in note for text in said] for note in notes] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]
    ids = [alice.decision_ids(rev) for rev in ("HEAD~2", "HEAD~", "HEAD")]
    assert len({id for each in ids for id in each}) == 3
    assert not pending_file(alice).exists()


def test_heal_records_a_commit_that_waits_also_after_an_amend(
    alice: WorkTree, elsewhere: ServerElsewhere, server: ServerProcess
) -> None:
    elsewhere.prompt("Add a login")
    server.kill()
    commit(alice, "feat: add a login", "login.py")
    alice.git("commit", "-q", "--amend", "-m", "feat: add the login")
    waiting = alice.accord("git", "heal")
    assert "1 commit without a record yet: the server that ACCORD_URL names" in waiting.out

    server.restart()
    healed = alice.accord("git", "heal", "--json").json

    ids = alice.decision_ids()
    assert healed["recorded"] == [{"commit": alice.head(), "decisions": ids}]
    assert "Add a login" in alice.note()
    assert not pending_file(alice).exists()


def test_nothing_is_recorded_for_a_commit_that_nothing_led_to(
    alice: WorkTree, elsewhere: ServerElsewhere, server: ServerProcess
) -> None:
    server.kill()
    commit(alice, "chore: tidy", "tidy.py")
    server.restart()
    elsewhere.prompt("Add a page")
    commit(alice, "feat: add a page", "page.py")

    assert alice.decision_ids("HEAD~") == []
    assert "Add a page" in alice.note()
    assert not pending_file(alice).exists()


def test_the_person_is_told_again_only_after_a_server_answered(
    alice: WorkTree, elsewhere: ServerElsewhere, server: ServerProcess
) -> None:
    server.kill()
    assert NOTICE in commit(alice, "chore: one", "1.py")
    assert commit(alice, "chore: two", "2.py") == ""
    server.restart()
    assert commit(alice, "chore: three", "3.py") == ""
    server.kill()
    assert NOTICE in commit(alice, "chore: four", "4.py")


def test_a_person_who_was_signed_out_is_told_why(
    work: WorkTree, elsewhere: ServerElsewhere, server: ServerProcess
) -> None:
    sign_in(work, server)
    elsewhere.bind(work)
    file = profiles_file(work)
    file.chmod(0o644)

    told = commit(work, "feat: add a login", "login.py")

    assert told.startswith(NOTICE)
    assert "chmod 600" in told


def test_a_repository_that_is_not_bound_hears_nothing(
    alice: WorkTree, elsewhere: ServerElsewhere, server: ServerProcess
) -> None:
    alice.accord("git", "unbind", elsewhere.session)
    server.kill()

    assert commit(alice, "feat: add a login", "login.py") == ""
    assert not pending_file(alice).exists()


def test_commits_that_are_gone_and_damaged_lines_are_dropped(
    alice: WorkTree, elsewhere: ServerElsewhere
) -> None:
    pending_file(alice).write_text(f"{'a' * 40} 1 - main\nnonsense\n\udcff\n", errors="replace")
    elsewhere.prompt("Add a login")

    assert commit(alice, "feat: add a login", "login.py") == ""

    assert "Add a login" in alice.note()
    assert not pending_file(alice).exists()


@pytest.mark.parametrize("binding", ["bound", "only named"])
def test_a_record_made_of_the_environment_is_completed_later(
    work: WorkTree, elsewhere: ServerElsewhere, server: ServerProcess, binding: str
) -> None:
    """`PVP_*` variables name the session, so the message has its trailers without any server."""
    named = {"PVP_SESSION_ID": elsewhere.session, "PVP_DECISION_BY": "human:carol"}
    alice = work.with_environment(**elsewhere.environment, **named)
    if binding == "bound":
        elsewhere.bind(alice)
    elsewhere.prompt("Add a login")
    server.kill()
    said = commit(alice, "feat: add a login", "login.py")
    (before,) = alice.decision_ids()
    alice.git("commit", "-q", "--amend", "-m", alice.git("log", "-1", "--format=%B"))
    assert said.startswith("accord: This commit has only a record of its message: ")
    assert "Add a login" not in alice.note()

    server.restart()
    healed = alice.accord("git", "heal", "--json").json

    (after,) = alice.decision_ids()
    assert after != before
    assert healed["recorded"] == [{"commit": alice.head(), "decisions": [after]}]
    assert "Add a login" in alice.note()
    assert not pending_file(alice).exists()


@pytest.mark.parametrize("completed_by", ["heal", "the next commit"])
def test_a_record_is_completed_when_the_server_stopped_after_it_made_the_message(
    alice: WorkTree, elsewhere: ServerElsewhere, server: ServerProcess, completed_by: str
) -> None:
    """The message names session and decision, and the server dies while the person edits it."""
    elsewhere.prompt("Add a login")
    alice.write("login.py", "pass\n")
    editor = f"kill -9 {server.pid}; true"
    ran = alice.with_environment(GIT_EDITOR=editor).run(
        "git", "commit", "-q", "-e", "-m", "feat: log in"
    )
    assert ran.code == 0, ran.err
    (before,) = alice.decision_ids()
    assert f"PVP-Decision: {before}" in alice.git("log", "-1", "--format=%B")
    assert ran.err.startswith("accord: This commit has only a record of its message: ")
    assert "Add a login" not in alice.note()

    server.restart()
    elsewhere.prompt("Add a page")
    if completed_by == "heal":
        healed = alice.accord("git", "heal", "--json").json
        assert healed["recorded"] == [{"commit": alice.head(), "decisions": [before]}]
        note, ids = alice.note(), alice.decision_ids()
    else:
        commit(alice, "feat: add a page", "page.py")
        note, ids = alice.note("HEAD~"), alice.decision_ids("HEAD~")

    assert ids == [before]
    assert "Add a login" in note
    assert "Add a page" not in note
    assert not pending_file(alice).exists()


def test_a_commit_of_an_unknown_session_does_not_hold_up_the_next(
    alice: WorkTree, elsewhere: ServerElsewhere, server: ServerProcess
) -> None:
    elsewhere.prompt("Add a login")
    server.kill()
    commit(alice, "feat: from elsewhere\n\nPVP-Session: ses_01HX7K9P4QZCVD3N8MYW6R5T2B", "1.py")
    commit(alice, "feat: add a login", "login.py")
    server.restart()

    alice.accord("git", "heal")

    assert "Add a login" in alice.note()
    assert alice.git("rev-parse", "HEAD~").strip() in pending_file(alice).read_text()


def test_many_commits_of_unknown_sessions_do_not_use_up_the_time_of_a_hook(
    alice: WorkTree, elsewhere: ServerElsewhere
) -> None:
    """Each is asked for in turn, a few at a time, and none is given up."""
    unknown = "ses_01HX7K9P4QZCVD3N8MYW6R5T2B"
    shas = [alice.commit(f"chore: {number}", f"{number}.py") for number in range(8)]
    pending_file(alice).write_text("".join(f"{sha} 1 {unknown} main\n" for sha in shas))
    elsewhere.prompt("Add a login")

    assert commit(alice, "feat: add a login", "login.py") == ""

    assert "Add a login" in alice.note()
    left = [line.split()[0] for line in pending_file(alice).read_text().splitlines()]
    assert left == [*shas[5:], *shas[:5]]
