"""The list of commands. A command's module is imported when it is called, and not before."""

import os
import sys
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from accord import __version__
from accord.cli import streams

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from accord.cli.parsing import Parser

# As a shell reports a program that a signal ended.
INTERRUPTED = 130
BROKEN_PIPE = 141
BAD_INPUT = 2


class Command(NamedTuple):
    """A row of the table: the module in `accord.cli`, and what `accord --help` says of it."""

    module: str
    summary: str


GROUPS: dict[str, dict[str, Command]] = {
    "Run": {
        "serve": Command("serve", "start the server"),
        "doctor": Command("doctor", "check this machine and say how to mend what is wrong"),
    },
    "Work together": {
        "session": Command("session", "sessions: open, read, end; prompt, stop, share, fork"),
        "gates": Command("gates", "see what waits for an approval"),
        "approve": Command("approve", "say yes to what a gate asks"),
        "reject": Command("reject", "say no to what a gate asks"),
        "pact": Command("pact", "tasks in a repository that no worker accepts for itself"),
        "stdio": Command("stdio", "speak PVP on standard input and output"),
        "decide": Command("decide", "what to do now, later or never, and what to do next"),
    },
    "Remember": {
        "why": Command("why", "why a line of code is there: decision, approvals, conversation"),
        "git": Command("git", "hooks, records of decisions, coverage, sharing"),
    },
    "Look after": {
        "token": Command("token", "issue, list and revoke signed identities"),
        "keys": Command("keys", "list and rotate the keys that sign"),
        "verify": Command("verify", "prove that nobody has changed the log"),
        "backup": Command("backup", "copy the log into one file, also while a server writes"),
        "restore": Command("restore", "put a backup in the place of the log"),
        "compact": Command("compact", "remove what was said in sessions that ended"),
    },
}
COMMANDS = {name: row for group in GROUPS.values() for name, row in group.items()}
# What a command leaves to the system, which frees it at once; a large ledger takes Python longer
# than the command has.
HELD: list[object] = []


class Module(Protocol):
    """What every command's module has; its docstring is the help."""

    __doc__: str | None

    def arguments(self, parser: "argparse.ArgumentParser") -> None:
        """Declare the flags."""
        ...

    def run(self, args: "argparse.Namespace") -> int:
        """Do it; returns the exit code."""
        ...


def main(words: "Sequence[str] | None" = None) -> int:
    """Run what was typed; returns the exit code (UNI-26)."""
    is_a_process = words is None
    if is_a_process:
        streams.make_whole()
    code = ended(list(sys.argv[1:] if words is None else words))
    if is_a_process and HELD:
        os._exit(code)  # all was said, and nothing is put away
    return code


def ended(words: list[str]) -> int:
    """How it ended, as an exit code; the interpreter has nothing left to complain of."""
    try:
        code = answered(words)
    except BrokenPipeError:  # nobody reads on, as in `accord … | head`
        code = BROKEN_PIPE
    streams.let_go()
    return code


def answered(words: list[str]) -> int:
    """What a command came to; whatever went wrong was told, unless nobody listens."""
    try:
        code = dispatch(words)
        streams.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it was, it ends in a sentence and a code
        from accord.cli.outcome import explain

        return explain(error)
    return code


def dispatch(words: list[str]) -> int:
    """The command that the first word names."""
    match words:
        case [] | ["-h" | "--help" | "help"]:
            print(overview())
            return 0
        case ["-V" | "--version" | "version"]:
            print(f"accord {__version__}")
            return 0
        case ["help", name, *_]:
            return dispatch([name, "--help"])
        case [name, *rest] if name in COMMANDS:
            return call(name, rest)
        case [name, *_]:
            return unknown(name)
        case _:
            return BAD_INPUT


def call(name: str, words: list[str]) -> int:
    """Parse with the command's own flags, then run it."""
    module = load(name)
    made = parser(name, module)
    usual = getattr(module, "USUAL_VERB", "")
    if usual and words and words[0] not in {*made.verbs(), "-h", "--help"}:
        words = [usual, *words]
    try:
        args = made.read(words)
    except SystemExit as end:  # help, or a slip that was told
        return int(end.code or 0)
    return module.run(args)


def load(name: str) -> Module:
    """The module of a command."""
    from importlib import import_module

    return cast("Module", import_module(f"accord.cli.{COMMANDS[name].module}"))


def parser(name: str, module: Module) -> "Parser":
    """The command's flags, with its docstring as the help and the examples at the end."""
    from accord.cli.parsing import Parser

    text, _, examples = (module.__doc__ or "").partition("\nExamples:\n")
    made = Parser(
        prog=f"accord {name}",
        description=text.strip(),
        epilog=f"examples:\n{examples.rstrip()}",
    )
    module.arguments(made)
    for verb, inner in made.verbs().items():
        illustrate(inner, f"accord {name} {verb}", examples)
    return made


def illustrate(verb: "Parser", words: str, examples: str) -> None:
    """Give a verb those of its command's examples that show it."""
    own = [line for line in examples.splitlines() if words in line]
    verb.epilog = "\n".join(["examples:", *own])


def overview() -> str:
    """What `accord --help` prints."""
    width = max(map(len, COMMANDS))
    lines = [
        "usage: accord COMMAND …",
        "",
        "People and coding agents build software together; nothing risky runs until",
        "the right people agree.",
    ]
    for title, commands in GROUPS.items():
        lines += ["", title]
        lines += [f"  {name:{width}}  {row.summary}" for name, row in commands.items()]
    lines += ["", "`accord COMMAND --help` explains each, with examples."]
    return "\n".join(lines)


def unknown(name: str) -> int:
    """What the nearest command is called."""
    from difflib import get_close_matches

    if name.startswith("-"):
        hint = "options come after a command"
    elif near := get_close_matches(name, COMMANDS, n=1, cutoff=0.5):
        hint = f"did you mean `accord {near[0]}`?"
    else:
        hint = "`accord --help` lists what there is"
    print(f"accord: there is no command {name!r}; {hint}", file=sys.stderr)
    return BAD_INPUT
