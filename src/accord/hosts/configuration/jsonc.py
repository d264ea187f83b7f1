"""JSON as people write it: every value with its place in the text, comments and commas passed over.

Only positions are read here. What is changed in a text is decided in `json_entries.py`, so that
everything else stays as it is, byte for byte.
"""

import json
import re
from typing import Any, NamedTuple

from accord.hosts.configuration.entry import ConfigurationError

MAX_DEPTH = 200
BLANKS = " \t\r\n"
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
WORDS = {"true": True, "false": False, "null": None}
DECODER = json.JSONDecoder()
BYTE_ORDER_MARK = "\ufeff"


class Member(NamedTuple):
    """A member of an object, or an element of a list, whose key is empty.

    `comma` is the position of the comma that follows, -1 if there is none.
    """

    key: str
    start: int
    node: "Node"
    comma: int


class Node(NamedTuple):
    """A value and its place; `members` are those of an object or a list."""

    value: Any
    start: int
    end: int
    members: tuple[Member, ...] = ()

    def member(self, key: str) -> Member | None:
        """The member with this key; of several, the last one, which is the one that counts."""
        found = [each for each in self.members if each.key == key]
        return found[-1] if found else None


def parse(text: str, *, comments: bool) -> Node:
    """The one value of a document; raises ConfigurationError with line and column."""
    reader = Reader(text, comments=comments)
    start = reader.skip(1 if text.startswith(BYTE_ORDER_MARK) else 0)
    node = reader.value(start, 0)
    end = reader.skip(node.end)
    if end != len(text):
        raise reader.error(end, "something follows the end of the document")
    return node


class Reader:
    """Reads one text."""

    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self.comments = comments

    def error(self, at: int, what: str) -> ConfigurationError:
        """The problem and where it is."""
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        return ConfigurationError(f"line {line}, column {column}: {what}")

    def skip(self, at: int) -> int:
        """The next position that is neither blank nor in a comment."""
        text = self.text
        while at < len(text):
            if text[at] in BLANKS:
                at += 1
            elif text.startswith(("//", "/*"), at):
                at = self._skip_comment(at)
            else:
                break
        return at

    def _skip_comment(self, at: int) -> int:
        if not self.comments:
            raise self.error(at, "comments are not allowed in this file")
        if self.text.startswith("//", at):
            end = self.text.find("\n", at)
            return len(self.text) if end < 0 else end
        end = self.text.find("*/", at + 2)
        if end < 0:
            raise self.error(at, "a comment has no end")
        return end + 2

    def value(self, at: int, depth: int) -> Node:
        """The value that begins here."""
        if depth > MAX_DEPTH:
            raise self.error(at, f"more than {MAX_DEPTH} levels")
        first = self.text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._list(at, depth)
        if first == '"':
            value, end = self._string(at)
            return Node(value, at, end)
        for word, meaning in WORDS.items():
            if self.text.startswith(word, at):
                return Node(meaning, at, at + len(word))
        if number := NUMBER.match(self.text, at):
            return Node(json.loads(number.group()), at, number.end())
        raise self.error(at, "a value is missing here" if first else "the text ends too early")

    def _string(self, at: int) -> tuple[str, int]:
        try:
            value, end = DECODER.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            raise self.error(error.pos, error.msg) from None
        return str(value), int(end)

    def _object(self, at: int, depth: int) -> Node:
        members: list[Member] = []
        value: dict[str, Any] = {}
        position = self.skip(at + 1)
        while self.text[position : position + 1] != "}":
            if members and members[-1].comma < 0:
                raise self.error(position, "a comma is missing here")
            if self.text[position : position + 1] != '"':
                raise self.error(position, "a key in double quotes is missing here")
            key, end = self._string(position)
            colon = self.skip(end)
            if self.text[colon : colon + 1] != ":":
                raise self.error(colon, "a colon is missing here")
            node = self.value(self.skip(colon + 1), depth + 1)
            value[key] = node.value
            comma, following = self._comma(node.end, "}")
            members.append(Member(key, position, node, comma))
            position = following
        return Node(value, at, position + 1, tuple(members))

    def _list(self, at: int, depth: int) -> Node:
        members: list[Member] = []
        position = self.skip(at + 1)
        while self.text[position : position + 1] != "]":
            if members and members[-1].comma < 0:
                raise self.error(position, "a comma is missing here")
            node = self.value(position, depth + 1)
            comma, following = self._comma(node.end, "]")
            members.append(Member("", position, node, comma))
            position = following
        values = [each.node.value for each in members]
        return Node(values, at, position + 1, tuple(members))

    def _comma(self, at: int, closing: str) -> tuple[int, int]:
        """Where the comma after a value is, and where the next thing begins."""
        place = self.skip(at)
        if self.text[place : place + 1] != ",":
            return -1, place
        following = self.skip(place + 1)
        if self.text[following : following + 1] == closing and not self.comments:
            raise self.error(place, "the last comma is one too many")
        return place, following
