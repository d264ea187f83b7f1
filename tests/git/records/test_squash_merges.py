"""Where a branch left the trunk, in histories of every shape."""

from pathlib import Path

import pytest

from accord.git.records import squash_merges
from accord.git.repository import Repository
from tests.helpers.git.repositories import create_repository


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return create_repository(tmp_path / "repo")


def commit(repo: Repository, name: str) -> str:
    repo.run_with_hooks("commit", "-q", "--allow-empty", "-m", name)
    return repo.run_text("rev-parse", "HEAD")


def test_the_trunk_may_go_on_and_be_merged_meanwhile(repo: Repository) -> None:
    repo.run_with_hooks("switch", "-q", "-c", "topic")
    one = commit(repo, "one")
    repo.run_with_hooks("switch", "-q", "main")
    base = commit(repo, "meanwhile")
    repo.run_with_hooks("switch", "-q", "topic")
    repo.run_with_hooks("merge", "-q", "--no-ff", "-m", "take it in", "main")
    merge = repo.run_text("rev-parse", "HEAD")
    two = commit(repo, "two")
    repo.run_with_hooks("switch", "-q", "main")
    commit(repo, "later")

    found, inside = squash_merges._base_and_commits(repo, "main", "topic")

    assert (found, set(inside)) == (base, {one, merge, two})
    assert found == repo.run_text("merge-base", "main", "topic")


def test_of_two_places_where_they_met_git_chooses(repo: Repository) -> None:
    repo.run_with_hooks("switch", "-q", "-c", "topic")
    one = commit(repo, "one")
    repo.run_with_hooks("switch", "-q", "main")
    two = commit(repo, "two")
    repo.run_with_hooks("merge", "-q", "--no-ff", "-m", "here", one)
    repo.run_with_hooks("switch", "-q", "topic")
    repo.run_with_hooks("merge", "-q", "--no-ff", "-m", "there", two)

    found, inside = squash_merges._base_and_commits(repo, "main", "topic")

    assert found in {one, two}
    assert inside == [repo.run_text("rev-parse", "topic")]


def test_histories_that_never_met_are_no_branch(repo: Repository) -> None:
    repo.run_with_hooks("switch", "-q", "--orphan", "alone")
    commit(repo, "alone")

    assert squash_merges._base_and_commits(repo, "main", "alone")[0] == ""
    assert not squash_merges.record_branch_patch(repo, "alone", repo.resolve("main"))
    assert not squash_merges.record_branch_patch(repo, "main", repo.resolve("main"))


def test_a_branch_that_is_very_long_is_seen_as_far_as_it_goes(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(squash_merges, "MAX_BRANCH_COMMITS", 3)
    repo.run_with_hooks("switch", "-q", "-c", "topic")
    made = [commit(repo, str(n)) for n in range(5)]

    found, inside = squash_merges._base_and_commits(repo, "main", "topic")

    assert (found, inside) == (repo.run_text("rev-parse", "main"), made[:1:-1])
