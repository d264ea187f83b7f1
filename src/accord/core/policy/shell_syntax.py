"""A shell script as values: what a parser outside the core found in it.

A parser (`accord.shell_parser`) fills these in. The rules read them flat, because a script may do
what any of its commands does: those of a pipe, a substitution, a loop and a function alike.
"""

from collections.abc import Iterator
from typing import Protocol

import msgspec

# Constructs that a script may contain and still be understood.
PIPE, LIST, SUBSHELL = "pipeline", "list", "subshell"


class Word(msgspec.Struct, frozen=True):
    """One word of a command; `text` is what bash makes of it if `literal`, else its source.

    `glob`: bash replaces it by the names of files. `home`: it begins with an unquoted `~`.
    """

    text: str
    literal: bool = True
    glob: bool = False
    home: bool = False
    raw: str = ""


class Redirect(msgspec.Struct, frozen=True):
    """A redirection; a here-document or here-string has its text as the target."""

    operator: str
    target: Word
    descriptor: str = ""

    @property
    def is_input_text(self) -> bool:
        """Whether its target is the input itself, not a file."""
        return self.operator in {"<<", "<<-", "<<<"}


class SimpleCommand(msgspec.Struct, frozen=True):
    """A program or builtin with its words, in whatever construct it stands."""

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    redirects: tuple[Redirect, ...] = ()
    piped: bool = False  # its input comes from the command before it

    @property
    def has_input(self) -> bool:
        """Whether its input is not the terminal."""
        return self.piped or any(
            redirect.operator in {"<", "<<", "<<-", "<<<", "<>"}
            and redirect.descriptor in {"", "0"}
            for redirect in self.redirects
        )

    @property
    def literal(self) -> bool:
        """Whether its words are known to the letter; file names for a glob are not."""
        return all(word.literal for word in self.words)


class Script(msgspec.Struct, frozen=True):
    """Everything that a shell would run for a text.

    `problem` says what was not understood; empty if everything was. `plain`: only simple commands
    in pipes and lists, and a second, independent reading found the same words.
    """

    commands: tuple[SimpleCommand, ...] = ()
    problem: str = ""
    plain: bool = False


class ShellParser(Protocol):
    """Reads the text that a shell would get."""

    def __call__(self, text: str) -> Script:
        """The script; one with a `problem` if the text is not understood."""
        ...


# Unquoted in a word: an expansion, a process substitution, or a character with a hidden meaning.
EXPANDED = frozenset("$`()<>\r\0")


def read_word(raw: str) -> Word:
    """What bash makes of one word of its source; expansions make it not literal."""
    return _WordReader(raw).word()


class _WordReader:
    """Quote removal, and notice of everything that bash would expand."""

    def __init__(self, raw: str) -> None:
        self._raw = raw
        self._text: list[str] = []
        self._literal = True
        self._glob = False
        self._brace = False

    def word(self) -> Word:
        raw = self._raw
        characters = iter(raw)
        before = ""
        for char in characters:
            if char == "'":
                self._single_quoted(characters)
            elif char == '"':
                self._double_quoted(characters)
            elif char == "\\":
                self._escaped(characters)
            else:
                self._unquoted(char, before)
            before = char
        home = raw == "~" or raw.startswith("~/")
        if raw.startswith("~") and not home:
            self._literal = False
        text = "".join(self._text) if self._literal else raw
        return Word(text, self._literal, self._glob, home, raw)

    def _unquoted(self, char: str, before: str) -> None:
        # `a=~` and `a:~` are expanded in some places, `HEAD~1` nowhere.
        if char in EXPANDED or (char == "~" and before in ("=", ":")):
            self._literal = False
        elif char in "*?[":
            self._glob = True
        elif char == "{":
            self._brace = True
        elif self._brace and char in ",.":
            self._literal = False
        self._text.append(char)

    def _single_quoted(self, characters: Iterator[str]) -> None:
        for char in characters:
            if char == "'":
                return
            self._text.append(char)
        self._literal = False

    def _double_quoted(self, characters: Iterator[str]) -> None:
        for char in characters:
            if char == '"':
                return
            if char in "$`":
                self._literal = False
            elif char == "\\":
                escaped = next(characters, "")
                # Within double quotes a backslash stays before any other character.
                self._text.append(escaped if escaped in '"\\$`' else char + escaped)
                self._literal = self._literal and escaped not in {"", "\n"}
                continue
            self._text.append(char)
        self._literal = False

    def _escaped(self, characters: Iterator[str]) -> None:
        escaped = next(characters, "")
        if escaped in {"", "\n"}:
            self._literal = False
        self._text.append(escaped)
