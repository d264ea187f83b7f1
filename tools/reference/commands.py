"""The command line, from the table of commands and each one's own flags."""

import argparse
from collections.abc import Iterator

from accord.cli import main
from tools.reference.markdown import capital, code, fenced, table

Parser = argparse.ArgumentParser


def overview() -> Iterator[str]:
    """Every command in a line."""
    for title, commands in main.GROUPS.items():
        yield f"**{title}**\n"
        rows = (
            (f"[`accord {name}`](#accord-{name})", row.summary) for name, row in commands.items()
        )
        yield from table(("Command", "What it does"), rows)
        yield ""


def commands() -> Iterator[str]:
    """Every command with its flags and examples."""
    for name in main.COMMANDS:
        parser = main.build_parser(name, main.load_command(name))
        yield f"## `accord {name}`\n"
        yield f"{parser.description}\n"
        yield from _flags(parser)
        verbs = list(_verbs(parser))
        for verb, summary, inner in verbs:
            yield f"### `accord {name} {verb}`\n"
            yield f"{capital(summary)}.\n"
            yield from _flags(inner)
            yield from _examples(inner)
        if not verbs:
            yield from _examples(parser)


def _examples(parser: Parser) -> Iterator[str]:
    lines = (parser.epilog or "").removeprefix("examples:\n").splitlines()
    yield "Examples:\n" if len(lines) > 1 else "Example:\n"
    yield from fenced("\n".join(line.removeprefix("  ") for line in lines), "sh")
    yield ""


def _verbs(parser: Parser) -> Iterator[tuple[str, str, Parser]]:
    """The verbs of a command, each with its line of help and its own flags."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - the same
            for shown in action._choices_actions:  # noqa: SLF001 - the same
                yield shown.dest, shown.help or "", action.choices[shown.dest]


def _flags(parser: Parser) -> Iterator[str]:
    actions = [action for action in parser._actions if _is_shown(action)]  # noqa: SLF001 - the same
    yield from fenced(_usage(parser, actions), "text")
    yield ""
    if actions:
        rows = ((code(_spelled(each)), _explained(each)) for each in actions)
        yield from table(("Argument", "Meaning"), rows)
        yield ""


def _is_shown(action: argparse.Action) -> bool:
    hidden = action.help == argparse.SUPPRESS
    inner = isinstance(action, argparse._HelpAction | argparse._SubParsersAction)  # noqa: SLF001
    return not (hidden or inner)


def _usage(parser: Parser, actions: list[argparse.Action]) -> str:
    names = "|".join(name for name, _, _ in _verbs(parser))
    verbs = [f"{names} …"] if names else []
    words = [parser.prog, *verbs, *(_in_usage(each) for each in actions)]
    lines, line = [], ""
    for word in words:
        if line and len(line) + len(word) > 90:
            lines.append(line)
            line = "   "
        line += f" {word}" if line else word
    return "\n".join([*lines, line])


def _in_usage(action: argparse.Action) -> str:
    word = _spelled(action)
    optional = not action.required or action.nargs in {"?", "*"}
    return f"[{word}]" if optional else word


def _spelled(action: argparse.Action) -> str:
    name = max(action.option_strings, key=len, default="")
    value = "" if action.nargs == 0 else _value(action)
    return " ".join(part for part in (name, value) if part)


def _value(action: argparse.Action) -> str:
    if action.choices and not action.metavar:
        return "|".join(map(str, action.choices))
    named = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    one = named if isinstance(named, str) else " ".join(named)
    return f"{one} …" if action.nargs in {"*", "+", argparse.REMAINDER} else one


def _explained(action: argparse.Action) -> str:
    text = (action.help or "") % {**vars(action), "prog": "accord"}
    return capital(text)
