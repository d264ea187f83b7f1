"""Splits what a program writes to a terminal into text, controls and escape sequences.

Bytes may be cut anywhere; what is incomplete waits for the rest. An unknown sequence is a token
like any other, so that it is skipped as a whole.
"""

import codecs
import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

# A sequence that does not end within this many characters is not one: a terminal that has gone out
# of step has to find back.
MAX_SEQUENCE = 64 << 10


class TokenKind(Enum):
    """What a token is."""

    TEXT = auto()
    CONTROL = auto()  # one C0 or C1 character
    CSI = auto()
    OSC = auto()
    ESCAPE = auto()  # every other sequence, device control strings included


class Token(NamedTuple):
    """Text, or a sequence without its introducer and terminator.

    Of a CSI sequence `text` has parameters and intermediates, and `final` the last character.
    """

    kind: TokenKind
    text: str
    final: str = ""


_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<csi>[0-?]*[ -/]*)(?P<final>[@-~])"
    r"|\x1b\](?P<osc>[^\x07\x1b\x9c]*)(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[PX^_](?P<string>[^\x1b\x9c]*(?:\x1b[^\\\x1b][^\x1b\x9c]*)*)(?:\x1b\\|\x9c)"
    r"|\x1b(?P<escape>[ -/]*[0-OQ-WYZ`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
)
# What may still become one of these with more input.
_INCOMPLETE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b\x9c]*\x1b?|[PX^_][^\x9c]*|[ -/]*)?\Z", re.DOTALL
)


class EscapeParser:
    """Keeps what was cut off at the end of the bytes so far."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, data: bytes) -> Iterator[Token]:
        """The tokens that these bytes complete."""
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        at, end = 0, len(text)
        while at < end:
            found = _TOKEN.match(text, at)
            if found is not None:
                at = found.end()
                yield _token(found)
            elif end - at <= MAX_SEQUENCE and _INCOMPLETE.match(text, at):
                self._rest = text[at:]
                return
            else:
                at += 1  # an escape character that begins nothing


def _token(found: "re.Match[str]") -> Token:
    kind = found.lastgroup
    if kind == "text":
        return Token(TokenKind.TEXT, found["text"])
    if kind == "final":
        return Token(TokenKind.CSI, found["csi"], found["final"])
    if kind == "osc":
        return Token(TokenKind.OSC, found["osc"])
    if kind == "control":
        return Token(TokenKind.CONTROL, found["control"])
    return Token(TokenKind.ESCAPE, found["escape"] or "")
