"""What a run did to a work tree, by tree ids that do not depend on anybody's index."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from accord.agents.tools.work_tree_record import WorkTreeRecorder, host_at_work
from accord.core.provenance.coverage.recorded_run import (
    MAX_RECORDED_CHANGES,
    RECORD_KEY,
    parse_recorded_run,
)
from tests.helpers.git.work_tree import WorkTree

PATIENCE_S = 60


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    made = WorkTree.create(tmp_path)
    made.write(".gitignore", "*.log\n")
    made.commit("chore: begin", "a.py", "x = 1\n")
    return made


async def recorded(tree: WorkTree, **files: str) -> dict[str, Any]:
    """The record of a run that writes these files; `_` is the dot in their names."""
    async with WorkTreeRecorder(tree.path).run() as run:
        for name, content in files.items():
            (tree.path / name.replace("_", ".")).write_text(content)
        metadata = await run.metadata()
    assert metadata is not None
    record: dict[str, Any] = metadata[RECORD_KEY]
    return record


async def test_the_trees_before_and_after_are_those_of_all_files(tree: WorkTree) -> None:
    before = tree.git("rev-parse", "HEAD^{tree}")
    record = await recorded(tree, a_py="x = 2\n", b_py="new\n", c_log="ignored\n")
    tree.git("add", "-A")

    assert record["base"] == record["before"] == before
    assert record["after"] == tree.git("write-tree")
    assert [each["path"] for each in record["changes"]] == ["a.py", "b.py"]
    assert record["changes"][1]["after"] == tree.git("rev-parse", ":b.py")
    assert parse_recorded_run({RECORD_KEY: record}) is not None


@pytest.mark.parametrize("staged", [True, False])
async def test_what_somebody_did_by_hand_before_shows(tree: WorkTree, *, staged: bool) -> None:
    (tree.path / "a.py").write_text("by hand\n")
    if staged:
        tree.git("add", "-A")
    index = tree.git("diff", "--cached", "--raw")
    record = await recorded(tree, b_py="new\n")

    assert record["before"] != record["base"]
    assert [each["path"] for each in record["changes"]] == ["b.py"]
    assert tree.git("diff", "--cached", "--raw") == index


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
async def test_a_change_that_the_index_was_told_to_ignore_shows(tree: WorkTree, flag: str) -> None:
    tree.git("update-index", flag, "a.py")
    (tree.path / "a.py").write_text("x = 9\n")
    record = await recorded(tree)

    assert record["before"] == record["after"] != record["base"]


async def test_runs_in_one_work_tree_are_one_after_the_other(tree: WorkTree) -> None:
    first, second = WorkTreeRecorder(tree.path), WorkTreeRecorder(tree.path)
    begun = asyncio.Event()

    async def wait_for_turn() -> dict[str, Any] | None:
        async with second.run() as run:
            begun.set()
            return await run.metadata()

    async with asyncio.timeout(PATIENCE_S), first.run() as run:
        waiting = asyncio.create_task(wait_for_turn())
        await asyncio.to_thread((tree.path / "b.py").write_text, "by the first\n")
        mine = await run.metadata()
        assert not begun.is_set()
    theirs = await asyncio.wait_for(waiting, PATIENCE_S)

    assert mine is not None
    assert theirs is not None
    assert theirs[RECORD_KEY]["before"] == mine[RECORD_KEY]["after"]
    assert theirs[RECORD_KEY]["changes"] == []


async def test_nothing_is_recorded_while_a_host_works_there(tree: WorkTree) -> None:
    two_hosts = host_at_work(tree.path), host_at_work(tree.path)
    async with two_hosts[0], two_hosts[1], WorkTreeRecorder(tree.path).run() as run:
        assert await run.metadata() is None
    assert (await recorded(tree))["changes"] == []


async def test_a_host_begins_when_a_recorded_run_has_ended(tree: WorkTree) -> None:
    begun = asyncio.Event()

    async def work() -> None:
        async with host_at_work(tree.path):
            begun.set()

    async with WorkTreeRecorder(tree.path).run() as run:
        host = asyncio.create_task(work())
        assert await run.metadata() is not None
        assert not begun.is_set()
    await asyncio.wait_for(host, PATIENCE_S)


async def test_too_many_changes_or_names_that_are_no_text_give_no_record(tree: WorkTree) -> None:
    async with WorkTreeRecorder(tree.path).run() as run:
        for number in range(MAX_RECORDED_CHANGES + 1):
            (tree.path / f"{number}.py").touch()
        assert await run.metadata() is None
    tree.git("clean", "-fdq")
    async with WorkTreeRecorder(tree.path).run() as run:
        for number in range(MAX_RECORDED_CHANGES):
            (tree.path / f"{number}{'n' * 200}.py").touch()
        assert await run.metadata() is None
    tree.git("clean", "-fdq")
    async with WorkTreeRecorder(tree.path).run() as run:
        (tree.path / "caf\udce9.py").touch()
        assert await run.metadata() is None


async def test_without_a_commit_there_is_no_record(tmp_path: Path) -> None:
    empty = WorkTree.create(tmp_path)
    async with WorkTreeRecorder(empty.path).run() as run:
        assert await run.metadata() is None
    async with WorkTreeRecorder(empty.path).run() as run:
        empty.commit("chore: begin")
        assert await run.metadata() is None
