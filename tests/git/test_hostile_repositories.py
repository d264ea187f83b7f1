"""Repositories that lie, trip or wait: what is in them is neither run nor believed."""

import json
import os
from pathlib import Path

import pytest

from tests.helpers.git.work_tree import WorkTree

ALONE = {"PVP_SESSION_ID": "", "PVP_MESSAGES": "", "PVP_DECISION_BY": ""}
LATER = '{"version": 2}'


def test_a_change_that_differs_in_spaces_alone_is_another(session: WorkTree) -> None:
    """In Python, it does something else."""
    session.commit("feat: begin", "a.py", "if a:\n    b\n")
    session.git("switch", "-qc", "other")
    session.commit("feat: more", "a.py", "if a:\n    b\n    c\n")
    session.git("switch", "-q", "main")
    session.with_environment(**ALONE).commit("more", "a.py", "if a:\n    b\nc\n")

    assert session.accord("why", "HEAD", "--offline").code == 4


@pytest.mark.parametrize("attributes", ["", "*.bin -diff\n"], ids=["binary", "named so"])
def test_a_binary_file_that_changed_again_is_another_change(
    session: WorkTree, attributes: str
) -> None:
    session.commit("feat: begin", ".gitattributes", attributes)
    begin = "" if attributes else "\0"
    session.commit("feat: one", "a.bin", f"{begin}one\n")
    session.commit("feat: two", "a.bin", f"{begin}two\n")
    session.with_environment(**ALONE).commit("three", "a.bin", f"{begin}three\n")

    assert session.accord("why", "HEAD", "--offline").code == 4


def test_a_note_of_a_later_version_keeps_nobody_from_the_others(session: WorkTree) -> None:
    session.commit("feat: begin")
    session.git("switch", "-qc", "topic")
    session.commit("feat: one", "a")
    session.git("notes", "--ref=pvp", "add", "-f", "-m", LATER)
    session.commit("feat: two", "b")
    ids = session.decision_ids()
    session.git("switch", "-q", "main")
    session.commit("feat: three", "c")
    session.git("switch", "-q", "topic")

    session.git("rebase", "-q", "main")

    assert session.decision_ids() == ids
    assert session.accord("git", "coverage").out.startswith("100 %  4 of 4")
    assert session.accord("why", "topic@{1}~1", "--offline").code == 0  # our own ref knows


def test_asking_runs_nothing_that_a_repository_names(session: WorkTree) -> None:
    session.commit("feat: begin", ".gitattributes", "* diff=evil\n")
    session.commit("feat: a", "a.py", "x = 1\n")
    ran = session.path / "RAN"
    for name in (
        *("diff.evil.textconv", "diff.evil.command", "diff.external", "core.fsmonitor"),
        *("core.pager", "pager.log", "pager.blame", "gpg.program", "core.editor", "core.askpass"),
    ):
        session.git("config", name, f"touch {ran}; false")
    for name in ("alias.log", "alias.blame", "alias.rev-parse"):
        session.git("config", name, f"!touch {ran}")
    session.git("config", "log.showSignature", "true")

    for words in (
        *(("why", "a.py:1"), ("why", "a.py"), ("why", "HEAD"), ("git", "status"), ("git", "tree")),
        *(("git", "coverage"), ("git", "log", "--by", "alice"), ("git", "parse"), ("git", "heal")),
    ):
        told = session.accord(*words)
        assert told.code == 0, (words, told.err)
    assert not ran.exists()


@pytest.mark.parametrize("command", ["clean", "smudge", "process"])
def test_asking_about_a_file_runs_no_filter(session: WorkTree, command: str) -> None:
    session.commit("feat: a", "a.py", "x = 1\n")
    session.commit("feat: filters", ".gitattributes", "*.py filter=evil\n")
    ran = session.path / "RAN"
    session.git("config", f"filter.evil.{command}", f"touch {ran}; cat")
    session.git("config", "filter.evil.required", "true")
    (session.path / "a.py").write_text("x = 1\ny = 2\n")

    for words in (("why", "a.py:1"), ("why", "a.py")):
        told = session.accord(*words, "--offline", "--json")
        assert told.code == 0, told.err
        assert [each["subject"] for each in told.json["reasons"]] == ["feat: a"]
    assert not ran.exists()


def test_lines_of_a_filtered_file_are_those_that_lie_there(session: WorkTree) -> None:
    session.commit("feat: filters", ".gitattributes", "*.py filter=evil\n")
    session.git("config", "filter.evil.clean", "cat; touch RAN")
    session.commit("feat: a", "a.py", "x = 1\n")
    session.commit("feat: b", "a.py", "x = 1\ny = 2\n")
    (session.path / "RAN").unlink()
    (session.path / "a.py").write_text("mine\nx = 1\ny = 2\nmine, too\n")
    told = [session.accord("why", f"a.py:{n}", "--offline", "--json") for n in range(1, 6)]
    found = [[each["subject"] for each in ran.json["reasons"]] for ran in told[:4]]

    assert found == [[], ["feat: a"], ["feat: b"], []]
    assert "a.py has the filter evil, which is not run" in told[0].err
    assert told[1].err == ""
    assert "has only 4 lines" in told[4].err
    assert not (session.path / "RAN").exists()


@pytest.mark.parametrize("name", ["", "set", "unset", "unspecified", "a.b", "a b"])
def test_a_filter_may_be_called_anything(session: WorkTree, name: str) -> None:
    session.commit("feat: a", "a.py", "x = 1\n")
    session.commit("feat: filters", ".gitattributes", f'"*.py" filter={name}\n')
    session.git("config", f"filter.{name}.clean", "touch RAN; cat")
    (session.path / "a.py").write_text("x = 1\ny = 2\n")
    told = session.accord("why", "a.py", "--offline", "--json")

    assert [each["subject"] for each in told.json["reasons"]] == ["feat: a"]
    assert not (session.path / "RAN").exists()


@pytest.mark.parametrize("name", ["evil", "a=b"])
def test_a_file_that_its_filter_changes_altogether_is_asked_as_committed(
    session: WorkTree, name: str
) -> None:
    session.git("config", f"filter.{name}.clean", "tr a-z n-za-m; touch RAN")
    session.commit("feat: filters", ".gitattributes", f"*.py filter={name}\n")
    session.commit("feat: a", "a.py", "one\ntwo\n")
    (session.path / "RAN").unlink()
    told = session.accord("why", "a.py", "--offline", "--json")

    assert [each["subject"] for each in told.json["reasons"]] == ["feat: a"]
    assert not (session.path / "RAN").exists()


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16"])
def test_words_are_read_whatever_git_is_told_to_write(session: WorkTree, encoding: str) -> None:
    session.git("config", "i18n.logOutputEncoding", encoding)
    session.commit("feat: Grüße", "a.py", "x = 1\n")

    told = session.accord("why", "a.py:1", "--json").json["reasons"][0]

    assert told["subject"] == "feat: Grüße"
    assert [each["id"] for each in told["record"]["decisions"]] == session.decision_ids()


@pytest.mark.parametrize("encoding", ["UTF-16", "utf-32le", "UCS-2"])
def test_what_git_could_not_read_back_is_told_and_costs_no_commit(
    session: WorkTree, encoding: str
) -> None:
    session.git("config", "i18n.commitEncoding", encoding)
    session.write("a.py", "x = 1\n")

    ran = session.run("git", "commit", "-q", "-m", "feat: Gr\u00fc\u00dfe")

    assert ran.code == 0
    assert f"i18n.commitEncoding is {encoding}: git cannot read this message back" in ran.err
    session.git("config", "i18n.commitEncoding", "UTF-8")
    session.write("b.py", "x = 1\n")
    assert session.run("git", "commit", "-q", "-m", "feat: again").err == ""


def test_what_a_remote_sends_takes_no_records_place(session: WorkTree, tmp_path: Path) -> None:
    sha, ids = session.commit("feat: begin"), session.decision_ids()
    session.git("init", "-q", "--bare", str(tmp_path / "shared.git"))
    session.git("remote", "add", "origin", str(tmp_path / "shared.git"))
    session.git("push", "-q", "origin", "main")
    assert session.accord("git", "share").code == 0
    blob = session.git("hash-object", "-w", "--stdin", data=LATER.encode())
    for ref, path in (
        ("refs/notes/pvp", sha),
        ("refs/accord/decisions", f"by-id/{ids[0][-2:].lower()}/{ids[0]}.json"),
    ):
        tree = blob
        kind = "100644 blob"
        for part in reversed(path.split("/")):
            tree = session.git("mktree", data=f"{kind} {tree}\t{part}\n".encode())
            kind = "040000 tree"
        made = session.git("commit-tree", tree, "-m", "later")
        session.git("push", "-q", "-f", "origin", f"{made}:{ref}")

    assert session.accord("git", "fetch").code == 0

    told = session.accord("why", "HEAD", "--offline", "--json").json["reasons"][0]
    assert [each["id"] for each in told["record"]["decisions"]] == ids
    assert session.note() == LATER
    assert session.accord("git", "share").code == 0


def test_a_skipped_commit_leaves_its_decision_to_nobody(session: WorkTree) -> None:
    session.commit("feat: begin", "a", "1\n")
    session.git("switch", "-qc", "topic")
    session.commit("feat: zero", "z", "0\n")
    zero = session.decision_ids()
    session.commit("feat: one", "a", "2\n")
    session.commit("feat: two", "b", "2\n")
    two = session.decision_ids()
    session.git("switch", "-q", "main")
    onto = session.with_environment(**ALONE).commit("meanwhile", "a", "3\n")
    session.git("switch", "-q", "topic")
    assert session.run("git", "rebase", "main").code != 0
    session.git("rebase", "--skip")

    assert [session.decision_ids(rev) for rev in ("HEAD", "HEAD~1", onto)] == [two, zero, []]


def test_the_first_of_a_rebase_may_be_skipped_too(session: WorkTree) -> None:
    session.commit("feat: begin", "a", "1\n")
    session.git("switch", "-qc", "topic")
    session.commit("feat: one", "a", "2\n")
    session.git("switch", "-q", "main")
    onto = session.with_environment(**ALONE).commit("meanwhile", "a", "3\n")
    session.git("switch", "-q", "topic")
    assert session.run("git", "rebase", "main").code != 0
    session.git("rebase", "--skip")

    assert (session.head(), session.decision_ids()) == (onto, [])


def test_what_is_committed_while_a_rebase_waits_is_not_what_it_waits_at(session: WorkTree) -> None:
    session.commit("feat: begin", "a", "1\n")
    session.commit("feat: one", "b", "2\n")
    one = session.decision_ids()
    session.commit("feat: two", "c", "3\n")
    two = session.decision_ids()
    edits = session.with_environment(GIT_SEQUENCE_EDITOR="sed -i -e '1s/pick/edit/'")
    edits.git("rebase", "-q", "-i", "HEAD~2")
    session.with_environment(**ALONE).commit("something else", "else", "4\n")
    session.git("rebase", "--continue")

    assert [session.decision_ids(f"HEAD~{n}") for n in range(3)] == [two, [], one]


def test_a_conflict_that_is_settled_keeps_its_decision(session: WorkTree) -> None:
    session.commit("feat: begin", "a", "1\n")
    session.git("switch", "-qc", "topic")
    session.commit("feat: one", "a", "2\n")
    one = session.decision_ids()
    session.git("switch", "-q", "main")
    session.with_environment(**ALONE).commit("meanwhile", "a", "3\n")
    session.git("switch", "-q", "topic")
    assert session.run("git", "rebase", "main").code != 0
    session.write("a", "4\n")
    session.git("rebase", "--continue")

    assert session.decision_ids() == one


def test_a_squash_that_was_thrown_away_gives_its_decisions_to_nobody(session: WorkTree) -> None:
    session.commit("feat: begin", "a", "1\n")
    session.git("switch", "-qc", "topic")
    session.commit("feat: one", "b", "2\n")
    session.git("switch", "-q", "main")
    alone = session.with_environment(**ALONE)
    alone.git("merge", "-q", "--squash", "topic")
    alone.git("rm", "-qf", "b")
    alone.commit("something else", "c", "3\n")

    assert session.decision_ids() == []


@pytest.mark.parametrize("lock", ["refs/notes/pvp.lock", "refs/accord/decisions.lock"])
def test_a_lock_that_was_left_behind_fails_no_commit(session: WorkTree, lock: str) -> None:
    session.commit("feat: begin")
    place = session.path / ".git" / lock
    place.touch()
    session.write("a", "a")
    ran = session.run("git", "commit", "-q", "-m", "feat: locked")
    place.unlink()

    assert ran.code == 0
    assert "No record of this commit was written: " in ran.err
    assert place.name in ran.err
    assert session.accord("git", "heal").code == 0
    (id,) = session.decision_ids()
    session.git("commit", "-q", "--amend", "--no-edit")
    assert session.decision_ids() == [id]
    assert session.accord("git", "coverage").code == 0


@pytest.mark.parametrize("name", ["-rf", "--output=x", "a\nb", "\x1b[31mred", "\u202egnp.exe"])
def test_a_file_may_be_called_anything(session: WorkTree, name: str) -> None:
    session.commit("feat: odd", name, "1\n")

    told = session.accord("why", "--offline", "--", f"{name}:1")

    assert told.code == 0, told.err
    assert session.decision_ids()[0] in told.out
    assert not {"\x1b", "\u202e"} & set(told.out)


def test_no_configuration_changes_what_the_trailers_say(session: WorkTree) -> None:
    ran = session.path / "RAN"
    session.git("config", "trailer.separators", "=")
    session.git("config", "trailer.PVP-Session.key", "Reviewed-By")
    session.git("config", "trailer.evil.cmd", f"touch {ran}")
    session.commit("feat: begin")

    said = session.message().splitlines()
    assert f"PVP-Session: {session.env['PVP_SESSION_ID']}" in said
    assert f"Decision-By: {session.env['PVP_DECISION_BY']}" in said
    assert not ran.exists()


def test_a_comment_sign_that_git_chooses_costs_no_line(session: WorkTree) -> None:
    session.git("config", "core.commentChar", "auto")
    session.commit("amend! feat: all of it")  # what begins with an `a` is no comment

    assert session.trailers()["PVP-Session"] == session.env["PVP_SESSION_ID"]
    assert session.decision_ids()


def test_a_message_that_is_too_long_for_trailers_is_told_of(
    session: WorkTree, work: WorkTree
) -> None:
    long = f"feat: begin\n\n{'word ' * 250_000}"
    session.write("a.txt", "a")
    told = session.run("git", "commit", "-q", "-F", "-", data=long.encode())
    work.write("a.txt", "b")
    nobody = work.run("git", "commit", "-q", "-F", "-", data=long.encode())
    work.write("a.txt", "c")
    spoken = f"{long}\n\nPVP-Session: ses_1\n".encode()
    unread = work.run("git", "commit", "-q", "-F", "-", data=spoken)

    assert (told.code, nobody.code, unread.code) == (0, 0, 0)
    assert "longer than 1048576 characters, so it gets no trailers" in told.err
    assert nobody.err == ""
    assert "longer than 1048576 characters, so it was not checked" in unread.err
    session.git("commit", "-q", "--amend", "-m", "feat: begin")
    assert session.decision_ids()


@pytest.mark.parametrize("kind", ["directory", "pipe", "link"])
def test_where_squashed_commits_are_noted_may_lie_anything(
    session: WorkTree, tmp_path: Path, kind: str
) -> None:
    session.commit("feat: begin", "a", "1\n")
    session.git("switch", "-qc", "topic")
    session.commit("feat: one", "b", "2\n")
    one = session.decision_ids()
    session.git("switch", "-q", "main")
    session.git("merge", "-q", "--squash", "topic")
    place, other = session.path / ".git/accord-squashed", tmp_path / "other"
    other.write_text("mine")
    makes = {
        "directory": lambda: (place / "x").mkdir(parents=True),
        "pipe": lambda: os.mkfifo(place),
        "link": lambda: place.symlink_to(other),
    }
    makes[kind]()
    session.git("commit", "-q", "-m", "feat: both")

    assert session.trailers()["PVP-Session"] == session.env["PVP_SESSION_ID"]
    assert (set(one) <= set(session.decision_ids())) == (kind != "directory")
    assert other.read_text() == "mine"


def test_what_is_noted_of_a_squash_is_read_from_a_file_alone(work: WorkTree) -> None:
    work.commit("begin")
    os.mkfifo(work.path / ".git/accord-squashed")

    assert work.run(".git/hooks/post-commit") == (0, "", "")


def test_a_name_in_an_old_encoding_costs_no_record(session: WorkTree) -> None:
    alone = session.with_environment(PVP_DECISION_BY="")
    alone.git("config", "user.name", "J\udcfcrgen")
    alone.git("switch", "-qc", "b\udcff")
    alone.commit("feat: begin")

    assert alone.trailers()["Decision-By"] == "human:J%EF%BF%BDrgen"
    assert [each["branch"] for each in json.loads(alone.note())["decisions"]] == ["b\\xff"]
