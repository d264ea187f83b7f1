"""Whatever git does to a line's commit, `accord why` finds the decision behind the line."""

import pytest

from accord.git.records.reviewers import add_reviewers
from accord.git.repository import Repository
from tests.helpers.git.work_tree import WorkTree

LINE = "total = sum(price * (1 + rate) for price in prices)"
FILE = f"import math\n\n{LINE}\nprint(total)\n"
ELSEWHERE = {"PVP_SESSION_ID": "", "PVP_MESSAGES": "", "PVP_DECISION_BY": ""}


@pytest.fixture
def topic(session: WorkTree) -> WorkTree:
    """On a branch, one decision behind the line; what follows is of no session."""
    session.commit("chore: begin", "README.md")
    session.git("switch", "-qc", "topic")
    session.commit("feat: add it up", "cart.py", FILE)
    return session


def alone(work: WorkTree) -> WorkTree:
    return work.with_environment(**ELSEWHERE)


def why(work: WorkTree, target: str) -> tuple[list[str], str]:
    """The decisions that it names, and by which sign."""
    (reason,) = work.accord("why", target, "--offline", "--json").json["reasons"]
    ids = [each["id"] for each in reason["record"].get("decisions", [])]
    return ids, reason["found_by"]


def test_why_names_the_decision_after_an_amend(topic: WorkTree) -> None:
    before = topic.decision_ids()
    topic.write("more.txt", "x")
    topic.git("commit", "-q", "--amend", "-m", "feat: add it all up")

    assert why(topic, "cart.py:3")[0] == before


def test_why_names_the_decision_after_an_amend_that_replaces_the_whole_message(
    topic: WorkTree,
) -> None:
    """`--amend -m` drops the trailers, as git always does; the record goes on."""
    before = topic.decision_ids()
    alone(topic).git("commit", "-q", "--amend", "-m", "Add it all up")

    assert topic.trailers() == {}
    assert why(topic, "cart.py:3") == (before, "note")
    assert why(topic, "HEAD") == (before, "note")


def test_why_names_the_decision_after_an_amend_without_hooks(topic: WorkTree) -> None:
    before = topic.decision_ids()
    topic.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--amend", "-m", "Reworded")

    assert why(topic, "cart.py:3") == (before, "patch")


def test_why_names_the_decision_after_a_rebase_with_a_fixup(topic: WorkTree) -> None:
    first = topic.decision_ids()
    topic.commit("fixup! feat: add it up", "cart.py", FILE.replace("print", "log"))
    second = topic.decision_ids()
    topic.git("switch", "-q", "main")
    alone(topic).commit("chore: meanwhile", "other.txt")
    topic.git("switch", "-q", "topic")
    topic.with_environment(GIT_SEQUENCE_EDITOR="true").git(
        "rebase", "-q", "-i", "--autosquash", "main"
    )

    assert topic.git("rev-list", "--count", "main..") == "1"
    assert sorted(why(topic, "cart.py:3")[0]) == sorted(first + second)
    assert sorted(why(topic, "cart.py:4")[0]) == sorted(first + second)


@pytest.mark.parametrize("hooks", [True, False])
def test_why_names_the_decision_after_a_cherry_pick(topic: WorkTree, hooks: bool) -> None:
    before = topic.decision_ids()
    topic.git("switch", "-q", "main")
    off = [] if hooks else ["-c", "core.hooksPath=/dev/null"]
    alone(topic).git(*off, "cherry-pick", "topic")
    topic.git("branch", "-qD", "topic")

    assert why(topic, "cart.py:3")[0] == before


def squashed(topic: WorkTree) -> list[str]:
    """Two commits, two decisions."""
    first = topic.decision_ids()
    topic.commit("feat: say it", "cart.py", FILE + "say(total)\n")
    return sorted(first + topic.decision_ids())


def test_why_names_the_decision_after_a_squash_merge(topic: WorkTree) -> None:
    ids = squashed(topic)
    topic.git("switch", "-q", "main")
    topic.git("merge", "-q", "--squash", "topic")
    alone(topic).git("commit", "-q", "-m", "Sums (#42)")
    topic.git("branch", "-qD", "topic")

    assert sorted(why(topic, "cart.py:3")[0]) == ids


def test_why_names_the_decision_after_a_forges_squash_merge_with_the_branch_deleted(
    topic: WorkTree,
) -> None:
    ids = squashed(topic)
    tree = topic.git("rev-parse", "topic^{tree}")
    sha = topic.git("commit-tree", tree, "-p", "main", "-m", "Sums (#42)")
    topic.git("switch", "-q", "main")
    topic.git("reset", "-q", "--hard", sha)
    topic.git("branch", "-qD", "topic")

    found, by = why(topic, "cart.py:3")
    assert (sorted(found), by) == (ids, "branch")
    assert why(topic, "HEAD")[0] == found


def test_why_names_the_decision_after_a_rename(topic: WorkTree) -> None:
    before = topic.decision_ids()
    topic.git("mv", "cart.py", "basket.py")
    alone(topic).git("commit", "-q", "-m", "refactor: a better name")

    assert why(topic, "basket.py:3") == (before, "note")


def test_why_names_the_decision_after_the_line_was_moved_and_indented(topic: WorkTree) -> None:
    before = topic.decision_ids()
    moved = f"import math\n\nprint(total)\n\n\ndef f():\n    {LINE}\n"
    alone(topic).commit("refactor: into a function", "cart.py", moved)

    assert why(topic, "cart.py:7") == (before, "note")


def test_why_names_the_decision_after_the_line_went_to_another_file(topic: WorkTree) -> None:
    before = topic.decision_ids()
    topic.write("sums.py", f'"""Sums."""\n\n{LINE}\n')
    topic.write("cart.py", "import math\n\nprint(total)\n")
    alone(topic).git("commit", "-q", "-m", "refactor: into a file of its own")

    assert why(topic, "sums.py:3") == (before, "note")


def test_why_names_the_decision_after_a_change_of_spaces(topic: WorkTree) -> None:
    before = topic.decision_ids()
    alone(topic).commit(
        "style: spaces", "cart.py", FILE.replace(LINE, LINE.replace(" * ", "  *  "))
    )

    assert why(topic, "cart.py:3") == (before, "note")


def test_a_revert_is_its_own_commit_and_a_revert_of_it_another(topic: WorkTree) -> None:
    before = topic.decision_ids()
    alone(topic).git("revert", "--no-edit", "HEAD")
    ran = topic.accord("why", "HEAD", "--offline", "--json")
    assert (ran.code, ran.json["reasons"][0]["found_by"]) == (4, None)
    alone(topic).git("revert", "--no-edit", "HEAD")

    # The line is there again by the same change, for the same reason.
    assert why(topic, "cart.py:3") == (before, "patch")


def reviewed(work: WorkTree, commit: str) -> tuple[list[str], str]:
    """Who reviewed this very commit, for programs; and what people read of it."""
    (reason,) = work.accord("why", commit, "--offline", "--json").json["reasons"]
    sha = work.git("rev-parse", commit)
    said = work.accord("why", commit, "--offline").out.partition("reviewed by")[2]
    by = [each["by"] for each in reason["reviews"] if each["commit"] == sha]
    return by, said.partition("\n")[0].strip()


@pytest.mark.parametrize("copied", [True, False], ids=["git copies notes", "the hooks do"])
@pytest.mark.parametrize(
    "moved",
    [
        ("commit", "-q", "--amend", "--no-edit", "-a"),
        ("commit", "-q", "--amend", "-a", "-m", "feat: something else"),
        ("rebase", "-q", "--force-rebase", "--autostash", "main"),
    ],
    ids=["amend", "amend -m", "rebase"],
)
def test_who_reviewed_a_commit_did_not_review_what_took_its_place(
    topic: WorkTree, moved: tuple[str, ...], copied: bool
) -> None:
    if copied:
        topic.git("config", "notes.rewriteRef", "refs/notes/pvp")
    before, ids = topic.git("rev-parse", "HEAD"), topic.decision_ids()
    add_reviewers(Repository(topic.path), [before], ["human:ann"])
    assert reviewed(topic, before) == (["human:ann"], "human:ann")

    topic.write("cart.py", FILE + "# nobody saw this\n")
    alone(topic).with_environment(GIT_COMMITTER_DATE="2030-01-01T00:00:00Z").git(*moved)

    assert topic.git("rev-parse", "HEAD") != before
    assert why(topic, "cart.py:3")[0] == ids
    assert reviewed(topic, "HEAD") == ([], f"human:ann, as it was in {before[:10]}")
