"""Adding entries to a JSON file, and taking them out again, without touching anything else.

An entry is inserted directly behind the opening bracket of its container: no comma of the file
changes, and comments stay where they are.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from accord.hosts.configuration.entry import (
    Addition,
    ConfigurationError,
    Entry,
    Path,
    insert,
    newline_of,
)
from accord.hosts.configuration.jsonc import BLANKS, Member, Node, parse

DEFAULT_INDENT = "  "
FIRST_INDENT = re.compile(r"\n([ \t]+)[\"/]")
NEW_FILE = "{}\n"


class JsonFile(NamedTuple):
    """How one kind of JSON file is read; some hosts allow comments and a last comma."""

    comments: bool
    new_text: str = NEW_FILE

    def values(self, text: str) -> Any:
        """The document; raises ConfigurationError."""
        return self._root(text).value

    def _root(self, text: str) -> Node:
        root = parse(text, comments=self.comments)
        if not isinstance(root.value, dict):
            raise ConfigurationError("it has to be one object in braces")
        return root

    def add(self, text: str, entries: Sequence[Entry]) -> Addition:
        """The text with these entries; raises ConfigurationError where one cannot be added."""
        done = Addition(text)
        for entry in reversed(entries):  # each one goes in front of those before
            done = self._add_one(done, entry)
        return done

    def _add_one(self, before: Addition, entry: Entry) -> Addition:
        text = before.text
        container, depth = deepest(self._root(text), entry)
        if entry.key and depth == len(entry.path) and container.member(entry.key):
            if entry.if_missing:
                return before
            raise ConfigurationError(
                f"it already has {entry.place}, which Accord did not write; remove it there first"
            )
        missing = entry.path[depth:]
        key, value = nested(missing, entry)
        at, run = insertion(text, container, key, value)
        changed, spans = insert(text, at, run, before.spans)
        created = tuple(entry.path[: depth + n + 1] for n in range(len(missing)))
        return Addition(changed, spans, (*before.created, *created))

    def strip(self, text: str, entries: Iterable[Entry], created: Iterable[Path]) -> str:
        """The text without these entries, and without created containers that are empty now."""
        for entry in (each for each in entries if not each.if_missing):
            while (found := self._find(text, entry)) is not None:
                text = without_member(text, *found)
        for path in sorted(set(created), key=len, reverse=True):
            text = self._without_empty(text, path)
        return text

    def _find(self, text: str, entry: Entry) -> tuple[Node, Member] | None:
        container, depth = deepest(self._root(text), entry, strict=False)
        if depth < len(entry.path):
            return None
        for member in reversed(container.members):
            if entry.key:
                if member.key == entry.key and isinstance(container.value, dict):
                    return container, member
            elif isinstance(container.value, list) and entry.is_marked(member.node.value):
                return container, member
        return None

    def _without_empty(self, text: str, path: Path) -> str:
        container = self._root(text)
        for name in path[:-1]:
            inner = container.member(name)
            if inner is None:
                return text
            container = inner.node
        member = container.member(path[-1])
        if member is None or member.node.value not in ({}, []):
            return text
        has_comment = bool(text[member.node.start + 1 : member.node.end - 1].strip())
        return text if has_comment else without_member(text, container, member)


def deepest(root: Node, entry: Entry, *, strict: bool = True) -> tuple[Node, int]:
    """The innermost container of an entry's path that is there, and how deep it is."""
    node = root
    for depth, name in enumerate(entry.path):
        member = node.member(name) if isinstance(node.value, dict) else None
        if member is None:
            return node, depth
        is_last = depth == len(entry.path) - 1
        wanted = list if is_last and not entry.key else dict
        if not isinstance(member.node.value, wanted):
            if not strict:
                return node, depth
            kind = "a list" if wanted is list else "an object"
            place = ".".join(entry.path[: depth + 1])
            raise ConfigurationError(f"{place} is not {kind}, as the host expects; correct it")
        node = member.node
    return node, len(entry.path)


def nested(missing: Path, entry: Entry) -> tuple[str, Any]:
    """The key and the value to insert, with the containers that are missing around the entry."""
    if not missing:
        return entry.key, entry.value
    value = {entry.key: entry.value} if entry.key else [entry.value]
    for name in reversed(missing[1:]):
        value = {name: value}
    return missing[0], value


def insertion(text: str, container: Node, key: str, value: Any) -> tuple[int, str]:
    """Where the member goes, and its text in the style of the file."""
    at, newline = container.start + 1, newline_of(text)
    name = f"{json.dumps(key, ensure_ascii=False)}: " if key else ""
    inner = text[at : container.end - 1]
    if container.members and "\n" not in text[at : container.members[0].start]:
        return at, f"{name}{json.dumps(value, ensure_ascii=False)}, "
    outer = line_indent(text, container.start)
    unit = indent_unit(text)
    indent = (
        line_indent(text, container.members[0].start) if container.members else f"{outer}{unit}"
    )
    lines = json.dumps(value, indent=unit, ensure_ascii=False).splitlines()
    run = newline + indent + name + f"{newline}{indent}".join(lines)
    if container.members:
        return at, run + ","
    return at, run if "\n" in inner else f"{run}{newline}{outer}"


def line_indent(text: str, at: int) -> str:
    """The blanks at the beginning of this line."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def indent_unit(text: str) -> str:
    """By how much this file indents."""
    found = FIRST_INDENT.search(text)
    return found.group(1) if found else DEFAULT_INDENT


def without_member(text: str, container: Node, member: Member) -> str:
    """The text without this member and one comma."""
    start, end = member.start, member.node.end
    while text[start - 1] in BLANKS:
        start -= 1
    others = [each for each in container.members if each.start != member.start]
    if not others:
        end = member.comma + 1 if member.comma >= 0 else end
        rest = text[container.start + 1 : start] + text[end : container.end - 1]
        inner = rest if rest.strip() else ""
        return text[: container.start + 1] + inner + text[container.end - 1 :]
    if member.comma >= 0:
        between = text[end : member.comma]  # a comment may stand in front of the comma
        return text[:start] + (between if between.strip() else "") + text[member.comma + 1 :]
    comma = max(each.comma for each in others)
    return text[:comma] + text[comma + 1 : start] + text[end:]
