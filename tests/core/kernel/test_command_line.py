"""A command that is named several times must be the same command."""

from typing import Any

import pytest

from accord.core.kernel.command_line import lines_agree, with_lines


@pytest.mark.parametrize(
    ("arguments", "agree"),
    [
        ({}, True),
        ({"argv": ["ls"]}, True),
        ({"argv": 7}, True),
        ({"command": "ls -l"}, True),
        ({"command": "ls -l", "full_command": "ls -l"}, True),
        ({"command": "ls", "full_command": "ls -l"}, True),
        ({"command": "ls", "full_command": "lsof"}, False),
        ({"command": "ls", "full_command": "rm x"}, False),
        ({"command": "ls", "full_command": ""}, False),
        ({"command": "ls", "full_command": ["ls"]}, False),
        ({"argv": ["ls", "a b"], "full_command": "ls 'a b'"}, True),
        ({"argv": ["ls", "a b"], "full_command": "ls a b"}, False),
        ({"argv": ["ls", "-l"], "command": "ls"}, False),
        ({"argv": ["ls", 1], "command": "ls 1"}, False),
        ({"argv": "ls", "command": "ls"}, False),
    ],
)
def test_lines_agree_if_they_name_one_command(arguments: dict[str, Any], *, agree: bool) -> None:
    assert lines_agree(arguments) is agree


@pytest.mark.parametrize("arguments", [{}, {"argv": []}, {"argv": [1]}, {"command": "ls"}])
def test_without_words_nothing_is_added(arguments: dict[str, Any]) -> None:
    assert with_lines(arguments) == arguments


def test_lines_are_quoted_and_replace_none_that_are_there() -> None:
    assert with_lines({"argv": ["ls", "a b"], "command": "rm"}) == {
        "argv": ["ls", "a b"],
        "command": "rm",
        "full_command": "ls 'a b'",
    }
