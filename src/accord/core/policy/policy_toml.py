"""`.accord/policy.toml`: how calls are classed, and what counts as a read."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from accord.core.policy import paths
from accord.core.room.approval.call_patterns import (
    command_pattern_problems,
    path_matches,
    words_match,
)
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk

POLICY_FILE = ".accord/policy.toml"
MAX_POLICY_BYTES = 65_536
VERSION = 1

Text = Annotated[str, Meta(min_length=1, max_length=512)]
Texts = Annotated[tuple[Text, ...], Meta(min_length=1, max_length=256)]


class PolicyError(Exception):
    """The file is not a policy; `line` is where, 0 if it is about the whole."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        self.line = line
        self.problem = problem


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the calls that a rule matches are, and why."""

    category: Category
    risk: Risk = Risk.MEDIUM
    reason: Annotated[str, Meta(max_length=256)] = ""


class CommandRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Commands by their words: `*` is one word that is no option, `**` any words at the end."""

    run: Texts

    def matching(self, words: Sequence[str]) -> str | None:
        """The first pattern that matches these words."""
        return next((each for each in self.run if words_match(each.split(), words)), None)


class PathRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files that are written, by patterns relative to the worktree."""

    write: Texts

    def matching(self, path: str) -> str | None:
        """The first pattern that matches this path."""
        return next((each for each in self.write if path_matches(path, each)), None)


class ToolRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Tools of an MCP server, or of the host with an empty server."""

    tools: Texts
    server: Annotated[str, Meta(max_length=128)] = ""


class HostRule(Rule, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Addresses that are fetched, by host name; `*.example.com` includes every name below."""

    hosts: Texts


class Reads(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`outside`: paths that may be read beyond the worktree. `secret`: files that are secrets."""

    outside: tuple[Text, ...] = ()
    secret: tuple[Text, ...] = ()


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy; `signed` is False for the absent one, under which all but reads is gated."""

    version: Literal[1] = 1
    reads: Reads = Reads()
    command: tuple[CommandRule, ...] = ()
    path: tuple[PathRule, ...] = ()
    fetch: tuple[HostRule, ...] = ()
    tool: tuple[ToolRule, ...] = ()
    environment: tuple[Text, ...] = ()
    signed: bool = True


NO_POLICY = Policy(signed=False)


def digest_of(text: str) -> str:
    """What identifies a policy: SHA-256 of its UTF-8 bytes."""
    return sha256(text.encode()).hexdigest()


def parse_policy(text: str) -> Policy:
    """The policy that a file describes; raises PolicyError with the line."""
    if len(text.encode(errors="replace")) > MAX_POLICY_BYTES:
        raise PolicyError(0, f"the file is larger than {MAX_POLICY_BYTES} bytes")
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PolicyError(*_toml_error(str(error))) from None
    if "signed" in content:
        raise PolicyError(_line_of(text, "signed"), "`signed` is not a setting")
    if "version" not in content:
        raise PolicyError(0, f"the file has to say `version = {VERSION}`")
    try:
        policy = msgspec.convert(content, Policy)
    except msgspec.ValidationError as error:
        raise PolicyError(*_schema_error(text, str(error))) from None
    for line, problem in _rule_problems(text, policy):
        raise PolicyError(line, problem)
    return policy


def _toml_error(message: str) -> tuple[int, str]:
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if found is None:
        return 0, message
    return int(found[1]), f"{message[: found.start()].strip()} (column {found[2]})"


def _schema_error(text: str, message: str) -> tuple[int, str]:
    """The line of the table and key that a message such as `… - at `$.command[2].risk`` names."""
    problem, _, where = message.partition(" - at `$")
    found = re.match(r"\.(\w+)(?:\[(\d+)\])?(?:\.(\w+))?", where)
    if found is None:
        unknown = re.search(r"unknown field `(\w+)`", problem)
        return _line_of(text, unknown[1]) if unknown else 0, problem
    table, number, key = found.groups()
    unknown = re.search(r"unknown field `(\w+)`", problem)
    return _line_of(text, table, int(number or 0), unknown[1] if unknown else key), problem


def _line_of(text: str, table: str, number: int = 0, key: str | None = None) -> int:
    """The line of the n-th table of this name, and of a key in it."""
    lines = text.splitlines()
    start = re.compile(rf"\s*(\[\[?\s*{re.escape(table)}\s*\]?\]|{re.escape(table)}\s*=)")
    heads = [at for at, line in enumerate(lines, 1) if start.match(line)]
    if not heads:
        return 0
    head = heads[min(number, len(heads) - 1)]
    if key is None:
        return head
    for at, line in enumerate(lines[head:], head + 1):
        if re.match(rf"\s*{re.escape(key)}\s*=", line):
            return at
        if line.lstrip().startswith("["):
            break
    return head


def _rule_problems(text: str, policy: Policy) -> Iterator[tuple[int, str]]:
    tables: Mapping[str, Sequence[Rule]] = {
        "command": policy.command,
        "path": policy.path,
        "fetch": policy.fetch,
        "tool": policy.tool,
    }
    for table, rules in tables.items():
        for number, rule in enumerate(rules):
            line = _line_of(text, table, number, "category")
            if rule.category is Category.ALL:
                yield line, "`all` is not a category of a call"
            if rule.category is Category.FILE_READ and rule.risk is not Risk.LOW:
                yield line, 'a read has `risk = "low"`'
            if rule.category is Category.FILE_READ and table == "path":
                yield line, "a file that is written is not read"
    for number, rule in enumerate(policy.command):
        line = _line_of(text, "command", number, "run")
        for pattern in rule.run:
            yield from ((line, problem) for problem in command_pattern_problems(pattern))
    for path in policy.reads.outside:
        if not path.startswith(("/", "~/")) or paths.normalize(path, "/home") in ("/", "/home"):
            line = _line_of(text, "reads", 0, "outside")
            yield line, f"{path}: name a directory from `/` or `~/`, and not the root of either"


def policy_fields(policy: Policy) -> dict[str, Any]:
    """The policy as JSON-compatible values."""
    fields: dict[str, Any] = msgspec.to_builtins(policy)
    return fields
