"""Where the server sees a repository's pact: real working trees, a real server."""

from pathlib import Path
from typing import Any

import pytest

from accord.core.provenance.commit_links import MAX_LEDGERS
from tests.helpers.clients.bridge_client import send_action
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.server_process import ServerProcess

SEATS = ("--seat", "alice:orchestrator:A.md", "--seat", "bot:worker:B.md")


@pytest.fixture
def alice(work: WorkTree, server: ServerProcess) -> WorkTree:
    """In a repository with hooks and a pact, beside her server."""
    alice = work.with_environment(
        ACCORD_HOME=str(server.home),
        ACCORD_URL=server.url,
        ACCORD_TOKEN=server.admin_token,
        PACT_AGENT_ID="alice",
    )
    assert alice.accord("pact", "init", "--project", "shop", *SEATS).code == 0
    alice.git("add", ".")
    alice.git("commit", "-q", "-m", "chore: a pact")
    return alice


def assign(work: WorkTree, task: str) -> None:
    said = ("--feature", "cart", "--branch", "cart", "--owner", "bot", "--reviewer", "alice")
    ran = work.accord("pact", "assign", task, *said)
    assert ran.code == 0, ran


def tree(work: WorkTree, name: str) -> WorkTree:
    """Another working tree, whose pact the server is told of."""
    work.git("worktree", "add", "-q", "-b", name, f"../{name}")
    return work.in_directory(work.path.parent / name)


def seen(work: WorkTree) -> dict[str, tuple[int, int]]:
    """Each working tree by its name, with its events and those that only it has."""
    found: list[dict[str, Any]] = work.accord("git", "places", "--json").json["places"]
    return {Path(each["directory"]).parent.name: (each["events"], each["alone"]) for each in found}


def test_where_a_pact_lies_is_shown_and_removed(alice: WorkTree) -> None:
    assign(alice, "T1")
    side = tree(alice, "side")
    assign(side, "T2")

    assert seen(alice) == {"repo": (2, 1), "side": (2, 1)}
    shown = alice.accord("git", "places").out
    assert f"{side.path / '.pact'}  2       1           ok" in shown
    gone = alice.accord("git", "places", "--remove", "../side/.pact")
    assert (gone.code, "side" in gone.out) == (0, False)
    again = alice.accord("git", "places", "--remove", str(side.path / ".pact"))
    assert (again.code, "no pact of this repository in" in again.err) == (4, True)


def test_what_a_session_goes_by_is_not_removed_unless_one_means_it(alice: WorkTree) -> None:
    assign(alice, "T1")
    side = tree(alice, "side")
    assign(side, "T2")
    assert alice.accord("session", "create").code == 0

    no = alice.accord("git", "places", "--remove", "../side/.pact")
    assert (no.code, "1 event exists only in this directory" in no.err) == (5, True)
    assert seen(alice) == {"repo": (2, 1), "side": (2, 1)}
    done = alice.accord("git", "places", "--remove", "../side/.pact", "--force", "--json")
    assert [Path(each["directory"]).parent.name for each in done.json["places"]] == ["repo"]


def test_a_ninth_place_is_refused_and_what_nobody_misses_makes_way(
    alice: WorkTree, server: ServerProcess
) -> None:
    assign(alice, "T1")
    alice.git("commit", "-qam", "chore: a task")
    trees = [tree(alice, f"tree-{n}") for n in range(MAX_LEDGERS)]
    for each in trees[:-1]:
        assign(each, f"in-{each.path.name}")
    assert len(seen(alice)) == MAX_LEDGERS
    repo = alice.git("config", "accord.repo")
    last = trees[-1]

    def say(directory: Path) -> dict[str, Any]:
        path = str(directory / ".pact")
        return send_action(server.home / "bridge.sock", "pact-changed", repo=repo, directory=path)

    no = say(last.path)["error"]
    assert (no["code"], "accord git places" in no["message"]) == ("INVALID_STATE", True)
    (trees[0].path / ".pact" / "log.jsonl").unlink()
    assert "error" in say(last.path), "what lay there alone still counts"
    with (alice.path / ".pact" / "log.jsonl").open("ab") as log:
        log.write(last_line(trees[1]))
    (trees[1].path / ".pact" / "log.jsonl").unlink()
    assert "error" not in say(last.path)
    assert sorted(seen(alice)) == sorted({"repo", *(f"tree-{n}" for n in range(8))} - {"tree-1"})


def last_line(work: WorkTree) -> bytes:
    return (work.path / ".pact" / "log.jsonl").read_bytes().splitlines(keepends=True)[-1]


def test_without_a_server_or_an_id_one_is_told_so(work: WorkTree) -> None:
    no = work.accord("git", "places")
    assert (no.code, "`accord serve` starts one" in no.err) == (6, True)

    work.git("config", "--unset", "accord.repo")
    no = work.accord("git", "places")
    assert (no.code, "accord git install" in no.err) == (5, True)
