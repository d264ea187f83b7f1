"""Approved work that is committed in several commits: each has its record, and no other's.

Real server, real hooks, real git.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.helpers.clients.bridge_client import send_action
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves
from tests.stories.test_approvals_cover_content import BACK_DOOR, BOB, Scene
from tests.stories.test_prompt_to_why import Repo
from tests.transports.bridge.test_handlers import at_work

NOT_SAID = ("PVP-Session", "PVP-Decision", "Decision-By", "Approved-By")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("server")) as running:
        yield running


async def bound_repository(scene_of: Scene | None, server: ServerProcess, folder: Path) -> Scene:
    """A repository bound to a new session, or to that of another scene."""
    repo = Repo(folder, server.home)
    repo.commit("README", "chore: begin")
    await asyncio.to_thread(repo.accord, "git", "install")
    id = repo.git("config", "accord.repo").strip()
    work = scene_of.work if scene_of else await at_work(server)
    told = {"repo": id, "session": work.session}
    await asyncio.to_thread(send_action, server.home / "bridge.sock", "session-started", **told)
    return Scene(repo, work, server)


@pytest.fixture
async def scene(server: ServerProcess, tmp_path: Path) -> AsyncIterator[Scene]:
    made = await bound_repository(None, server, tmp_path / "code")
    yield made
    await made.work.leave()


async def commit_only(scene: Scene, *names: str, message: str = "feat: go on") -> str:
    await scene.git("add", "--", *names)
    await scene.git("commit", "-q", "-m", message)
    return await scene.sha("HEAD")


def ran_in(scene: Scene, rev: str = "HEAD") -> list[str]:
    """The runs that a commit's record says it contains."""
    tools = scene.decision(rev).get("tool_executions", ())
    return [tool["id"] for tool in tools if not tool.get("elsewhere")]


async def is_covered(scene: Scene, rev: str, *runs: str) -> bool:
    """Whether trailers, record and `accord why` say that Bob approved these runs and all of it."""
    made = scene.decision(rev)
    return (
        scene.approvers(rev) == BOB
        and made["covers"] == "whole"
        and made["git_sha"] == await scene.sha(rev)
        and ran_in(scene, rev) == list(runs)
        and (await scene.why(rev))["coverage"]["approved_by"] == [BOB]
    )


def has_no_trailers(scene: Scene, rev: str = "HEAD") -> bool:
    return not any(scene.repo.trailer(key, rev) for key in NOT_SAID)


@proves("GIT-MAP-3")
@pytest.mark.parametrize("first", ["a.py", "b.py"])
async def test_approved_work_in_two_commits_has_two_records_and_a_third_by_hand_none(
    scene: Scene, first: str
) -> None:
    runs = {name: await scene.approved_write(name, f"{name}\n") for name in ("a.py", "b.py")}
    (second,) = set(runs) - {first}
    await commit_only(scene, first)
    await commit_only(scene, second)
    scene.write("a.py", BACK_DOOR)
    await commit_only(scene, "a.py", message="fix: by hand")

    assert await is_covered(scene, "HEAD~2", runs[first])
    assert await is_covered(scene, "HEAD~1", runs[second])
    decisions = [scene.repo.trailer("PVP-Decision", rev) for rev in ("HEAD~2", "HEAD~1")]
    assert len(set(decisions)) == len(decisions)
    assert scene.repo.trailer("Decision-By", "HEAD~1") == "agent:bot,human:Bot,human:alice"
    assert "Use write_file" in json.dumps(scene.repo.note("HEAD~1")["conversation"])
    assert has_no_trailers(scene)


async def test_three_commits_with_one_by_hand_between_them_are_all_told_apart(
    scene: Scene,
) -> None:
    runs = [await scene.approved_write(name, f"{name}\n") for name in ("a", "b", "c")]
    await commit_only(scene, "a")
    scene.write("hand", "x\n")
    await commit_only(scene, "hand")
    await commit_only(scene, "b")
    await commit_only(scene, "c")

    assert has_no_trailers(scene, "HEAD~2")
    for rev, run in zip(("HEAD~3", "HEAD~1", "HEAD"), runs, strict=True):
        assert await is_covered(scene, rev, run)
    ids = {scene.decision(rev)["id"] for rev in ("HEAD~3", "HEAD~1", "HEAD")}
    assert len(ids) == len(runs)


async def test_what_is_left_behind_is_committed_with_later_work(scene: Scene) -> None:
    await scene.approved_write("a", "a\n")
    old = await scene.approved_write("b", "b\n")
    await commit_only(scene, "a")
    new = await scene.approved_write("c", "c\n")
    await commit_only(scene, "b", "c")
    scene.write("d", "by hand\n")
    await scene.work.prompt("Something else")
    await commit_only(scene, "d")

    assert await is_covered(scene, "HEAD~1", old, new)
    assert ran_in(scene) == []
    assert "Use write_file" not in json.dumps(scene.repo.note())


async def test_a_call_that_ends_after_the_first_commit_covers_the_second(scene: Scene) -> None:
    await scene.approved_write("a", "a\n")
    arguments = {"path": "b", "content": "b\n"}
    running = await scene.work.tool(
        await scene.work.prompt("Write b"),
        finish=False,
        tool_name="write_file",
        arguments=arguments,
    )
    await commit_only(scene, "a")
    await scene.work.finish(running)
    scene.write("b", "b\n")
    await commit_only(scene, "b")

    assert await is_covered(scene, "HEAD", running)


async def test_one_call_and_one_file_are_split_as_well(scene: Scene) -> None:
    """A patch of two files, and two edits of one, of which `git add -p` takes the later first."""
    scene.write("a", "one\n\n\n\n\n\n\n\ntwo\n")
    await scene.commit("chore: by hand")
    patch = "*** Begin Patch\n*** Add File: b\n+b\n*** Add File: c\n+c\n*** End Patch\n"
    both = await scene.approved("apply_patch", input=patch)
    scene.write("b", "b\n")
    scene.write("c", "c\n")
    first = await scene.approved_edit("a", "one", "1")
    last = await scene.approved_edit("a", "two", "2")
    await commit_only(scene, "b")
    whole = scene.read("a")
    scene.write("a", whole.replace("1", "one"))
    await commit_only(scene, "a")
    scene.write("a", whole)
    await commit_only(scene, "a", "c")

    assert await is_covered(scene, "HEAD~2", both)
    assert await is_covered(scene, "HEAD~1", last)
    assert await is_covered(scene, "HEAD", both, first)


async def test_what_was_changed_by_hand_meanwhile_names_nobody(scene: Scene) -> None:
    await scene.approved_write("a", "a\n")
    run = await scene.approved_write("b", "b\n")
    await commit_only(scene, "a")
    scene.write("b", BACK_DOOR)
    await commit_only(scene, "b")

    assert await scene.is_nobodys()
    assert scene.decision()["covers"] == "none"
    assert ran_in(scene) == [run]
    scene.write("b", "b\n")
    await commit_only(scene, "b", message="revert: by hand")
    assert has_no_trailers(scene)


@pytest.mark.parametrize("change", ["message", "takes it out", "takes it in"])
async def test_an_amend_between_two_commits_moves_what_it_moves(scene: Scene, change: str) -> None:
    one = await scene.approved_write("a", "a\n")
    two = await scene.approved_write("b", "b\n")
    await commit_only(scene, *(["a", "b"] if change == "takes it out" else ["a"]))
    if change == "takes it out":
        await scene.git("rm", "-q", "--cached", "b")
    if change == "takes it in":
        await scene.git("add", "b")
    await scene.git("commit", "-q", "--amend", "--no-edit", "--date=2030-01-01T00:00:00Z")
    if change == "takes it in":
        assert (await scene.why())["coverage"]["approved_by"] == [BOB]
        scene.write("b", BACK_DOOR)
        await commit_only(scene, "b", message="fix: by hand")
        assert has_no_trailers(scene)
        return
    await commit_only(scene, "b")

    assert (await scene.why("HEAD~1"))["coverage"]["approved_by"] == [BOB]
    assert one in ran_in(scene, "HEAD~1")
    assert await is_covered(scene, "HEAD", two)


async def test_a_rebase_between_and_after_two_commits_keeps_both_records(scene: Scene) -> None:
    base = await scene.sha("HEAD")
    await scene.approved_write("a", "a\n")
    two = await scene.approved_write("b", "b\n")
    await commit_only(scene, "a")
    for number in range(2):
        await scene.git("branch", "-f", "topic")
        await scene.git("switch", "-q", "--detach", base)
        scene.write(f"other{number}", "by hand\n")
        base = await commit_only(scene, f"other{number}", message="chore: by hand")
        await scene.git("switch", "-q", "main")
        await scene.git("rebase", "-q", base)
        if not number:
            await commit_only(scene, "b")
            assert await is_covered(scene, "HEAD", two)

    for rev in ("HEAD~1", "HEAD"):
        assert scene.approvers(rev) == BOB
        assert (await scene.why(rev))["coverage"]["approved_by"] == [BOB]
    scene.write("b", BACK_DOOR)
    await commit_only(scene, "b", message="fix: by hand")
    assert has_no_trailers(scene)


async def test_another_clone_does_not_claim_what_waits_here(
    scene: Scene, server: ServerProcess, tmp_path: Path
) -> None:
    second = await bound_repository(scene, server, tmp_path / "clone")
    await scene.approved_write("a", "a\n")
    run = await scene.approved_write("b", "b\n")
    await commit_only(scene, "a")
    second.write("other", "by hand\n")
    await commit_only(second, "other")
    await commit_only(scene, "b")
    second.write("b", BACK_DOOR)
    await commit_only(second, "b", message="fix: by hand")

    assert await is_covered(scene, "HEAD", run)
    assert second.repo.trailer("Decision-By", "HEAD~1") == "human:Bot"
    assert ran_in(second, "HEAD~1") == []
    assert has_no_trailers(second)


async def test_a_server_that_restarts_between_two_commits_forgets_nothing(tmp_path: Path) -> None:
    with run_server(tmp_path / "server") as server:
        scene = await bound_repository(None, server, tmp_path / "code")
        await scene.approved_write("a", "a\n")
        run = await scene.approved_write("b", "b\n")
        await commit_only(scene, "a")
        await asyncio.to_thread(server.restart)
        await commit_only(scene, "b")

        assert await is_covered(scene, "HEAD", run)
        await scene.work.leave()
