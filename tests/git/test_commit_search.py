"""`accord git log`: the commits that come of sessions."""

from tests.helpers.git.work_tree import WorkTree

ELSEWHERE = {"PVP_SESSION_ID": "", "PVP_MESSAGES": "", "PVP_DECISION_BY": ""}


def subjects(work: WorkTree, *words: str) -> list[str]:
    """What it lists."""
    ran = work.accord("git", "log", *words)
    assert ran.code == 0, ran.err
    return [line.partition(" ")[2] for line in ran.out.splitlines()]


def test_without_a_filter_it_lists_the_newest_and_no_other(session: WorkTree) -> None:
    session.commit("feat: one")
    session.with_environment(**ELSEWHERE).commit("Two", "other.txt")
    session.commit("feat: three", "third.txt")

    assert subjects(session) == ["feat: three", "feat: one"]
    told = session.accord("git", "log", "--json").json["commits"]
    assert [each["subject"] for each in told] == ["feat: three", "feat: one"]


def test_a_commit_that_lost_its_trailers_is_among_them(session: WorkTree) -> None:
    session.commit("feat: one")
    session.with_environment(**ELSEWHERE).git("commit", "-q", "--amend", "-m", "Reworded")

    assert session.trailers() == {}
    assert subjects(session) == ["Reworded"]


def test_a_filter_is_one_of_two(session: WorkTree) -> None:
    session.commit("feat: one")

    assert subjects(session, "--by", "alice") == ["feat: one"]
    assert subjects(session, "--session", session.env["PVP_SESSION_ID"]) == ["feat: one"]
    assert session.accord("git", "log", "--by", "a", "--session", "b").code == 2


def test_where_there_is_none_that_is_said(work: WorkTree) -> None:
    ran = work.accord("git", "log")
    named = work.accord("git", "log", "--by", "bob")

    assert (ran.code, ran.out) == (0, "")
    assert "there is no commit here that belongs to a session" in ran.err
    assert "there is no commit here that bob decided" in named.err
