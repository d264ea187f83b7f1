"""A command in the arguments of a call: as words (`argv`) and as lines for readers.

Our agents run `argv`. Other programs of the protocol show `command` and `full_command`, so a call
may have all three; then they must say the same, or a reader would approve another command than the
one that runs.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

ARGV, COMMAND, FULL_COMMAND = "argv", "command", "full_command"
LINE_KEYS = (COMMAND, FULL_COMMAND)
COMMAND_KEYS = frozenset({ARGV, *LINE_KEYS})


def words_of(arguments: Mapping[str, Any]) -> Sequence[str] | None:
    """The words of the command; None if there are none."""
    match arguments.get(ARGV):
        case [*words] if all(isinstance(word, str) for word in words):
            return words
        case _:
            return None


def with_lines(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with the command also as the lines that other programs show."""
    words = words_of(arguments)
    if not words:
        return dict(arguments)
    return {**dict.fromkeys(LINE_KEYS, shlex.join(words)), **arguments}


def lines_agree(arguments: Mapping[str, Any]) -> bool:
    """Whether everything that names the command names the same one."""
    named = [arguments[key] for key in LINE_KEYS if key in arguments]
    if ARGV in arguments and named:
        words = words_of(arguments)
        return words is not None and all(line == shlex.join(words) for line in named)
    return len(named) < 2 or named[0] in (named[1], _program_of(named[1]))


def _program_of(line: object) -> str | None:
    """The first word: some programs name only that as `command`."""
    return line.split(maxsplit=1)[0] if isinstance(line, str) and line.strip() else None
