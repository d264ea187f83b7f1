"""Runs that no commit contains wait for the next ones, path by path."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.commit_links import CommitLinked, CommitRecord, Repo
from accord.core.provenance.decision_commit import DecisionCommit, ToolExecution
from accord.core.provenance.waiting_runs import (
    ENTIRE_CALL,
    MAX_COMMITS,
    MAX_DISTANCE,
    MAX_PARTS,
    CarriedRun,
)
from tests.core.provenance.test_commit_links import repo, when


def tool(id: str, *paths: str, left: tuple[str, ...] = (), since: int | None = None) -> Any:
    return ToolExecution(id=id, name="write_file", paths=paths, uncommitted=left, since=since)


def linked(id: str, since: int, until: int, *tools: ToolExecution, **more: Any) -> CommitLinked:
    made = DecisionCommit(
        id=id, pvp_session="s", since=since, until=until, tool_executions=tools, **more
    )
    return CommitLinked(decision=made)


FIRST = linked("d1", 0, 5, tool("t", "a"), tool("u", "b", "c", left=("b", "c")))


def carried(state: Repo) -> dict[str, tuple[str, ...]]:
    return {run.id: run.parts for run in state.carried("s")}


def test_a_run_waits_with_the_paths_that_no_commit_contains() -> None:
    second = linked("d2", 5, 5, tool("u", "b", "c", left=("c",), since=0), earlier_links=1)
    third = linked("d3", 5, 5, tool("u", "b", "c", left=("b",), since=0), earlier_links=2)

    assert repo(FIRST).carried("s") == (CarriedRun("u", 0, ("b", "c")),)
    assert carried(repo(FIRST, second)) == {"u": ("c",)}
    assert carried(repo(FIRST, second, third)) == {}
    assert repo(FIRST, second, third).earlier_links("s") == len((FIRST, second, third))


def test_a_fork_and_another_session_have_runs_of_their_own() -> None:
    in_fork = replace(FIRST, decision=replace(FIRST.decision, fork="try"))

    assert [run.id for run in repo(in_fork).carried("s", "try")] == ["u"]
    assert repo(in_fork).carried("s") == repo(FIRST).carried("other") == ()


def test_an_amended_commit_gives_back_what_it_no_longer_contains_and_nothing_else() -> None:
    again = linked("d1", 0, 5, tool("t", "a", left=("a",)), first_sha="a" * 40)
    second = linked("d2", 5, 5, tool("u", "b", "c", since=0), earlier_links=1)
    old = replace(FIRST, decision=replace(FIRST.decision, first_sha="a" * 40))

    assert carried(repo(FIRST, again)) == {"t": ("a",), "u": ("b", "c")}
    assert carried(repo(FIRST, second, old)) == {}
    assert repo(FIRST, again).earlier_links("s") == 1


def test_a_call_whose_paths_are_unknown_waits_as_a_whole() -> None:
    first = linked("d1", 0, 5, tool("c", left=(ENTIRE_CALL,)))
    second = linked("d2", 5, 5, tool("c", "b", since=0), earlier_links=1)

    assert carried(repo(first)) == {"c": (ENTIRE_CALL,)}
    assert carried(repo(first, second)) == carried(repo(first, second, first)) == {}


def test_a_run_waits_for_so_many_commits_and_so_far_and_so_many_wait() -> None:
    others = [linked(f"n{n}", 5 + n, 6 + n) for n in range(MAX_COMMITS)]
    far = linked("d2", 5, MAX_DISTANCE + 1)
    paths = tuple(f"f{n}" for n in range(MAX_PARTS))
    many = linked("d2", 5, 6, tool("m", *paths, left=paths))

    assert carried(repo(FIRST, *others[:-1]))
    assert not carried(repo(FIRST, *others))
    assert not carried(repo(FIRST, far))
    assert carried(repo(FIRST, many)) == {"m": tuple(sorted(paths))}


def test_of_two_commits_of_what_was_left_the_second_is_told_that_it_asked_too_early() -> None:
    record = CommitRecord(linked("d2", 5, 5, earlier_links=1).decision)
    state = repo(FIRST)
    (event,) = when(state, record)

    with pytest.raises(Refused) as no:
        when(repo(FIRST, event), record)

    assert no.value.reason is Reason.WRONG_STATE
    again = CommitRecord(replace(record.decision, first_sha="a" * 40))
    assert when(repo(FIRST, event), again)
