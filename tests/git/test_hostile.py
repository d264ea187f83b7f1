"""Repositories that lie, trip or wait: what is in them is neither run nor believed."""

import pytest

from tests.helpers.worktree import Work

ALONE = {"PVP_SESSION_ID": "", "PVP_MESSAGES": "", "PVP_DECISION_BY": ""}
LATER = '{"version": 2}'


def test_a_change_that_differs_in_spaces_alone_is_another(session: Work) -> None:
    """In Python, it does something else."""
    session.commit("feat: begin", "a.py", "if a:\n    b\n")
    session.git("switch", "-qc", "other")
    session.commit("feat: more", "a.py", "if a:\n    b\n    c\n")
    session.git("switch", "-q", "main")
    session.told(**ALONE).commit("more", "a.py", "if a:\n    b\nc\n")

    assert session.accord("why", "HEAD", "--offline").code == 4


@pytest.mark.parametrize("attributes", ["", "*.bin -diff\n"], ids=["binary", "named so"])
def test_a_binary_file_that_changed_again_is_another_change(session: Work, attributes: str) -> None:
    session.commit("feat: begin", ".gitattributes", attributes)
    begin = "" if attributes else "\0"
    session.commit("feat: one", "a.bin", f"{begin}one\n")
    session.commit("feat: two", "a.bin", f"{begin}two\n")
    session.told(**ALONE).commit("three", "a.bin", f"{begin}three\n")

    assert session.accord("why", "HEAD", "--offline").code == 4


def test_a_note_of_a_later_version_keeps_nobody_from_the_others(session: Work) -> None:
    session.commit("feat: begin")
    session.git("switch", "-qc", "topic")
    session.commit("feat: one", "a")
    session.git("notes", "--ref=pvp", "add", "-f", "-m", LATER)
    session.commit("feat: two", "b")
    ids = session.decisions()
    session.git("switch", "-q", "main")
    session.commit("feat: three", "c")
    session.git("switch", "-q", "topic")

    session.git("rebase", "-q", "main")

    assert session.decisions() == ids
    assert session.accord("git", "coverage").out.startswith("100 %  4 of 4")
    assert session.accord("why", "topic@{1}~1", "--offline").code == 0  # our own ref knows


def test_asking_runs_nothing_that_a_repository_names(session: Work) -> None:
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


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16"])
def test_words_are_read_whatever_git_is_told_to_write(session: Work, encoding: str) -> None:
    session.git("config", "i18n.logOutputEncoding", encoding)
    session.commit("feat: Grüße", "a.py", "x = 1\n")

    told = session.accord("why", "a.py:1", "--json").json["reasons"][0]

    assert told["subject"] == "feat: Grüße"
    assert [each["id"] for each in told["record"]["decisions"]] == session.decisions()
