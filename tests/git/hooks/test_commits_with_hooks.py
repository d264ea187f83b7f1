"""Commits with hooks, by real git: what is written, and that nothing else is touched."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.git.conftest import SESSION
from tests.helpers.git.work_tree import WorkTree
from tests.spec import proves


@proves("GIT-HOOK-PCM-1", "PVP-18.4-1", "PVP-18.4-2", "GIT-NOTES-1", "GIT-NOTES-2", "GIT-NOTES-3")
def test_the_first_commit_of_a_session_has_its_trailers_and_its_note(session: WorkTree) -> None:
    sha = session.commit("feat: begin")

    assert session.trailers() == {
        "PVP-Session": SESSION["PVP_SESSION_ID"],
        "PVP-Messages": "msg-01,msg-05",
        "Decision-By": "human:alice,ai:claude",
    }
    note = json.loads(session.note())
    (made,) = note["decisions"]
    assert note["version"] == 1
    assert (made["git_sha"], made["files_changed"]) == (sha, ["file.txt"])
    assert "approvals" not in made
    assert "confidence_score" not in made


@proves("GIT-HOOK-PCM-3", "GIT-COMPAT-1")
def test_a_commit_without_a_session_is_left_alone(work: WorkTree) -> None:
    work.commit("whatever people write")
    work.commit(
        "feat: A very long header that no rule of ours is to judge because there is no session"
    )

    assert work.message() == (
        "feat: A very long header that no rule of ours is to judge because there is no session\n"
    )
    assert work.git("for-each-ref", "refs/notes", "refs/accord") == ""


def test_only_what_is_known_is_written(work: WorkTree) -> None:
    work.with_environment(PVP_SESSION_ID="ses_1").commit("feat: begin")

    assert work.trailers() == {"PVP-Session": "ses_1", "Decision-By": "human:Alice"}


@proves("OPEN-70")
def test_who_decided_is_the_committer_when_nobody_says(work: WorkTree) -> None:
    work.git("config", "user.name", "Ann, the\tboss")
    work.with_environment(PVP_MESSAGES="m1").commit("feat: begin")

    assert work.trailers()["Decision-By"] == "human:Ann%2C%20the%20boss"


@proves("OPEN-72")
@pytest.mark.parametrize(
    "name", ["human:eve\nApproved-By: human:bob", "human:eve\rx", "human:\x1b[2J"]
)
def test_a_name_cannot_forge_a_line(work: WorkTree, name: str) -> None:
    work.with_environment(PVP_SESSION_ID="ses_1", PVP_DECISION_BY=name).commit("feat: begin")

    assert "Approved-By" not in work.trailers()
    assert work.trailers()["Decision-By"] == "human:Alice"


@proves("OPEN-69")
def test_a_key_is_written_once_and_an_amend_changes_nothing(session: WorkTree) -> None:
    session.commit("feat: begin\n\nPVP-Session: ses_other\nDecision-By: human:carol")
    session.git("commit", "-q", "--amend", "--no-edit")
    session.git("commit", "-q", "--amend", "-m", session.message())

    assert session.message().count("PVP-Session") == 1
    assert session.message().count("Decision-By") == 1
    assert session.trailers()["PVP-Session"] == "ses_other"
    assert session.trailers()["PVP-Messages"] == "msg-01,msg-05"


def test_trailers_of_another_tool_stay(session: WorkTree) -> None:
    session.commit(
        "feat: begin\n\nWhy not.\n\nChange-Id: I0123\nReviewed-by: Bob <bob@example.org>"
    )

    assert list(session.trailers())[:2] == ["Change-Id", "Reviewed-by"]
    assert session.trailers()["PVP-Session"] == SESSION["PVP_SESSION_ID"]


def test_a_decision_is_not_hidden_by_a_longer_key(session: WorkTree) -> None:
    """Git's own tool takes a key for another that begins with it."""
    session.commit("feat: begin\n\nPVP-Sessions-Count: 4")

    assert session.trailers()["PVP-Session"] == SESSION["PVP_SESSION_ID"]


def editor(folder: Path, text: str) -> str:
    program = folder / "editor.py"
    code = f"import sys; p = sys.argv[1]; b = open(p).read(); open(p, 'w').write({text!r} + b)"
    program.write_text(code)
    return f"{sys.executable} {program}"


def test_a_commit_from_an_editor_has_its_trailers(session: WorkTree, tmp_path: Path) -> None:
    session.write("a.txt", "a")
    session.with_environment(GIT_EDITOR=editor(tmp_path, "feat: written by hand")).git(
        "commit", "-q"
    )

    assert session.message().startswith("feat: written by hand\n\nPVP-Session: ")
    assert "Decision-By" in session.trailers()


@proves("GIT-HOOK-PCM-2", "OPEN-69")
@pytest.mark.parametrize(
    ("source", "acts"),
    [
        (("message",), True),
        (("template",), True),
        ((), True),
        (("merge",), False),
        (("squash",), False),
        (("commit", "HEAD"), False),
    ],
)
def test_trailers_are_added_to_what_somebody_writes_now_and_to_nothing_else(
    session: WorkTree, source: tuple[str, ...], *, acts: bool
) -> None:
    """The sample acts on `message` alone; an editor and a template are somebody's words, too."""
    session.commit("feat: begin")
    file = session.path / "draft"
    file.write_text("feat: go on\n")
    hook = session.path / ".git/hooks/prepare-commit-msg"
    assert session.run(str(hook), str(file), *source).code == 0

    assert ("PVP-Session: " in file.read_text()) is acts
    assert file.read_text().startswith("feat: go on\n")


@proves("GIT-HOOK-PCM-2")
def test_an_amend_a_merge_and_a_squash_keep_their_words(session: WorkTree, work: WorkTree) -> None:
    work.commit("begin")
    session.git("commit", "-q", "--amend", "-C", "HEAD")
    assert work.message() == "begin\n"
    work.git("switch", "-qc", "side")
    work.commit("aside", "b.txt")
    work.git("switch", "-q", "main")
    work.commit("ahead", "c.txt")
    session.git("merge", "-q", "--no-edit", "side")
    assert work.message() == "Merge branch 'side'\n"
    work.git("reset", "-q", "--hard", "HEAD^")
    session.git("merge", "-q", "--squash", "side")
    session.git("commit", "-q", "--no-edit")

    assert "PVP-" not in work.message()


@pytest.mark.parametrize("flags", [("-v",), ("--cleanup=scissors", "-v"), ("--cleanup=verbatim",)])
def test_whatever_the_editor_is_shown_the_trailers_are_read(
    session: WorkTree, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    session.write("a.txt", "a")
    writes = editor(tmp_path, "feat: written by hand")
    session.with_environment(GIT_EDITOR=writes, TERM="dumb").git("commit", "-q", *flags)
    assert session.trailers()["PVP-Session"] == SESSION["PVP_SESSION_ID"]
    session.write("b.txt", "b")
    session.with_environment(GIT_EDITOR="true").git(
        "commit", "-q", "-e", "-m", "feat: go on", *flags
    )

    assert session.trailers()["PVP-Session"] == SESSION["PVP_SESSION_ID"]
    assert session.message().count("PVP-Session") == 1


def test_where_there_is_no_editor_a_message_from_a_file_will_do(
    session: WorkTree, tmp_path: Path
) -> None:
    (tmp_path / "words").write_text("feat: from a file\n")
    session.write("a.txt", "a")
    nobody = session.with_environment(TERM="dumb")
    for name in ("GIT_EDITOR", "EDITOR", "VISUAL"):
        nobody.env.pop(name, None)
    nobody.git("commit", "-q", "-F", str(tmp_path / "words"))

    assert session.decision_ids()


def test_a_commit_that_is_not_verified_still_has_its_record(session: WorkTree) -> None:
    session.write("a.txt", "a")
    session.git("commit", "-q", "--no-verify", "-m", "no type at all")

    assert session.message().startswith("no type at all\n")
    assert session.decision_ids()


def test_an_editor_that_is_left_without_a_word_commits_nothing(session: WorkTree) -> None:
    session.write("a.txt", "a")
    ran = session.run("git", "commit", "-q")

    assert ran.code == 1
    assert "The message is empty" in ran.err


def test_an_empty_message_that_is_allowed_stays_empty(session: WorkTree) -> None:
    session.write("a.txt", "a")
    session.git("commit", "-q", "--allow-empty-message", "-m", "")

    assert session.message() == ""


@proves("GIT-HOOK-CM-1", "GIT-HOOK-CM-2", "GIT-HOOK-CM-3")
@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("made it better", "not <type>(<scope>): <description>"),
        (f"feat: {'x' * 70}", "76 characters; 72 are allowed"),
        ("feat: begin\n\nPVP-Confidence: 1.5", "not a number from 0.00 to 1.00"),
    ],
)
def test_a_bad_message_in_a_session_is_refused_with_the_reason(
    session: WorkTree, message: str, said: str
) -> None:
    session.write("a.txt", "a")
    ran = session.run("git", "commit", "-q", "-m", message)

    assert ran.code == 1
    assert said in ran.err


def test_a_longer_header_passes_where_the_repository_allows_it(session: WorkTree) -> None:
    session.git("config", "accord.headerLength", "100")

    session.commit(f"feat: {'x' * 70}")


def test_a_merge_of_a_session_keeps_what_git_wrote(session: WorkTree) -> None:
    session.commit("feat: begin")
    session.git("switch", "-qc", "side")
    session.commit("feat: aside", "side.txt")
    session.git("switch", "-q", "main")
    session.commit("feat: ahead", "ahead.txt")
    session.git("merge", "-q", "--no-edit", "side")

    assert session.message() == "Merge branch 'side'\n"


def test_a_commit_on_a_detached_head_and_in_a_worktree(session: WorkTree, tmp_path: Path) -> None:
    first = session.commit("feat: begin")
    session.git("switch", "-q", "--detach")
    session.commit("feat: detached", "b.txt")
    assert session.decision_ids()
    session.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"), first)
    other = session.in_directory(tmp_path / "tree")
    other.commit("feat: elsewhere", "c.txt")

    assert other.trailers()["PVP-Session"] == SESSION["PVP_SESSION_ID"]
    assert json.loads(other.note())["decisions"][0]["branch"] == "other"


def test_a_commit_in_a_submodule(session: WorkTree, tmp_path: Path) -> None:
    inner = WorkTree.create(tmp_path, "inner")
    inner.commit("begin")
    session.commit("feat: begin")
    flags = ("-c", "protocol.file.allow=always")
    session.git(*flags, "submodule", "add", "-q", str(inner.path), "sub")
    sub = session.in_directory(session.path / "sub")
    assert sub.accord("git", "install").code == 0
    sub.commit("feat: inside", "x.txt")
    assert sub.decision_ids()
    session.git("add", "sub")
    session.git("commit", "-qm", "feat: take the new one")

    assert session.decision_ids()


def test_paths_that_are_no_utf8(session: WorkTree) -> None:
    name = os.fsdecode(b"caf\xe9, \n.txt")
    (session.path / name).write_text("x")
    session.git("add", "--all")
    session.git("commit", "-qm", "feat: begin")

    (made,) = json.loads(session.note())["decisions"]
    assert made["files_changed"] == ["caf\\xe9, \n.txt"]
    assert session.accord("why", f"{name}:1").code == 0


def test_a_subject_that_is_no_utf8(session: WorkTree) -> None:
    session.write("a.txt", "a")
    session.git(
        "-c", "i18n.commitEncoding=latin1", "commit", "-q", "-F", "-", data=b"feat: caf\xe9"
    )

    assert session.accord("why", "a.txt:1").code == 0
    assert session.accord("why", "a.txt:1", "--json").code == 0


def test_the_user_s_index_and_work_tree_are_not_touched(session: WorkTree) -> None:
    session.commit("feat: begin")
    session.write("staged.txt", "1")
    (session.path / "loose.txt").write_text("2")
    before = session.git("status", "--porcelain")
    session.accord("git", "heal")

    assert session.git("status", "--porcelain") == before
    assert session.git("fsck", "--no-dangling") == ""


def test_a_note_that_somebody_wrote_as_text_is_kept(session: WorkTree) -> None:
    session.commit("feat: begin")
    session.git("notes", "--ref=pvp", "add", "-f", "-m", "tested by hand", "HEAD")
    session.git("commit", "-q", "--amend", "--no-edit")
    session.git("notes", "--ref=pvp", "add", "-f", "-m", "tested by hand", "HEAD")
    assert session.accord("git", "heal").code == 0

    note = json.loads(session.note())
    assert note["foreign"] == ["tested by hand\n"]
    assert note["decisions"]


def test_a_message_that_cannot_be_written_again_stays_as_it_is(session: WorkTree) -> None:
    file = session.path / "draft"
    file.write_text("feat: go on\n")
    (session.path / "draft.accord").mkdir()
    hook = session.path / ".git/hooks/prepare-commit-msg"

    assert session.run(str(hook), str(file), "message").code == 0
    assert file.read_text() == "feat: go on\n"


def test_a_full_disk_or_a_broken_ref_never_fails_a_commit(session: WorkTree) -> None:
    session.commit("feat: begin")
    (session.path / ".git/refs/accord/decisions").write_text("no ref at all\n")
    (session.path / ".git/refs/notes/pvp").write_text("no ref at all\n")

    session.commit("feat: more", "b.txt")
