"""Flags and verbs: help that fits the screen; for a slip one sentence with the nearest match."""

import argparse
import textwrap
from collections.abc import Iterable
from typing import Any, NoReturn

from accord.show import screen

BAD_INPUT = 2
WIDEST = 100
CUTOFF = 0.6


def columns() -> int:
    """How wide help may be; 80 where no terminal says otherwise."""
    return min(screen.columns(80), WIDEST)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Prose wrapped where the line ends; examples as they are."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"width": columns() - 2, **options})

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return super()._fill_text(text, width, indent)
        return "\n\n".join(textwrap.fill(part, width) for part in text.split("\n\n"))


class Parser(argparse.ArgumentParser):
    """An argparse parser that says what is wrong in one sentence."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": Formatter, "allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """The sentence on standard error; exit code 2."""
        self.exit(BAD_INPUT, f"{self.prog}: {plain(message)}{self._hint(message)}\n")

    def _hint(self, message: str) -> str:
        return "" if ";" in message else f"; `{self.prog} --help` explains"

    def read(self, words: list[str]) -> argparse.Namespace:
        """The words by their flags; help where a verb is missing, a hint where a word is wrong."""
        verbs = self.verbs()
        if verbs and not words:
            self.print_help()
            raise SystemExit(BAD_INPUT)
        if verbs and not words[0].startswith("-") and words[0] not in verbs:
            self.error(f"there is no verb {words[0]!r}; {did_you_mean(self.prog, words[0], verbs)}")
        args, rest = self.parse_known_args(words)
        if rest:
            chosen = verbs[words[0]] if verbs and words[0] in verbs else self
            chosen.refuse(rest, verbs.values())
        return args

    def verbs(self) -> dict[str, "Parser"]:
        """The parsers of the verbs, where there are any."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - no other way to ask
                return dict(action.choices)
        return {}

    def flags(self) -> list[str]:
        """What its flags are called."""
        return [name for action in self._actions for name in action.option_strings]

    def refuse(self, rest: list[str], verbs: Iterable["Parser"] = ()) -> NoReturn:
        """What was left over: a flag that does not exist here, or a word too many."""
        words = [word for word in rest if word != "--"] or rest
        flag = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
        if flag is None:
            self.error(f"there is a word too many, {words[0]!r}")
        if flag in self.flags():
            self.error(f"{flag} stands behind `--`, where nothing is a flag; put it before that")
        if others := [each.prog for each in verbs if flag in each.flags()]:
            theirs = f"`{others[0]}` has one; `{self.prog} --help` lists its own"
            self.error(f"there is no flag {flag} here, though {theirs}")
        near = nearest(flag, self.flags())
        hint = f"; did you mean {near}?" if near else ""
        self.error(f"there is no flag {flag}{hint}")


def did_you_mean(prog: str, word: str, verbs: Iterable[str]) -> str:
    """The nearest verb, else all of them."""
    if near := nearest(word, verbs):
        return f"did you mean `{prog} {near}`?"
    return f"there are {', '.join(verbs)}"


def nearest(word: str, known: Iterable[str]) -> str:
    """The one that is most like this; none may be."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=CUTOFF)), "")


def plain(message: str) -> str:
    """The words of argparse, shorter."""
    return message.removeprefix("argument ").replace(
        "the following arguments are required:", "this is missing:"
    )


# What flags take


def filled(text: str) -> str:
    """Something, not nothing."""
    if not text.strip():
        raise argparse.ArgumentTypeError("say something here; it is empty")
    return text


class Whole:
    """A whole number within bounds."""

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most

    def __call__(self, text: str) -> int:
        """The number."""
        digits = text.strip()
        good = digits.isascii() and digits.isdigit() and len(digits) < 12
        if not good or not self._least <= int(digits) <= self._most:
            bounds = f"from {self._least} to {self._most}"
            raise argparse.ArgumentTypeError(f"{text!r} will not do; write a number {bounds}")
        return int(digits)


class Some:
    """Some of a list of words, with commas between; at least one."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = tuple(allowed)

    def __call__(self, text: str) -> tuple[str, ...]:
        """The words."""
        words = tuple(word.strip() for word in text.split(",") if word.strip())
        wrong = [word for word in words if word not in self._allowed]
        choice = f"write some of {','.join(self._allowed)}"
        if wrong:
            raise argparse.ArgumentTypeError(f"there is no {wrong[0]!r}; {choice}")
        if not words:
            raise argparse.ArgumentTypeError(f"it is empty; {choice}")
        return words
