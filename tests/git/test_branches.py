"""Where a branch left the trunk, in histories of every shape."""

from pathlib import Path

import pytest

from accord.git import branches
from accord.git.repository import Repository
from tests.helpers.git import a_repository


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return a_repository(tmp_path / "repo")


def commit(repo: Repository, name: str) -> str:
    repo.act("commit", "-q", "--allow-empty", "-m", name)
    return repo.ask("rev-parse", "HEAD")


def test_the_trunk_may_go_on_and_be_merged_meanwhile(repo: Repository) -> None:
    repo.act("switch", "-q", "-c", "topic")
    one = commit(repo, "one")
    repo.act("switch", "-q", "main")
    base = commit(repo, "meanwhile")
    repo.act("switch", "-q", "topic")
    repo.act("merge", "-q", "--no-ff", "-m", "take it in", "main")
    merge = repo.ask("rev-parse", "HEAD")
    two = commit(repo, "two")
    repo.act("switch", "-q", "main")
    commit(repo, "later")

    found, inside = branches._since(repo, "main", "topic")

    assert (found, set(inside)) == (base, {one, merge, two})
    assert found == repo.ask("merge-base", "main", "topic")


def test_of_two_places_where_they_met_git_chooses(repo: Repository) -> None:
    repo.act("switch", "-q", "-c", "topic")
    one = commit(repo, "one")
    repo.act("switch", "-q", "main")
    two = commit(repo, "two")
    repo.act("merge", "-q", "--no-ff", "-m", "here", one)
    repo.act("switch", "-q", "topic")
    repo.act("merge", "-q", "--no-ff", "-m", "there", two)

    found, inside = branches._since(repo, "main", "topic")

    assert found in {one, two}
    assert inside == [repo.ask("rev-parse", "topic")]


def test_histories_that_never_met_are_no_branch(repo: Repository) -> None:
    repo.act("switch", "-q", "--orphan", "alone")
    commit(repo, "alone")

    assert branches._since(repo, "main", "alone")[0] == ""
    assert not branches.remember(repo, "alone", repo.resolve("main"))
    assert not branches.remember(repo, "main", repo.resolve("main"))


def test_a_branch_that_is_very_long_is_seen_as_far_as_it_goes(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branches, "MOST", 3)
    repo.act("switch", "-q", "-c", "topic")
    made = [commit(repo, str(n)) for n in range(5)]

    found, inside = branches._since(repo, "main", "topic")

    assert (found, inside) == (repo.ask("rev-parse", "main"), made[:1:-1])
