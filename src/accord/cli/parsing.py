"""Argument parsing with wrapped help and one-sentence errors that suggest the nearest match."""

import argparse
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from accord.show.terminal_size import help_columns, wrap_words

EXIT_BAD_INPUT = 2
SIMILARITY_CUTOFF = 0.6
USAGE_INDENT = "    "
USAGE_PARTS = re.compile(r"\[[^\]]*\]|\([^)]*\)|\S+")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps prose and leaves examples as they are."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"width": help_columns() - 2, **options})

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return super()._fill_text(text, width, indent)
        return "\n\n".join("\n".join(wrap_words(part, width)) for part in text.split("\n\n"))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap_words(text, width)

    def _format_usage(self, *args: Any) -> str:
        """The usage; where argparse's own indentation leaves too little space, with a small one."""
        usual = super()._format_usage(*args)
        width = self._width
        if all(len(line) <= width for line in usual.splitlines()):
            return usual
        self._width = len(usual) + 1  # everything on one line
        line = super()._format_usage(*args)
        self._width = width
        return "\n".join(wrap_usage(line.strip(), width)) + "\n\n"


def wrap_usage(usage: str, width: int) -> list[str]:
    """Wrap a usage line; an optional part stays together if it fits into a line."""
    lines = [""]
    for part in USAGE_PARTS.findall(usage):
        fits = len(USAGE_INDENT) + len(part) <= width
        for word in (part,) if fits else part.split():
            longer = f"{lines[-1]} {word}".lstrip() if len(lines) == 1 else f"{lines[-1]} {word}"
            if len(longer) <= width:
                lines[-1] = longer
            else:
                lines.append(f"{USAGE_INDENT}{word}")
    return lines


class Parser(argparse.ArgumentParser):
    """An argparse parser that reports errors in one sentence."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": HelpFormatter, "allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Print one sentence on standard error and exit with 2."""
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {shorten_message(message)}{self._hint(message)}\n")

    def _hint(self, message: str) -> str:
        return "" if ";" in message else f"; `{self.prog} --help` explains"

    def parse_words(self, words: list[str]) -> argparse.Namespace:
        """Parse the words; prints help if the verb is missing, a suggestion if a word is wrong."""
        verbs = self.verbs()
        if verbs and not words:
            self.print_help()
            raise SystemExit(EXIT_BAD_INPUT)
        if verbs and not words[0].startswith("-") and words[0] not in verbs:
            self.error(f"there is no verb {words[0]!r}; {did_you_mean(self.prog, words[0], verbs)}")
        args, leftover = self.parse_known_args(words)
        if leftover:
            parser = verbs[words[0]] if verbs and words[0] in verbs else self
            parser.reject_leftover(leftover, verbs.values())
        return args

    def verbs(self) -> dict[str, "Parser"]:
        """The parsers of the verbs, by name; empty for a command without verbs."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - argparse has no public way
                return dict(action.choices)
        return {}

    def flags(self) -> list[str]:
        """The names of all flags."""
        return [name for action in self._actions for name in action.option_strings]

    def reject_leftover(self, leftover: list[str], verbs: Iterable["Parser"] = ()) -> NoReturn:
        """Report an unknown flag or a surplus word."""
        words = [word for word in leftover if word != "--"] or leftover
        flag = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
        if flag is None:
            self.error(f"unexpected argument {words[0]!r}")
        if flag in self.flags():
            self.error(
                f"{flag} comes after `--`, where nothing is read as a flag; put it before that"
            )
        if others := [verb.prog for verb in verbs if flag in verb.flags()]:
            hint = f"`{others[0]}` has one; `{self.prog} --help` lists the flags here"
            self.error(f"there is no flag {flag} here, but {hint}")
        near = nearest_match(flag, self.flags())
        hint = f"; did you mean {near}?" if near else ""
        self.error(f"there is no flag {flag}{hint}")


def did_you_mean(prog: str, word: str, verbs: Iterable[str]) -> str:
    """Suggest the most similar verb, or list all of them."""
    if near := nearest_match(word, verbs):
        return f"did you mean `{prog} {near}`?"
    return f"the verbs are {', '.join(verbs)}"


def nearest_match(word: str, known: Iterable[str]) -> str:
    """The most similar known word; empty if none is similar enough."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=SIMILARITY_CUTOFF)), "")


def shorten_message(message: str) -> str:
    """Argparse's message in fewer words."""
    return message.removeprefix("argument ").replace(
        "the following arguments are required:", "missing:"
    )


# Types of arguments


def non_empty(text: str) -> str:
    """An argument type that refuses blank text."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return text


class BoundedInt:
    """An argument type for whole numbers within bounds."""

    def __init__(self, minimum: int, maximum: int) -> None:
        self._minimum, self._maximum = minimum, maximum

    def __call__(self, text: str) -> int:
        """Parse the text; raises ArgumentTypeError."""
        digits = text.strip()
        valid = digits.isascii() and digits.isdigit() and len(digits) < 12
        if not valid or not self._minimum <= int(digits) <= self._maximum:
            bounds = f"from {self._minimum} to {self._maximum}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {bounds}")
        return int(digits)


class SubsetOf:
    """An argument type for one or more of a list of words, separated by commas."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = tuple(allowed)

    def __call__(self, text: str) -> tuple[str, ...]:
        """Parse the text; raises ArgumentTypeError."""
        words = tuple(word.strip() for word in text.split(",") if word.strip())
        wrong = [word for word in words if word not in self._allowed]
        choice = f"use one or more of {','.join(self._allowed)}"
        if wrong:
            raise argparse.ArgumentTypeError(f"there is no {wrong[0]!r}; {choice}")
        if not words:
            raise argparse.ArgumentTypeError(f"must not be empty; {choice}")
        return words


def price_type(text: str) -> tuple[float, float]:
    """The prices of a million tokens read and written, for argparse."""
    import math

    try:
        prices = tuple(float(part) for part in text.split(","))
    except ValueError:
        prices = ()
    if len(prices) != 2 or not all(math.isfinite(each) and each >= 0 for each in prices):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not two prices for a million tokens, such as 3,15"
        )
    return prices
