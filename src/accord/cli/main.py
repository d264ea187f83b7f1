"""The `accord` command: its table of subcommands, each imported only when it is called."""

import sys
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from accord import __version__
from accord.cli import std_streams

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from accord.cli.parsing import Parser

# The codes with which a shell reports SIGINT and SIGPIPE.
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
EXIT_BAD_INPUT = 2


class CommandEntry(NamedTuple):
    """The module in `accord.cli`, and its summary in `accord --help`."""

    module: str
    summary: str


GROUPS: dict[str, dict[str, CommandEntry]] = {
    "Run": {
        "serve": CommandEntry("serve.command", "start the server"),
        "demo": CommandEntry("demo", "play a complete example session and print it"),
        "doctor": CommandEntry(
            "doctor.command", "check this machine and explain how to fix what is wrong"
        ),
    },
    "Sign in": {
        "login": CommandEntry("people.login", "sign in with a one-time link"),
        "whoami": CommandEntry("people.whoami", "show who you are, and on which server"),
        "logout": CommandEntry("people.logout", "sign this device out"),
        "invite": CommandEntry("people.invite", "print a link that signs a person in"),
        "people": CommandEntry("people.people", "see who has access, and revoke it"),
    },
    "Work together": {
        "session": CommandEntry(
            "session.command", "open, read and end sessions; prompt and stop agents; share, fork"
        ),
        "gates": CommandEntry("gates.gates", "list what waits for approval"),
        "approve": CommandEntry("gates.approve", "approve what a gate asks for"),
        "reject": CommandEntry("gates.reject", "reject what a gate asks for"),
        "policy": CommandEntry(
            "policy.command",
            "classify calls of agents, sign policies, and approve similar calls in advance",
        ),
        "thread": CommandEntry("threads.thread", "talk with people and agents in threads"),
        "inbox": CommandEntry("threads.inbox", "see which threads you have not read"),
        "agent": CommandEntry("agent.command", "put an agent into a session"),
        "agents": CommandEntry("threads.agents", "see which agents are here, and pause one"),
        "wakes": CommandEntry("threads.wakes", "see which agents were woken, how, and why"),
        "pact": CommandEntry(
            "pact.command", "tasks in a repository, accepted by a reviewer who is not the owner"
        ),
        "connect": CommandEntry(
            "hosts.connect",
            "connect Claude Code, Codex, Gemini CLI and others to a session, with gates",
        ),
        "disconnect": CommandEntry(
            "hosts.disconnect", "disconnect one again and restore its files exactly"
        ),
        "supervise": CommandEntry(
            "supervise.command", "run an agent in its terminal so that messages can wake it"
        ),
        "mcp": CommandEntry("mcp.command", "speak MCP on standard input and output, for hosts"),
        "daemon": CommandEntry("daemon.command", "see or stop the daemon that gate hooks ask"),
        "stdio": CommandEntry("stdio.command", "speak PVP on standard input and output"),
        "decide": CommandEntry(
            "decide.command", "decide by rule what to do now, later or never, and the next step"
        ),
    },
    "Remember": {
        "why": CommandEntry("git.why", "explain a line of code: decision, approvals, conversation"),
        "git": CommandEntry("git.command", "record decisions on commits: hooks, coverage, sharing"),
    },
    "Administer": {
        "token": CommandEntry("admin.token", "issue, list and revoke access tokens"),
        "keys": CommandEntry("admin.keys", "list and rotate the signing keys"),
        "verify": CommandEntry("admin.verify", "prove that the log has not been changed"),
        "backup": CommandEntry(
            "admin.backup", "copy the log into one file, even while the server runs"
        ),
        "restore": CommandEntry("admin.restore", "replace the log with a backup"),
        "compact": CommandEntry("admin.compact", "delete the messages of ended sessions"),
        "store": CommandEntry("admin.store", "copy the log to another store"),
    },
}
PURPOSE = (
    "People and coding agents build software together; nothing risky runs until the right people "
    "approve it."
)
MORE_HELP = "`accord COMMAND --help` explains a command, with examples."
COMMANDS = {name: row for group in GROUPS.values() for name, row in group.items()}


class CommandModule(Protocol):
    """The interface of a command's module; its docstring is the help text."""

    __doc__: str | None

    def arguments(self, parser: "argparse.ArgumentParser") -> None:
        """Declare the arguments."""
        ...

    def run(self, args: "argparse.Namespace") -> int:
        """Run the command; returns the exit code."""
        ...


def main(words: "Sequence[str] | None" = None) -> int:
    """Run the command line; returns the exit code (UNI-26)."""
    is_a_process = words is None
    if is_a_process:
        std_streams.restore_buffering()
        std_streams.degrade_to_ascii()
    return run_to_exit_code(list(sys.argv[1:] if words is None else words))


def run_to_exit_code(words: list[str]) -> int:
    """The exit code; leaves no unwritable output for the interpreter to complain about."""
    try:
        code = run_and_report(words)
    except BrokenPipeError:  # the reader has gone, as in `accord … | head`
        code = EXIT_BROKEN_PIPE
    std_streams.discard_unwritable()
    return code


def run_and_report(words: list[str]) -> int:
    """Run the command and report any error; only BrokenPipeError passes through."""
    try:
        code = dispatch(words)
        std_streams.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - every error becomes a sentence and an exit code
        from accord.cli.errors import report_error

        return report_error(error)
    return code


def dispatch(words: list[str]) -> int:
    """Run the command that the first word names."""
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
            return call_command(name, rest)
        case [name, *_]:
            return report_unknown(name)
        case _:
            return EXIT_BAD_INPUT


def call_command(name: str, words: list[str]) -> int:
    """Parse the command's own arguments, then run it."""
    module = load_command(name)
    run_without_options = getattr(module, "run_without_options", None)
    if run_without_options is not None and (code := run_without_options(words)) is not None:
        return cast("int", code)
    parser = build_parser(name, module)
    default_verb = getattr(module, "USUAL_VERB", "")
    if not words:
        words = [verb] if (verb := getattr(module, "VERB_WITHOUT_WORDS", "")) else []
    if default_verb and words and words[0] not in {*parser.verbs(), "-h", "--help"}:
        words = [default_verb, *words]
    try:
        args = parser.parse_words(words)
    except SystemExit as end:  # help or an error was printed
        return int(end.code or 0)
    return module.run(args)


def load_command(name: str) -> CommandModule:
    from importlib import import_module

    return cast("CommandModule", import_module(f"accord.cli.{COMMANDS[name].module}"))


def build_parser(name: str, module: CommandModule) -> "Parser":
    """The command's parser: its docstring is the help text, with the examples at the end."""
    from accord.cli.parsing import Parser

    text, _, examples = (module.__doc__ or "").partition("\nExamples:\n")
    parser = Parser(
        prog=f"accord {name}",
        description=text.strip(),
        epilog=f"examples:\n{examples.rstrip()}",
    )
    module.arguments(parser)
    for verb, inner in parser.verbs().items():
        add_examples(inner, f"accord {name} {verb}", examples)
    return parser


def add_examples(verb: "Parser", words: str, examples: str) -> None:
    """Add those examples of the command to the verb's help that use the verb."""
    own = [line for line in examples.splitlines() if words in line]
    verb.epilog = "\n".join(["examples:", *own])


def overview() -> str:
    """The text of `accord --help`, wrapped to the terminal."""
    from accord.show.terminal_size import help_columns, wrap_words

    columns, width = help_columns(), max(map(len, COMMANDS))
    lines = ["usage: accord COMMAND …", "", *wrap_words(PURPOSE, columns)]
    for title, commands in GROUPS.items():
        lines += ["", title]
        for name, row in commands.items():
            first, *more = wrap_words(row.summary, columns - width - 4)
            lines.append(f"  {name:{width}}  {first}")
            lines += [f"{'':{width + 4}}{line}" for line in more]
    return "\n".join([*lines, "", *wrap_words(MORE_HELP, columns)])


def report_unknown(name: str) -> int:
    """Print an error with the most similar command."""
    from difflib import get_close_matches

    if name.startswith("-"):
        hint = "options come after the command"
    elif near := get_close_matches(name, COMMANDS, n=1, cutoff=0.5):
        hint = f"did you mean `accord {near[0]}`?"
    else:
        hint = "`accord --help` lists the commands"
    print(f"accord: there is no command {name!r}; {hint}", file=sys.stderr)
    return EXIT_BAD_INPUT
