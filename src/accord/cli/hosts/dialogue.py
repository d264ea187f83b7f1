"""What `connect` and `disconnect` show and ask."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from accord.core.kernel.refusal import Reason, Refused
from accord.show import style
from accord.show.text import escape_controls, wrap

if TYPE_CHECKING:
    from accord.hosts.changed_files import Change

NO_TERMINAL = "Nothing was changed, because there is no terminal to ask on; add --yes to agree"
EDITED = (
    "{path} was changed since Accord wrote it. Only Accord's own entries are "
    "taken out; everything else stays as it is now."
)
LINKED = "{path} is a symbolic link; the file that it leads to, {target}, is changed."
YES = frozenset({"y", "yes"})


def print_changes(changes: Sequence["Change"]) -> None:
    """Every file as a unified diff."""
    from accord.hosts.changed_files import unified_diff

    for change in changes:
        if not change.is_needed:
            continue
        if change.path.is_symlink():
            say(LINKED.format(path=change.path, target=change.target))
        if change.was_edited and change.old is not None:
            say(EDITED.format(path=change.path))
        for line in unified_diff(change):
            print(colour(escape_controls(line)))
        print()


def colour(line: str) -> str:
    """A line of a diff as terminals show it."""
    if line.startswith(("---", "+++")):
        return style.bold(line)
    if line.startswith("+"):
        return style.green(line)
    return style.red(line) if line.startswith("-") else line


def say(text: str) -> None:
    """Print a paragraph."""
    print("\n".join(wrap(escape_controls(text))))


def confirm(question: str, *, yes: bool) -> bool:
    """The person's answer; refuses without a terminal, unless --yes was given."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise Refused(Reason.MALFORMED, NO_TERMINAL)
    return ask(f"{question} [y/N] ").lower() in YES


def ask(prompt: str) -> str:
    """One line from the terminal."""
    print(escape_controls(prompt), end="", flush=True)
    return sys.stdin.readline().strip()
