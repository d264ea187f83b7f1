"""Help texts keep to the width of the terminal and break no word."""

from collections.abc import Iterator

import pytest

from accord.cli import main as cli
from accord.cli.parsing import Parser

WIDTHS = range(40, 121)
WIDE = 1000
EXAMPLES = "\nexamples:\n"  # commands to copy, which stay as they are


def parsers() -> Iterator[Parser]:
    """The parser of every command and of every verb."""
    for command in cli.COMMANDS:
        parser = cli.build_parser(command, cli.load_command(command))
        yield from (parser, *parser.verbs().values())


def is_one_piece(line: str) -> bool:
    """Whether the line cannot be shorter: one word, or a flag with its choices."""
    words = line.split()
    is_flag = words[0].startswith(("-", "[-")) and words[-1].strip("[]").startswith("{")
    return len(words) == 1 or (len(words) == 2 and is_flag)


@pytest.fixture(scope="module")
def all_parsers() -> list[Parser]:
    return list(parsers())


@pytest.mark.parametrize("columns", WIDTHS)
def test_help_of_every_command_keeps_the_width_and_breaks_no_word(
    all_parsers: list[Parser], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for parser in all_parsers:
        monkeypatch.setenv("COLUMNS", str(WIDE))
        whole = parser.format_help().partition(EXAMPLES)[0]
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = parser.format_help().partition(EXAMPLES)[0]

        too_long = [line for line in shown.splitlines() if len(line) > columns]
        assert all(map(is_one_piece, too_long)), (parser.prog, too_long)
        assert shown.split() == whole.split(), parser.prog


@pytest.mark.parametrize("columns", WIDTHS)
def test_the_overview_keeps_the_width_and_breaks_no_word(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDE))
    whole = cli.overview()
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = cli.overview()

    assert max(map(len, shown.splitlines())) <= columns
    assert shown.split() == whole.split()
