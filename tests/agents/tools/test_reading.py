"""The reading tools: bounded, killable, and only where the call led when it was proposed."""

from pathlib import Path
from typing import Any

import pytest

from accord.agents.shell import CommandLimits, CommandResult
from accord.agents.tools import reading
from accord.agents.tools.call_report import CallReporter
from accord.core.policy.reported_call import CallKind
from accord.core.room.room_settings import Category


async def use(
    name: str, workdir: Path, limits: CommandLimits | None = None, **arguments: Any
) -> tuple[CommandResult, str]:
    printed: list[str] = []

    async def listen(stream: str, text: str) -> None:
        del stream
        printed.append(text)

    result = await reading.run_reading_tool(
        name, arguments, workdir, listen, limits or CommandLimits()
    )
    return result, "".join(printed)


async def test_some_lines_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n2\n3\n" + "x" * 5000)

    assert (await use("read_file", tmp_path, path="a", offset=2, limit=2))[1] == "2\n3\n"
    assert (await use("read_file", tmp_path, path="a", offset=4))[1] == "x" * 2000 + "…\n"


async def test_output_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("line\n" * 1000)
    result, text = await use("read_file", tmp_path, CommandLimits(max_output_bytes=100), path="a")

    assert (len(text), result.truncated) == (100, True)


async def test_files_are_listed_without_those_of_tools(tmp_path: Path) -> None:
    for name in ("b.py", "src/a.py", ".git/config", "node_modules/x.py", "c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert (await use("list_files", tmp_path, glob="*.py"))[1] == "b.py\nsrc/a.py\n"
    assert (await use("list_files", tmp_path, path="src"))[1] == "a.py\n"


async def test_search_finds_nothing_without_an_error_and_takes_no_option(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("--version\n")

    assert (await use("search_files", tmp_path, pattern="nothing"))[0].success
    assert (await use("search_files", tmp_path, pattern="--version", path="a.py"))[1] == (
        "a.py:1:--version\n"
    )
    assert (await use("search_files", tmp_path, pattern="x", glob="*.md"))[1] == ""


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {"path": 1}),
        ("read_file", {"path": "a\0b"}),
        ("read_file", {"path": "a", "offset": 0}),
        ("read_file", {"path": "a", "limit": True}),
        ("read_file", {"path": "."}),
        ("list_files", {"glob": 1}),
        ("list_files", {"path": "a"}),
        ("search_files", {}),
        ("search_files", {"pattern": "x", "glob": 1}),
    ],
)
async def test_calls_that_make_no_sense_are_refused(
    name: str, arguments: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "a").touch()
    result, text = await use(name, tmp_path, **arguments)

    assert (result.exit_code, text) == (None, "")
    assert result.error


async def test_a_link_is_read_only_where_it_led_when_it_was_proposed(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "secret"
    work.mkdir()
    outside.write_text("secret\n")
    (work / "link").symlink_to(outside)

    proposed = await CallReporter("claude").proposal(
        CallKind.READ, "read_file", {"path": "link"}, work
    )
    assert proposed.category is Category.SECRET_ACCESS
    assert proposed.arguments["real_paths"] == {str(work / "link"): [str(outside)]}
    assert (await use("read_file", work, **proposed.arguments))[1] == "secret\n"

    (work / "link").unlink()
    (work / "link").symlink_to(tmp_path / "other")
    assert "does not lead" in str((await use("read_file", work, **proposed.arguments))[0].error)

    plain = await CallReporter("claude").proposal(CallKind.READ, "read_file", {"path": "x"}, work)
    assert plain.category is Category.FILE_READ
    (work / "x").symlink_to(outside)
    assert "does not lead" in str((await use("read_file", work, **plain.arguments))[0].error)
