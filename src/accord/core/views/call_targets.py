"""What a call names: paths, hosts, remotes and branches, as its arguments say."""

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from accord.core.kernel import command_line

TargetKind = Literal["path", "host", "remote", "branch", "tree"]
PATH_KEYS = ("path", "file_path", "filepath", "filename", "file", "notebook_path")
MAX_TARGETS = 12
MAX_TEXT = 100_000
_URL = re.compile(r"\bhttps?://[^\s\"'<>|;)]{1,2000}", re.ASCII)
_PATCHED_FILE = re.compile(r"^(?:\+\+\+ b/|\*\*\* (?:Add|Update|Delete) File: )(.+)$", re.MULTILINE)
_PUSH = re.compile(r"(?:^|[\s;&|])git push (?:-[\w-]+ )*([\w.-]+)(?: ([\w./+-]+))?", re.ASCII)


class CallTarget(NamedTuple):
    """One thing that a call names."""

    kind: TargetKind
    value: str


def targets_of(arguments: dict[str, Any]) -> list[CallTarget]:
    """What the arguments name, each once, in the order in which people look for it."""
    found = dict.fromkeys((*_paths(arguments), *_tree(arguments), *_in_texts(arguments)))
    return list(found)[:MAX_TARGETS]


def _paths(arguments: dict[str, Any]) -> Iterator[CallTarget]:
    for key in PATH_KEYS:
        if isinstance(value := arguments.get(key), str) and value:
            yield CallTarget("path", value)
    for text in _texts(arguments):
        yield from (CallTarget("path", path.strip()) for path in _PATCHED_FILE.findall(text))


def _tree(arguments: dict[str, Any]) -> Iterator[CallTarget]:
    """A commit call that shows its tree: the yes covers all of it."""
    words, tree = command_line.words_of(arguments), arguments.get("tree")
    if words is not None and list(words[:2]) == ["git", "commit"] and isinstance(tree, str):
        yield CallTarget("tree", tree)


def _in_texts(arguments: dict[str, Any]) -> Iterator[CallTarget]:
    words = command_line.words_of(arguments)
    texts = [" ".join(words)] if words is not None else []
    for text in (*texts, *_texts(arguments)):
        for url in _URL.findall(text):
            if host := _host_of(url):
                yield CallTarget("host", host)
        for remote, branch in _PUSH.findall(text):
            yield CallTarget("remote", remote)
            if branch:
                yield CallTarget("branch", branch)


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _texts(arguments: dict[str, Any]) -> Iterator[str]:
    return (value[:MAX_TEXT] for value in arguments.values() if isinstance(value, str))
