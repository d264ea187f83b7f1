"""Decisions are found again, whatever git does to the commits."""

import json
import subprocess
import sys
from pathlib import Path

from tests.helpers.git.work_tree import WorkTree
from tests.spec import proves


def branch(session: WorkTree) -> list[str]:
    """A branch with two decisions; says their ids."""
    session.commit("feat: begin")
    session.git("switch", "-qc", "topic")
    session.commit("feat: one", "a.txt", "1\n2\n3\n")
    first = session.decision_ids()
    session.commit("feat: two", "b.txt", "4\n5\n")
    return sorted(first + session.decision_ids())


def test_an_amend_carries_the_decision_on(session: WorkTree) -> None:
    session.commit("feat: begin")
    before = session.decision_ids()
    session.write("more.txt", "x")
    session.git("commit", "-q", "--amend", "--no-edit")

    assert session.decision_ids() == before


def test_a_rebase_carries_each_decision_on(session: WorkTree) -> None:
    ids = branch(session)
    session.git("switch", "-q", "main")
    session.with_environment(PVP_SESSION_ID="").commit("chore: meanwhile", "c.txt")
    session.git("switch", "-q", "topic")
    session.git("rebase", "-q", "main")

    assert sorted(session.decision_ids("HEAD~1") + session.decision_ids()) == ids
    assert len(session.decision_ids()) == 1


def test_a_fixup_leaves_one_commit_with_both_decisions_and_one_json(session: WorkTree) -> None:
    session.git("config", "notes.rewriteRef", "refs/notes/pvp")
    session.commit("feat: begin")
    session.commit("feat: one", "a.txt", "1\n")
    one = session.decision_ids()
    session.commit("fixup! feat: one", "a.txt", "1\n2\n")
    two = session.decision_ids()
    session.with_environment(GIT_SEQUENCE_EDITOR="true").git(
        "rebase", "-q", "-i", "--autosquash", "HEAD~2"
    )

    assert session.git("rev-list", "--count", "HEAD") == "2"
    assert sorted(session.decision_ids()) == sorted(one + two)


def test_a_cherry_pick_keeps_its_decision_and_gets_no_other(session: WorkTree) -> None:
    ids = branch(session)
    session.git("switch", "-q", "main")
    session.with_environment(PVP_SESSION_ID="ses_other").git("cherry-pick", "topic")
    assert session.accord("git", "heal").code == 0

    assert set(session.decision_ids()) <= set(ids)
    assert session.decision_ids()
    assert session.trailers()["PVP-Session"] != "ses_other"


def test_a_squash_merge_has_all_decisions_at_once(session: WorkTree) -> None:
    ids = branch(session)
    session.git("switch", "-q", "main")
    session.git("merge", "-q", "--squash", "topic")
    session.with_environment(PVP_SESSION_ID="", PVP_MESSAGES="", PVP_DECISION_BY="").git(
        "commit", "-q", "-m", "feat: all of it"
    )

    assert sorted(session.decision_ids()) == ids


def forge(session: WorkTree, message: str) -> None:
    """The topic squashed onto main by a program that runs no hooks, as a forge does it."""
    tree = session.git("rev-parse", "topic^{tree}")
    sha = session.git("commit-tree", tree, "-p", "main", "-m", message)
    session.git("update-ref", "refs/heads/main", sha)
    session.git("switch", "-q", "main")


def test_a_forge_s_squash_is_known_by_all_that_the_branch_changed(session: WorkTree) -> None:
    ids = branch(session)
    forge(session, "All of it (#7)")
    ran = session.accord("git", "heal")

    assert "by a branch it squashed" in ran.out
    assert sorted(session.decision_ids()) == ids


def test_a_squash_is_known_when_branch_and_commits_are_gone(
    session: WorkTree, tmp_path: Path
) -> None:
    """The branch was pushed once; what it changes as a whole was written down then."""
    remote = WorkTree.create(tmp_path, "remote", "--bare")
    session.git("remote", "add", "origin", str(remote.path))
    ids = branch(session)
    session.git("push", "-q", "origin", "main", "topic")
    forge(session, "All of it (#7)")
    session.git("branch", "-qD", "topic")
    session.git("update-ref", "-d", "refs/remotes/origin/topic")
    session.git("reflog", "expire", "--expire=now", "--all")
    session.git("gc", "-q", "--prune=now")
    session.accord("git", "heal")

    assert sorted(session.decision_ids()) == ids


def test_a_forge_s_squash_that_quotes_the_commits_is_known_by_their_ids(session: WorkTree) -> None:
    ids = branch(session)
    quoted = "\n\n".join(f"* feat: one\n\nPVP-Decision: {id}" for id in ids)
    forge(session, f"All of it (#7)\n\n{quoted}\n\nand a word")
    session.commit("chore: on", "z.txt")
    session.git("branch", "-qD", "topic")
    ran = session.accord("git", "heal", "--json")

    (healed,) = ran.json["healed"]
    assert (healed["decisions"], healed["found_by"]) == (ids, "name")


def test_a_reference_in_brackets_is_enough(session: WorkTree) -> None:
    ids = branch(session)
    refs = " ".join(f"[pvp:dec-{id.removeprefix('dec_')}]" for id in ids)
    forge(session, f"All of it (#7)\n\n{refs}")
    session.git("commit", "-q", "--allow-empty", "--no-verify", "-m", "chore: empty")
    session.accord("git", "heal")

    assert sorted(session.decision_ids("HEAD~1")) == ids


def test_a_clone_without_notes_finds_them_after_a_fetch(session: WorkTree, tmp_path: Path) -> None:
    session.commit("feat: begin")
    ids = session.decision_ids()
    remote = WorkTree.create(tmp_path, "remote", "--bare")
    session.git("remote", "add", "origin", str(remote.path))
    session.git("push", "-q", "origin", "main")
    session.git("clone", "-q", str(remote.path), str(tmp_path / "clone"))
    clone = session.in_directory(tmp_path / "clone")
    ran = clone.accord("why", "HEAD")
    brings = "`accord git fetch` fetches the records that others have pushed"
    assert (ran.code, ran.err) == (4, f"accord: there are no records here; {brings}\n")
    assert clone.accord("git", "tree").out == f"No commit here belongs to a session yet; {brings}\n"
    assert session.accord("git", "share").code == 0

    assert clone.accord("git", "fetch").code == 0
    assert clone.decision_ids() == ids
    assert clone.accord("why", "file.txt:1").code == 0
    assert clone.accord("why", "file.txt:1").err == ""


def test_where_to_fetch_from_is_named_by_its_remote(session: WorkTree, tmp_path: Path) -> None:
    session.commit("feat: begin")
    session.git("clone", "-q", "-o", "forge", str(session.path), str(tmp_path / "clone"))
    clone = session.in_directory(tmp_path / "clone")

    assert "`accord git fetch forge` fetches" in clone.accord("why", "HEAD").err
    assert clone.accord("git", "fetch", "forge").code == 0
    assert clone.accord("why", "HEAD").code == 0


@proves("OPEN-74")
def test_nothing_is_pushed_until_somebody_says_share(session: WorkTree, tmp_path: Path) -> None:
    remote = WorkTree.create(tmp_path, "remote", "--bare")
    session.git("remote", "add", "origin", str(remote.path))
    session.commit("feat: begin")
    session.git("push", "-q", "origin", "main")
    assert remote.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"

    session.accord("git", "share")
    assert remote.git("for-each-ref", "--format=%(refname)").split() == [
        "refs/accord/decisions",
        "refs/heads/main",
        "refs/notes/pvp",
    ]


def test_what_two_people_share_is_merged_and_never_concatenated(
    session: WorkTree, tmp_path: Path
) -> None:
    remote = WorkTree.create(tmp_path, "remote", "--bare")
    session.git("remote", "add", "origin", str(remote.path))
    session.commit("feat: begin")
    session.git("push", "-q", "origin", "main")
    session.accord("git", "share")
    session.git("clone", "-q", str(remote.path), str(tmp_path / "clone"))
    clone = session.in_directory(tmp_path / "clone")
    clone.accord("git", "install")
    clone.accord("git", "fetch")
    for who, name in ((session, "here"), (clone, "there")):
        note = json.loads(who.note())
        note["decisions"].append({"id": f"dec_{name}0000", "pvp_session": "s"})
        who.git("notes", "--ref=pvp", "add", "-f", "-m", json.dumps(note), "HEAD")
        who.commit(f"feat: {name}", f"{name}.txt")
    mine, theirs = session.decision_ids(), clone.decision_ids()
    assert session.accord("git", "share").code == 0
    ran = clone.accord("git", "share")
    assert ran.code == 0, ran.err
    assert session.accord("git", "fetch").code == 0

    both = session.decision_ids("HEAD~1")
    assert {"dec_here0000", "dec_there0000"} <= set(both)
    assert both == clone.decision_ids("HEAD~1")
    session.git("fetch", "-q", str(clone.path), "main")
    assert session.decision_ids("FETCH_HEAD") == theirs
    clone.git("fetch", "-q", str(session.path), "main")
    assert clone.decision_ids("FETCH_HEAD") == mine


def test_writers_at_the_same_time_lose_nothing(work: WorkTree) -> None:
    sha = work.commit("chore: begin")
    code = (
        "import sys; from pathlib import Path; from accord.git.records import decisions_ref as d\n"
        "from accord.git.repository import Repository\n"
        "for n in range(4):\n"
        "  id = f'dec_{sys.argv[2]}-{n}-0000'\n"
        "  note = {'version': 1, 'decisions': [{'id': id, 'pvp_session': 's'}]}\n"
        "  link = d.DecisionLink(frozenset({id}))\n"
        "  d.attach_decisions(Repository(), {sys.argv[1]: link}, {id: note})\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, sha, str(n)], cwd=work.path, env=work.env)
        for n in range(3)
    ]
    assert [each.wait(60) for each in running] == [0, 0, 0]

    assert len(work.decision_ids(sha)) == 12


def test_what_a_session_commits_while_a_rebase_waits_has_a_record(session: WorkTree) -> None:
    session.commit("feat: begin", "a", "1\n")
    session.commit("feat: one", "b", "2\n")
    one = session.decision_ids()
    session.commit("feat: two", "c", "3\n")
    two = session.decision_ids()
    edits = session.with_environment(GIT_SEQUENCE_EDITOR="sed -i -e '1s/pick/edit/'")
    edits.git("rebase", "-q", "-i", "HEAD~2")
    session.commit("feat: in between", "d", "4\n")
    between = session.decision_ids()
    session.git("rebase", "--continue")

    assert session.trailers("HEAD~1")["PVP-Session"] == session.env["PVP_SESSION_ID"]
    assert len(between) == 1
    assert [session.decision_ids(f"HEAD~{n}") for n in range(3)] == [two, between, one]


def test_a_commit_that_is_split_in_a_rebase_leaves_no_part_without_a_record(
    session: WorkTree,
) -> None:
    session.commit("feat: begin", "a", "1\n")
    session.write("b", "2\n")
    session.commit("feat: one", "c", "3\n")
    one = session.decision_ids()
    edits = session.with_environment(GIT_SEQUENCE_EDITOR="sed -i -e '1s/pick/edit/'")
    edits.git("rebase", "-q", "-i", "HEAD~1")
    session.git("reset", "-q", "HEAD~1")
    session.commit("feat: first half", "b", "2\n")
    session.commit("feat: second half", "c", "3\n")
    session.git("rebase", "--continue")

    assert session.decision_ids("HEAD~1")
    assert set(one) <= set(session.decision_ids())


def test_a_commit_in_a_list_of_what_to_do_has_the_record_of_its_words(session: WorkTree) -> None:
    session.commit("feat: begin", "a", "1\n")
    session.commit("feat: one", "b", "2\n")
    one = session.decision_ids()
    said = "feat: by hand\n\nPVP-Session: ses_1\nDecision-By: human:alice\n"
    (session.path.parent / "said").write_text(said)
    session.git("rebase", "-q", "-x", "git commit -q --allow-empty -F ../said", "HEAD~1")

    assert len(session.decision_ids()) == 1
    assert session.decision_ids("HEAD~1") == one


def test_without_a_reflog_a_merge_has_its_record(session: WorkTree) -> None:
    session.git("config", "core.logAllRefUpdates", "false")
    session.commit("feat: begin", "a", "1\n")
    session.git("switch", "-qc", "topic")
    session.commit("feat: one", "b", "2\n")
    session.git("switch", "-q", "main")
    session.commit("feat: two", "c", "3\n")
    said = "feat: take it in\n\nPVP-Session: ses_1\nDecision-By: human:alice\n"
    session.git("merge", "-q", "--no-ff", "-m", said, "topic")
    made = session.decision_ids()
    session.git("switch", "-q", "topic")
    session.git("merge", "-q", "--ff-only", "main")
    session.git("switch", "-q", "-c", "again", "main^1")
    session.git("merge", "-q", "--ff-only", "main")

    assert not (session.path / ".git/logs/HEAD").exists()
    assert len(made) == 1
    assert session.decision_ids() == made


def test_what_a_session_settles_in_a_rebase_stays_whose_it_was(
    session: WorkTree, work: WorkTree
) -> None:
    """Git itself makes these commits again, for whoever continues."""
    work.commit("begin", "a", "1\n")
    work.commit("my own way", "b", "2\n")
    edits = session.with_environment(GIT_SEQUENCE_EDITOR="sed -i -e '1s/pick/edit/'")
    edits.git("rebase", "-q", "-i", "HEAD~1")
    session.write("b", "3\n")
    session.git("rebase", "--continue")
    assert (session.message(), session.decision_ids()) == ("my own way\n", [])

    work.commit("third", "c", "2\n")
    work.commit("fourth", "b", "5\n")
    edits = session.with_environment(GIT_SEQUENCE_EDITOR="sed -i -e 1d -e '3s/pick/fixup/'")
    assert edits.run("git", "rebase", "-q", "-i", "HEAD~3").code == 1
    session.write("b", "9\n")
    session.git("rebase", "--continue")
    assert (session.message(), session.decision_ids()) == ("third\n", [])
