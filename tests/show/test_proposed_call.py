"""What would run, line by line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.show.proposed_call import MAX_COMPARED_PAIRS, NO_NEWLINE, CallLine, call_lines
from accord.show.text import CONTRADICTION


def shown(arguments: Any) -> list[str]:
    return [f"{line.sign}{line.text}" for line in call_lines(arguments)]


def test_a_command_is_shown_as_it_is_typed() -> None:
    assert shown({"argv": ["git", "push"]}) == ["$ git push"]


def test_two_commands_in_one_call_are_shown_as_a_contradiction_whatever_else_it_says() -> None:
    write = {"path": "a", "content": "x", "command": "ls", "full_command": "rm -r ."}
    commit = {"argv": ["git", "commit"], "tree": "a" * 40, "command": "ls"}

    for arguments in (write, commit):
        first, *rest = shown(arguments)
        assert first == CONTRADICTION
        assert json.loads("\n".join(rest)) == arguments


@pytest.mark.parametrize(
    "names", [("old_string", "new_string"), ("old_str", "new_str"), ("old", "new")]
)
def test_an_edit_is_a_diff(names: tuple[str, str]) -> None:
    old, new = names
    assert shown({"path": "a.py", old: "one\ntwo", new: "one\n2"}) == [
        'edit "a.py"',
        " one",
        "-two",
        "+2",
    ]


def test_several_edits_are_numbered() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}]
    assert shown({"file_path": "x", "edits": edits}) == [
        'edit "x", 1 of 2',
        "-a",
        "+b",
        'edit "x", 2 of 2',
        "-c",
        "+",
    ]


@pytest.mark.parametrize(
    "edits", [["text"], [], "all", [{"old": "a"}], [{"old": "a", "new": "b", "path": "other"}]]
)
def test_edits_of_another_shape_are_shown_as_json(edits: Any) -> None:
    arguments = {"path": "x", "edits": edits}
    assert json.loads("\n".join(shown(arguments))) == arguments


def test_a_written_file_is_all_new_and_says_what_it_replaces() -> None:
    assert shown({"path": "a", "content": "x\ny\n", "mode": "0600"}) == [
        'write "a"; what it held before is replaced',
        "+x",
        "+y",
        "with",
        "{",
        '  "mode": "0600"',
        "}",
    ]
    for content in ("x\ny", "y"):
        assert shown({"path": "a", "content": content})[-2:] == ["+y", NO_NEWLINE]
    assert shown({"path": "a", "content": f"{NO_NEWLINE}\n"})[1:] == [f"+{NO_NEWLINE}"]
    assert len(shown({"path": "a", "content": ""})) == 1


def test_a_patch_keeps_its_signs() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    lines = call_lines({"patch": patch})
    assert lines[0] == CallLine("apply a patch")
    assert lines[-2:] == [CallLine("a", "-"), CallLine("b", "+")]
    assert shown({"patch": "", "path": "x"})[0] == 'apply a patch to "x"'


@pytest.mark.parametrize("name", ["command", "input", "patch"])
def test_a_patch_of_codex_is_a_diff_and_no_command(name: str) -> None:
    patch = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch"
    expected = ["apply a patch", *patch.split("\n")]

    assert shown({name: patch}) == expected
    assert shown({name: f"{patch}\n", "workdir": "/x"})[-4:] == [
        "with",
        "{",
        '  "workdir": "/x"',
        "}",
    ]
    if name == "command":
        assert shown({name: patch, "full_command": patch}) == expected
        assert shown({name: f"{patch}; rm -r ."})[0] == "$ *** Begin Patch"


def test_changed_line_endings_are_seen() -> None:
    assert shown({"path": "a", "old": "x\n", "new": "x\r\n"})[1:3] == ["-x", "+x\\r"]


def test_two_names_for_one_thing_are_ambiguous_and_shown_as_json() -> None:
    arguments = {"path": "a", "file": "b", "content": "x"}
    assert json.loads("\n".join(shown(arguments))) == arguments


def test_long_texts_are_not_compared() -> None:
    many = "\n".join(map(str, range(int(MAX_COMPARED_PAIRS**0.5) + 1)))
    lines = call_lines({"path": "a", "old": many, "new": many})
    assert [line.sign for line in lines[1:]] == ["-"] * (len(lines) // 2) + ["+"] * (
        len(lines) // 2
    )


TEXTS = st.text(alphabet='ab \n\r\t"漢', max_size=30)
NAMES = st.sampled_from(
    [
        "path",
        "file_path",
        "content",
        "old_string",
        "new_string",
        "old",
        "new",
        "patch",
        "edits",
        "x",
    ]
)


@given(st.dictionaries(NAMES, TEXTS, max_size=5))
def test_nothing_of_the_arguments_is_left_out(arguments: dict[str, str]) -> None:
    whole = "\n".join(shown(arguments))
    for value in arguments.values():
        spelled = json.dumps(value, ensure_ascii=False)[1:-1]
        for part in value.replace("\r", "\\r").split("\n"):
            assert part in whole or spelled in whole


def test_a_commit_that_shows_its_tree_says_first_what_a_yes_covers() -> None:
    argv = ["git", "commit", *(f"--trailer=x{number}" for number in range(60))]
    lines = [line.text for line in call_lines({"argv": argv, "tree": "a" * 40})]

    assert lines[:2] == ["Your yes covers every file of this commit:", f"  git show {'a' * 40}"]
    other = call_lines({"argv": ["git", "log"], "tree": "a" * 40})
    assert lines[0] not in [line.text for line in other]
