"""History that the first PVP hooks wrote: a PVP-META block, and notes that are not records."""

import json

from tests.helpers.git.work_tree import WorkTree

MESSAGE = """\
Add a login

---
PVP-META: true
PVP-SESSION: 01HQXYZ
PVP-PARTICIPANTS: alice(human), claude(agent)
PVP-MESSAGES: 15
PVP-TOOLS: shell_execute:5
"""


def test_parse_coverage_and_why_read_a_block_of_the_first_hooks(work: WorkTree) -> None:
    work.commit(MESSAGE)
    work.git("notes", "--ref=pvp", "add", "-f", "-m", '{"session_id": "01HQXYZ"}')

    parsed = json.loads(work.accord("git", "parse", "--json").out)
    coverage = json.loads(work.accord("git", "coverage", "--json").out)
    why = work.accord("why", "file.txt:1").out

    assert parsed["session_id"] == "01HQXYZ"
    assert parsed["tools"] == ["shell_execute"]
    assert coverage["covered"] == 1
    assert "01HQXYZ" in why
    assert "approved by" not in why


def test_coverage_counts_no_note_that_is_not_a_record(work: WorkTree) -> None:
    work.git("config", "notes.displayRef", "refs/notes/*")
    work.commit("made without a session")
    work.git("notes", "--ref=pvp", "add", "-m", '{"session_id": "01HQXYZ"}')

    coverage = json.loads(work.accord("git", "coverage", "--records", "--json").out)

    assert (coverage["covered"], coverage["recorded"]) == (0, 0)


def test_a_template_of_comments_gets_its_trailers(session: WorkTree) -> None:
    template = session.home / "template"
    template.write_text("# Why is this needed?\n")
    session.git("config", "commit.template", str(template))
    editor = session.home / "editor"
    editor.write_text(
        '#!/bin/sh\nprintf "feat: begin\\n" | cat - "$1" > "$1.new" && mv "$1.new" "$1"\n'
    )
    editor.chmod(0o755)
    session.write("file.txt", "one")
    session.with_environment(GIT_EDITOR=str(editor)).git("commit", "-q")

    assert session.trailers()["PVP-Session"] == session.env["PVP_SESSION_ID"]
