"""`write_file` and `edit_file`: what they do follows from their arguments alone."""

from pathlib import Path
from typing import Any

import pytest

from accord.agents.file_tools import FileToolError, run_file_tool


def test_a_file_is_written_as_the_call_says(tmp_path: Path) -> None:
    (path,) = run_file_tool("write_file", {"path": "src/a.py", "content": "one\r\ntwo"}, tmp_path)

    assert path == "src/a.py"
    assert (tmp_path / "src/a.py").read_bytes() == b"one\r\ntwo"


def test_a_text_that_occurs_once_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"one\ntwo\n")
    call = {"path": str(file), "old_string": "two", "new_string": "2"}

    assert run_file_tool("edit_file", call, tmp_path) == ("a.py",)
    assert file.read_bytes() == b"one\n2\n"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_file", {"path": "../a.py", "content": "x"}),
        ("write_file", {"path": "/etc/passwd", "content": "x"}),
        ("write_file", {"path": "a.py"}),
        ("write_file", {"path": "a.py", "content": "x", "mode": "0777"}),
        ("write_file", {"path": "link", "content": "x"}),
        ("write_file", {"path": "folder/a.py", "content": "x"}),
        ("write_file", {"path": "directory", "content": "x"}),
        ("write_file", {"path": "a.py/below", "content": "x"}),
        ("edit_file", {"path": "a.py", "old_string": "one", "new_string": "1"}),
        ("edit_file", {"path": "a.py", "old_string": "three", "new_string": "3"}),
        ("edit_file", {"path": "none.py", "old_string": "one", "new_string": "1"}),
        ("edit_file", {"path": "bytes", "old_string": "one", "new_string": "1"}),
        ("shell", {"argv": ["ls"]}),
    ],
)
def test_a_call_that_cannot_be_run_changes_nothing(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    outside, workdir = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    (workdir / "directory").mkdir(parents=True)
    (outside / "secret").write_text("safe")
    (workdir / "link").symlink_to(outside / "secret")
    (workdir / "folder").symlink_to(outside)
    (workdir / "a.py").write_text("one one\n")
    (workdir / "bytes").write_bytes(b"\xff")

    with pytest.raises(FileToolError):
        run_file_tool(name, arguments, workdir)

    assert {file.name: file.read_text() for file in outside.iterdir()} == {"secret": "safe"}
    assert (workdir / "a.py").read_text() == "one one\n"
    assert not (workdir / "none.py").exists()
