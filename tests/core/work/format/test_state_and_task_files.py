"""Files that people and other tools read: blocks that leave the rest alone, tasks, attributes."""

from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.kernel.refusal import Refused
from accord.core.work.format import state_and_task_files
from accord.core.work.state import Seat, Task, Work
from tests.core.work.story import BOB, assigned, folded, line
from tests.spec import proves

DATA = Path(__file__).parents[3] / "data" / "pact"
SEAT = Seat("bob", ("worker", "reviewer"), "AGENTS.md")
TASK = Task("T1", "F", "bob", "ann", "t.md")
OTHER = """# Mine

<!-- pact:begin (managed by pact_init — edit outside this block) -->
old
<!-- pact:end -->

after


"""


@proves("PACT-3.3-1", "PACT-3.3-2", "OPEN-102")
def test_a_block_takes_the_place_of_older_ones_and_leaves_the_rest() -> None:
    once = state_and_task_files.with_managed_block(OTHER, "new")

    begin, end = state_and_task_files.BLOCK_BEGIN, state_and_task_files.BLOCK_END
    assert once == f"# Mine\n\n\nafter\n\n{begin}\nnew\n{end}\n"
    assert state_and_task_files.with_managed_block(once, "new") == once
    assert (
        state_and_task_files.with_managed_block("", "new")
        == f"{state_and_task_files.BLOCK_BEGIN}\nnew\n{state_and_task_files.BLOCK_END}\n"
    )


@given(st.text(alphabet="a \n\t<!->", max_size=60), st.booleans())
def test_a_block_written_twice_is_the_block_written_once(text: str, begun: bool) -> None:
    text = f"{text}\n<!-- pact:begin" if begun else text
    once = state_and_task_files.with_managed_block(text, "body")

    assert state_and_task_files.with_managed_block(once, "body") == once or begun
    assert once.startswith(text.rstrip())


def test_a_block_without_an_end_is_text_and_stays() -> None:
    text = "# Mine\n<!-- pact:begin\nnever ended"

    assert state_and_task_files.with_managed_block(text, "new").startswith(f"{text}\n\n")


def test_a_body_with_markers_is_refused() -> None:
    with pytest.raises(Refused):
        state_and_task_files.with_managed_block("", "x <!-- pact:end --> y")


@proves("PACT-3.3-3", "PACT-1.1-2")
def test_the_charter_names_project_version_rules_and_seats() -> None:
    text = state_and_task_files.render_charter("demo", [SEAT])

    assert text.startswith("# demo — Pact Charter (protocol_version: 1)\n")
    for words in (
        "protocol v1",
        "## Roles",
        "human",
        "## The two rules (the pact)",
        "## Commands",
        "- `bob` — roles: worker, reviewer — entry: AGENTS.md",
    ):
        assert words in text


@proves("PACT-6.5-1")
def test_an_entry_file_says_who_one_is_and_how_to_join() -> None:
    text = state_and_task_files.render_entry_block(SEAT)

    assert "export PACT_AGENT_ID=bob\n" in text
    assert "pact_join bob --roles worker,reviewer\n" in text


@proves("PACT-3.4-1", "PACT-3.4-2", "PACT-3.4-3")
def test_a_task_file_mirrors_the_log_which_wins() -> None:
    schema = jsonschema_rs.validator_for((DATA / "schemas" / "task.schema.json").read_text())
    text = state_and_task_files.render_task_file(TASK)

    schema.validate(state_and_task_files.parse_frontmatter(text))
    assert [each for each in text.splitlines() if each.startswith("## ")] == [
        "## Spec",
        "## Acceptance",
        "## Handoff log",
    ]
    assert state_and_task_files.contradictions_with_log(TASK, text) == []
    assert state_and_task_files.contradictions_with_log(
        TASK, text.replace("owner: bob", "owner: 'cy'")
    ) == ["owner is cy in the file, but bob in the log"]


def test_a_task_file_may_be_anything() -> None:
    assert state_and_task_files.parse_frontmatter("# Free text\nid: x\n---\n") == {}
    assert state_and_task_files.parse_frontmatter("---\nid: x\n: odd\n- y\n---\n") == {"id": "x"}


@proves("PACT-2.4-4")
def test_evidence_is_folded_onto_one_line() -> None:
    shown = line("checkpoint", BOB, "T1", evidence="a\n\tb: c", at=1)

    assert "        evidence: a  b: c\n" in state_and_task_files.render_state_yml(
        folded(assigned(), shown)
    )


def test_an_empty_log_has_a_state_too() -> None:
    assert state_and_task_files.render_state_yml(Work()) == (
        "project: unknown\nworking_tree_holder: null\nagents:\nfeatures:\n"
    )


@proves("OPEN-103")
def test_attributes_are_added_once_and_nothing_else_changes() -> None:
    theirs = (DATA / "gitattributes.txt").read_text("utf-8")

    assert state_and_task_files.with_union_attributes("") == theirs
    assert state_and_task_files.with_union_attributes(theirs) == theirs
    assert state_and_task_files.with_union_attributes("*.png binary") == f"*.png binary\n{theirs}"


def test_no_name_in_a_log_forges_a_line_of_the_state() -> None:
    bad = "a\n        status: accepted"
    seats = [{"id": bad, "roles": [bad], "entry": "A.md"}]
    work = folded(
        line("init", project=bad, seats=seats),
        assigned(bad, bad, bad, feature=bad, branch=bad, spec=bad, deps=[bad], at=1),
    )

    text = state_and_task_files.render_state_yml(work)

    assert text.count("\n") == 4 + 1 + 4 + 7
    assert [each for each in text.split("\n") if each.startswith("        status:")] == [
        "        status: assigned"
    ]
