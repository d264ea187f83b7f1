"""Adding entries to a TOML file, and taking them out again, without touching anything else.

Entries are tables at the end of the file, so that no line before them changes. Whether the file
means the same otherwise is checked with the parser, before and after.
"""

import copy
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from accord.hosts.configuration.entry import (
    Addition,
    ConfigurationError,
    Entry,
    Path,
    insert,
    newline_of,
)

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
HEADER = re.compile(r"[ \t]*\[")
# TOML's own escapes are those of JSON, but for this character.
DELETE_CHARACTER = "\x7f"


class TomlFile(NamedTuple):
    new_text: str = ""

    def values(self, text: str) -> dict[str, Any]:
        """The document; raises ConfigurationError."""
        try:
            return tomllib.loads(text.replace("\r\n", "\n"))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise ConfigurationError(str(error) or "too many levels") from None

    def add(self, text: str, entries: Sequence[Entry]) -> Addition:
        """The text with these entries; raises ConfigurationError where one cannot be added."""
        before = self.values(text)
        for entry in entries:
            ensure_free(before, entry)
        if not entries:
            return Addition(text)
        newline = newline_of(text)
        block = newline.join("\n\n".join(map(render, entries)).split("\n"))
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        run = f"{gap}{block}{newline}"
        changed, spans = insert(text, len(text), run, ())
        self._ensure_same(changed, with_entries(before, entries), entries)
        return Addition(changed, spans)

    def _ensure_same(self, text: str, wanted: Any, entries: Sequence[Entry]) -> None:
        places = ", ".join(sorted({entry.place for entry in entries}))
        try:
            same = self.values(text) == wanted
        except ConfigurationError:
            same = False
        if not same:
            raise ConfigurationError(
                f"{places} cannot be added as tables: write inline tables and lists of the same "
                "name as [table] and [[list]] first"
            )

    def strip(self, text: str, entries: Iterable[Entry], _created: Iterable[Path]) -> str:
        """The text without these entries; raises ConfigurationError if they cannot be cut out."""
        entries = tuple(entries)
        before = self.values(text)
        wanted = without_entries(before, entries)
        if wanted == before:
            return text
        kept = [each.text for each in sections(text) if not is_ours(each, entries)]
        stripped = "".join(kept)
        if prune(self.values(stripped)) != prune(wanted):
            places = ", ".join(sorted({entry.place for entry in entries}))
            raise ConfigurationError(f"{places} was rewritten since; remove it by hand")
        return stripped


class Piece(NamedTuple):
    """A table with its header, the values in front of all tables, or comments between tables."""

    path: Path
    is_list: bool
    text: str
    is_comment: bool = False


class Section(NamedTuple):
    """A piece of the text; `group` is the text of the whole list element that it is part of."""

    path: Path
    text: str
    group: str


def sections(text: str) -> Iterator[Section]:
    """The text in pieces, in order."""
    pieces = list(split_at_headers(text))
    for number, piece in enumerate(pieces):
        start = element_start(pieces, number)
        end = start + 1
        while end < len(pieces) and is_part(pieces[end], pieces[start]):
            end += 1
        group = "".join(each.text for each in pieces[start:end])
        yield Section(piece.path, piece.text, group)


def element_start(pieces: Sequence[Piece], number: int) -> int:
    """The piece with which the list element around this piece begins, else the piece itself."""
    outermost = number
    for index in range(number - 1, 0, -1):
        above = pieces[index]
        if above.is_comment:
            continue
        if not is_below(pieces[number].path, above.path):
            break
        outermost = index if above.is_list else outermost
    return outermost


def is_part(piece: Piece, element: Piece) -> bool:
    return piece.is_comment or is_below(piece.path, element.path)


def is_below(path: Path, above: Path) -> bool:
    return len(path) > len(above) and path[: len(above)] == above


def split_at_headers(text: str) -> Iterator[Piece]:
    """Each table with the blank lines in front of it; comments in front of a table are apart."""
    path: Path = ()
    is_list = False
    begun: list[str] = []
    waiting: list[str] = []  # blank lines and comments that may belong to the next table
    for line in text.splitlines(keepends=True):
        header = header_path(line) if closes_strings("".join([*begun, *waiting])) else None
        if header is not None:
            yield Piece(path, is_list, "".join(begun))
            comments = len(waiting)
            while comments and not waiting[comments - 1].strip():
                comments -= 1
            if comments:
                yield Piece((), is_list=False, text="".join(waiting[:comments]), is_comment=True)
            path, is_list = header
            begun, waiting = [*waiting[comments:], line], []
        elif line.strip() and not line.lstrip().startswith("#"):
            begun += [*waiting, line]
            waiting = []
        else:
            waiting.append(line)
    yield Piece(path, is_list, "".join(begun))
    yield Piece((), is_list=False, text="".join(waiting), is_comment=True)


def closes_strings(text: str) -> bool:
    """Whether no multi-line value is open at the end of this piece of a document."""
    try:
        tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError:
        return False
    return True


def header_path(line: str) -> tuple[Path, bool] | None:
    """The path in a header line, and whether it is a list's; None for any other line."""
    if not HEADER.match(line):
        return None
    try:
        value: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    path: list[str] = []
    is_list = line.lstrip().startswith("[[")
    while isinstance(value, dict) and value:
        ((name, value),) = value.items()
        path.append(name)
        if isinstance(value, list):
            return tuple(path), is_list
    return tuple(path), is_list


def is_ours(section: Section, entries: Iterable[Entry]) -> bool:
    """Whether a table is part of one of the entries."""
    for entry in entries:
        if entry.key:
            own = (*entry.path, entry.key)
            if section.path[: len(own)] == own:
                return True
        elif section.path[: len(entry.path)] == entry.path:
            text = tomllib.loads(section.group.replace("\r\n", "\n"))
            if any(entry.is_marked(each) for each in elements(text, entry.path)):
                return True
    return False


def render(entry: Entry) -> str:
    """The entry as tables."""
    if entry.key:
        return "\n".join(table((*entry.path, entry.key), entry.value, is_list=False))
    return "\n".join(table(entry.path, entry.value, is_list=True))


def table(path: Path, value: Mapping[str, Any], *, is_list: bool) -> Iterator[str]:
    """A header, its plain values, then its lists of tables."""
    name = ".".join(key_text(part) for part in path)
    yield f"[[{name}]]" if is_list else f"[{name}]"
    lists = {key: each for key, each in value.items() if is_table_list(each)}
    for key, each in value.items():
        if key not in lists:
            yield f"{key_text(key)} = {value_text(each)}"
    for key, each in lists.items():
        for element in each:
            yield from table((*path, key), element, is_list=True)


def is_table_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def key_text(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else value_text(key)


def value_text(value: Any) -> str:
    """A text, number, flag, list or inline table."""
    if isinstance(value, dict):
        inner = ", ".join(f"{key_text(key)} = {value_text(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    text = json.dumps(value, ensure_ascii=False)
    return text.replace(DELETE_CHARACTER, "\\u007f")


def elements(values: Any, path: Path) -> list[Any]:
    """The list at this path; empty if there is none."""
    for name in path:
        values = values.get(name) if isinstance(values, dict) else None
    return values if isinstance(values, list) else []


def ensure_free(values: Mapping[str, Any], entry: Entry) -> None:
    """Refuse to replace an entry that Accord did not write."""
    found: Any = values
    for name in entry.path:
        found = found.get(name, {}) if isinstance(found, dict) else {}
    if entry.key and isinstance(found, dict) and entry.key in found:
        raise ConfigurationError(
            f"it already has {entry.place}, which Accord did not write; remove it there first"
        )


def with_entries(values: dict[str, Any], entries: Iterable[Entry]) -> Any:
    """What the document means with the entries; None if there is no place for one."""
    result = copy.deepcopy(values)
    for entry in entries:
        container: Any = result
        for name in entry.path[:-1] if not entry.key else entry.path:
            container = container.setdefault(name, {}) if isinstance(container, dict) else None
        if not isinstance(container, dict):
            return None
        if entry.key:
            container[entry.key] = entry.value
            continue
        found = container.setdefault(entry.path[-1], [])
        if not isinstance(found, list):
            return None
        found.append(entry.value)
    return result


def without_entries(values: dict[str, Any], entries: Iterable[Entry]) -> Any:
    """What the document means without the entries."""
    result = copy.deepcopy(values)
    for entry in entries:
        container: Any = result
        for name in entry.path[:-1] if not entry.key else entry.path:
            container = container.get(name) if isinstance(container, dict) else None
        if not isinstance(container, dict):
            continue
        if entry.key:
            container.pop(entry.key, None)
        elif isinstance(found := container.get(entry.path[-1]), list):
            container[entry.path[-1]] = [each for each in found if not entry.is_marked(each)]
    return result


def prune(values: Any) -> Any:
    """Without empty tables and lists, which tables at the end leave behind or not."""
    if isinstance(values, dict):
        kept = {key: prune(each) for key, each in values.items()}
        return {key: each for key, each in kept.items() if each not in ({}, [])}
    return values
