"""Where a message comes from decides whether trailers are added to it."""

import sys
from pathlib import Path

import pytest

from tests.git.conftest import SESSION
from tests.helpers.git.work_tree import WorkTree
from tests.spec import proves

ID = SESSION["PVP_SESSION_ID"]


def edits(folder: Path, code: str) -> str:
    """An editor that does this to the text `t`."""
    program = folder / f"editor{len(list(folder.glob('editor*')))}.py"
    program.write_text(
        f"import sys; p = sys.argv[1]; t = open(p).read(); {code}; open(p, 'w').write(t)"
    )
    return f"{sys.executable} {program}"


@proves("OPEN-69", "GIT-HOOK-PCM-2")
@pytest.mark.parametrize("source", ["empty", "message", "file", "template"])
def test_a_message_of_ones_own_gets_the_trailers(
    session: WorkTree, tmp_path: Path, source: str
) -> None:
    text = tmp_path / "text"
    text.write_text("feat: begin\n")
    empty = session.with_environment(GIT_EDITOR=edits(tmp_path, "t = 'feat: begin' + t"))
    signed = session.with_environment(
        GIT_EDITOR=edits(tmp_path, "t = t.replace('begin', 'begin it')")
    )
    session.write("a.txt", "a")
    ways = {
        "empty": (empty, ()),
        "message": (session, ("-m", "feat: begin")),
        "file": (session, ("-F", str(text))),
        "template": (signed, ("-t", str(text))),
    }
    work, words = ways[source]
    work.git("commit", "-q", *words)

    assert session.message().startswith("feat: begin")
    assert session.message().count("PVP-Session:") == 1
    assert session.trailers()["PVP-Session"] == ID


@proves("OPEN-69")
@pytest.mark.parametrize("source", ["merge", "squash", "commit"])
def test_a_message_that_git_made_or_had_is_left_as_it_is(work: WorkTree, source: str) -> None:
    session = work.with_environment(**SESSION)
    work.commit("chore: begin")
    work.git("switch", "-qc", "topic")
    work.commit("feat: aside", "a.txt")
    work.git("switch", "-q", "main")
    work.commit("feat: here", "b.txt")
    match source:
        case "merge":
            session.git("merge", "-q", "--no-edit", "topic")
        case "squash":
            work.git("merge", "-q", "--squash", "topic")
            session.git("commit", "-q", "--no-edit", "--cleanup=whitespace")
        case _:
            session.git("commit", "-q", "--amend", "--no-edit")

    assert "PVP-Session" not in session.message()


@proves("OPEN-70")
@pytest.mark.parametrize("context", ["PVP-Session: s1", "PVP-Confidence: 0.5", "PVP-Fork: f"])
def test_who_decided_cannot_be_taken_out_of_a_message_with_context(
    work: WorkTree, tmp_path: Path, context: str
) -> None:
    work.write("a.txt", "a")
    without = edits(tmp_path, f"t = 'feat: begin\\n\\n{context}\\n'")
    ran = work.with_environment(GIT_EDITOR=without).run("git", "commit", "-q")

    assert ran.code == 1
    assert "Decision-By" in ran.err
    assert work.run("git", "rev-parse", "--verify", "HEAD").code != 0


@proves("OPEN-70")
def test_a_reference_is_context_too_and_gets_who_decided(work: WorkTree) -> None:
    work.commit("feat: begin [pvp:msg-01HX7K9P]")

    assert work.trailers() == {"Decision-By": "human:Alice"}
