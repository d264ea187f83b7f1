"""Which calls say what a file contains afterwards, and what that is."""

import json
from pathlib import Path
from typing import Any

import pytest

from accord.core.provenance.coverage.coverage_rule import (
    MAX_OPERATIONS,
    FileOperation,
    file_operations,
    named_paths,
    relative_path,
    shown_tree,
)
from accord.core.provenance.coverage.text_changes import (
    CallDoesNotFitError,
    DeleteText,
    ReplaceText,
    WriteText,
)

ROOT = "/home/alice/project"


def applied(tool: str, arguments: dict[str, Any], before: str | None) -> dict[str, str | None]:
    """What each file of a call contains afterwards, if all contained the same before."""
    found = file_operations(tool, arguments, ROOT)
    result: dict[str, str | None] = {}
    for each in found:
        result[each.path] = each.change.apply(result.get(each.starts_from, before))
    return result


def edit(old: str, new: str, **more: Any) -> dict[str, Any]:
    return {"old_string": old, "new_string": new, **more}


PATCH = """*** Begin Patch
*** Add File: new.py
+one
+two
*** Update File: a.py
@@ def f():
-    return 1
+    return 2
@@
 last
+line
*** End of File
*** Delete File: gone.py
*** Update File: old.py
*** Move to: moved.py
@@
-x
+y
*** End Patch
"""


@pytest.mark.parametrize(
    ("tool", "arguments", "before", "after"),
    [
        ("write_file", {"path": "a.py", "content": "x\n"}, "old", "x\n"),
        ("write_file", {"file_path": f"{ROOT}/a.py", "content": "x\n"}, None, "x\n"),
        ("Write", {"file_path": f"{ROOT}/./b/../a.py", "content": ""}, None, ""),
        ("edit_file", {"path": "./a.py", **edit("b", "c")}, "abd", "acd"),
        ("Edit", {"file_path": f"{ROOT}/a.py", **edit("b", "c", replace_all=False)}, "b", "c"),
        ("Edit", {"file_path": f"{ROOT}/a.py", **edit("b", "c", replace_all=True)}, "bb", "cc"),
        ("Edit", {"file_path": f"{ROOT}/a.py", **edit("", "new\n")}, None, "new\n"),
        (
            "MultiEdit",
            {"file_path": f"{ROOT}/a.py", "edits": [edit("a", "b"), edit("b", "c")]},
            "a",
            "c",
        ),
        ("replace", {"file_path": f"{ROOT}/a.py", **edit("b", "c", instruction="x")}, "b", "c"),
        (
            "replace",
            {"file_path": f"{ROOT}/a.py", **edit("b", "c", expected_replacements=2)},
            "bb",
            "cc",
        ),
        ("write_file", {"path": "a.py", "content": "x", "decision": {"batch": "b"}}, None, "x"),
    ],
)
def test_a_call_of_a_known_shape_is_applied(
    tool: str, arguments: dict[str, Any], before: str | None, after: str
) -> None:
    assert applied(tool, arguments, before) == {"a.py": after}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("shell", {"argv": ["ls"]}),
        ("write", {"path": "a.py", "content": "x"}),
        ("write_file", {"path": "a.py"}),
        ("write_file", {"content": "x"}),
        ("write_file", {"path": "a.py", "file_path": "b.py", "content": "x"}),
        ("write_file", {"path": "a.py", "content": "x", "append": True}),
        ("write_file", {"path": "a.py", "content": 1}),
        ("write_file", {"path": 1, "content": "x"}),
        ("write_file", {"path": "a.py", "content": "\ud800"}),
        ("write_file", {"path": "../a.py", "content": "x"}),
        ("write_file", {"path": "", "content": "x"}),
        ("write_file", {"path": "a\0b", "content": "x"}),
        ("write_file", {"path": ROOT, "content": "x"}),
        ("write_file", {"path": "/etc/passwd", "content": "x"}),
        ("write_file", {"path": f"{ROOT}/../other/a.py", "content": "x"}),
        ("Edit", {"path": "a.py", **edit("a", "b", replace_all="yes")}),
        ("MultiEdit", {"path": "a.py", "edits": "all"}),
        ("MultiEdit", {"path": "a.py", "edits": ["all"]}),
        ("MultiEdit", {"path": "a.py", "edits": [edit("a", "b", fuzzy=True)]}),
        ("MultiEdit", {"path": "a.py", "edits": [edit("a", "b")] * (MAX_OPERATIONS + 1)}),
        ("replace", {"path": "a.py", **edit("a", "b", expected_replacements=0)}),
        ("replace", {"path": "a.py", **edit("a", "b", expected_replacements=True)}),
        ("apply_patch", {}),
        ("apply_patch", {"command": "x", "input": "y"}),
        ("apply_patch", {"command": "rm -rf"}),
        ("apply_patch", {"command": PATCH, "full_command": "rm -rf"}),
        ("apply_patch", {"input": PATCH, "full_command": PATCH}),
    ],
)
def test_other_calls_change_no_known_file(tool: str, arguments: dict[str, Any]) -> None:
    assert file_operations(tool, arguments, ROOT) == ()


@pytest.mark.parametrize(
    ("change", "before"),
    [
        (ReplaceText("a", "b"), None),
        (ReplaceText("a", "b"), "x"),
        (ReplaceText("a", "b"), "aa"),
        (ReplaceText("a", "b", 3), "aa"),
        (ReplaceText("", "b"), "x"),
        (ReplaceText("a", "b", None), ""),
        (DeleteText(), None),
    ],
)
def test_a_change_that_cannot_have_been_made_does_not_fit(
    change: ReplaceText | DeleteText, before: str | None
) -> None:
    with pytest.raises(CallDoesNotFitError):
        change.apply(before)


@pytest.mark.parametrize("root", ["", "/", "relative"])
def test_an_absolute_path_needs_a_root_to_be_inside_of(root: str) -> None:
    with pytest.raises(CallDoesNotFitError):
        relative_path("/home/alice/project/a.py", root)


def test_line_feeds_replace_line_endings_in_what_a_call_says() -> None:
    assert WriteText("a\r\nb").with_line_feeds() == WriteText("a\nb")
    assert ReplaceText("a\r\n", "b\r\n", 2).with_line_feeds() == ReplaceText("a\n", "b\n", 2)
    assert DeleteText().with_line_feeds() == DeleteText()


def test_a_codex_patch_adds_updates_moves_and_deletes() -> None:
    call = {"command": PATCH}
    found = {each.path: each for each in file_operations("apply_patch", call, ROOT)}
    repeated = file_operations("apply_patch", call | {"full_command": PATCH}, ROOT)
    assert repeated == tuple(found.values())

    assert found["new.py"] == FileOperation("new.py", WriteText("one\ntwo\n"))
    updated = found["a.py"].change.apply("def f():\n    return 1\nlast\n")
    assert updated == "def f():\n    return 2\nlast\nline\n"
    assert found["gone.py"].change == DeleteText()
    assert (found["moved.py"].source, found["moved.py"].starts_from) == ("old.py", "old.py")
    assert found["moved.py"].change.apply("x\nz") == "y\nz\n"
    assert found["old.py"].change == DeleteText()
    assert found["a.py"].change.with_line_feeds() == found["a.py"].change


@pytest.mark.parametrize(
    "body",
    [
        "*** Add File: a\nno plus",
        "*** Delete File: a\n+x",
        "*** Rename File: a",
        "*** Update File: a",
        "*** Update File: a\n@@",
        "*** Update File: a\n@@\n?x",
        "*** Update File: a\n x\n*** End of File\n x",
        "no section",
    ],
)
def test_a_malformed_patch_is_unknown(body: str) -> None:
    text = f"*** Begin Patch\n{body}\n*** End Patch"

    assert file_operations("apply_patch", {"input": text}, ROOT) == ()


@pytest.mark.parametrize(
    ("chunk", "before", "after"),
    [
        ("@@ b\n-c\n+C", "a\nb\nx\nc\n", "a\nb\nx\nC\n"),
        ("+end", "a\n", "a\nend\n"),
        ("@@\n a\n+z\n*** End of File", "a\nb\na\n", "a\nb\na\nz\n"),
        ("@@ gone\n-c\n+C", "a\nc\n", None),
        ("-c\n+C", "a\n", None),
        ("@@\n a\n+z\n*** End of File", "a\nb\n", None),
        ("-a\n+A\n@@\n a\n b\n*** End of File", "a\nb\n", None),
        ("\n-c\n+C", "\nc\n", "\nC\n"),
    ],
)
def test_chunks_are_found_by_exact_lines(chunk: str, before: str, after: str | None) -> None:
    text = f"*** Begin Patch\n*** Update File: a\n{chunk}\n*** End Patch"
    (operation,) = file_operations("apply_patch", {"patch": text}, ROOT)

    if after is None:
        with pytest.raises(CallDoesNotFitError):
            operation.change.apply(before)
    else:
        assert operation.change.apply(before) == after
    with pytest.raises(CallDoesNotFitError):
        operation.change.apply(None)


SAMPLES = Path(__file__).parent / "host_calls.json"


def test_the_calls_of_three_hosts_are_known() -> None:
    """As their hooks report them; `PROJECT` is the directory they work in."""
    for sample in json.loads(SAMPLES.read_text("utf-8")):
        found = file_operations(sample["tool_name"], sample["tool_input"], "/PROJECT")
        (operation,) = found

        assert operation.path == sample["path"]
        assert operation.change.apply(sample["before"]) == sample["after"]


@pytest.mark.parametrize(
    ("arguments", "tree"),
    [
        ({"argv": ["git", "commit", "-m", "x"], "tree": "a" * 40}, "a" * 40),
        ({"argv": ["git", "commit"], "tree": "a" * 64}, "a" * 64),
        ({"argv": ["git", "-C", ".", "commit"], "tree": "a" * 40}, ""),
        ({"argv": ["git", "log", "--grep", "commit"], "tree": "a" * 40}, ""),
        ({"argv": ["git", "-c", "alias.x=commit", "x"], "tree": "a" * 40}, ""),
        ({"argv": ["git", "commit"]}, ""),
        ({"argv": ["git", "commit"], "tree": "HEAD"}, ""),
        ({"argv": ["git", "push"], "tree": "a" * 40}, ""),
        ({"argv": ["ls"], "tree": "a" * 40}, ""),
        ({"argv": "git commit", "tree": "a" * 40}, ""),
        ({"argv": ["git", "commit"], "command": "git commit", "tree": "a" * 40}, "a" * 40),
        ({"argv": ["git", "commit"], "command": "ls", "tree": "a" * 40}, ""),
    ],
)
def test_only_a_commit_call_shows_a_tree(arguments: dict[str, Any], tree: str) -> None:
    assert shown_tree(arguments) == tree


def test_the_paths_that_a_call_names_are_those_of_its_arguments() -> None:
    assert named_paths({"path": "a", "file_path": "b", "x": "c"}) == ("a", "b")
    assert named_paths({"path": 1, "file_path": ""}) == ()


@pytest.mark.parametrize(
    ("cwd", "path"),
    [(ROOT, "a.py"), (f"{ROOT}/sub", "sub/a.py"), (f"{ROOT}/sub/../lib", "lib/a.py")],
)
def test_relative_paths_start_where_the_call_ran(cwd: str, path: str) -> None:
    patch = "*** Begin Patch\n*** Add File: a.py\n+one\n*** End Patch\n"

    assert applied("apply_patch", {"command": patch, "cwd": cwd}, None) == {path: "one\n"}


def test_absolute_path_does_not_depend_on_where_the_call_ran() -> None:
    call = {"file_path": f"{ROOT}/a.py", "content": "one", "cwd": "/elsewhere"}

    assert applied("Write", call, None) == {"a.py": "one"}


@pytest.mark.parametrize("cwd", ["/elsewhere", "sub", "", 5, None])
def test_relative_path_of_a_call_that_ran_elsewhere_is_unknown(cwd: object) -> None:
    call = {"path": "a.py", "content": "one", "cwd": cwd}

    assert file_operations("write_file", call, ROOT) == ()


def test_move_starts_where_the_call_ran() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: old.py\n*** Move to: new.py\n@@\n-x\n+y\n*** End Patch\n"
    )
    first, second = file_operations("apply_patch", {"command": patch, "cwd": f"{ROOT}/sub"}, ROOT)

    assert (first.path, first.source) == ("sub/new.py", "sub/old.py")
    assert second.path == "sub/old.py"
