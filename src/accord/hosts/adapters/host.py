"""What Accord knows about a host: its files, what goes into them, and what no hook can hold.

All of it goes into the user's own settings, never into a repository: the commands name paths of
this machine, a project's settings could be changed by the agent that works there, and two of the
hosts ignore a project's hooks unless it is trusted. The hook itself is silent outside its
repository.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from accord.hosts.configuration.entry import Entry
from accord.hosts.configuration.json_entries import JsonFile
from accord.hosts.configuration.toml_entries import TomlFile
from accord.hosts.connections import hook_command
from accord.hosts.hook_events import HOOK_EVENTS, HookEvent

MCP_NAME = "accord"
# More than the hook takes for itself before it refuses, and less than people wait for.
GATE_TIMEOUT_S = 60
REPORT_TIMEOUT_S = 20

FileFormat = JsonFile | TomlFile
# What holds for every host with hooks.
STARTED_ELSEWHERE = (
    "Started outside this repository, it is gated only for calls that name a path in it."
)


class ConfigFile(NamedTuple):
    """A file of a host, and what Accord adds to it."""

    path: Path
    format: FileFormat
    entries: tuple[Entry, ...]


class HostAdapter(NamedTuple):
    """One host. `version` is the one that the tests run; empty for a host they do not run.

    `limits` says what our hook does not see or cannot stop. `disabled_by` names settings, by file,
    with which the host would not run our hook.
    """

    name: str
    title: str
    programs: tuple[str, ...]
    version: str
    files: Callable[[Mapping[str, str], Path], tuple[ConfigFile, ...]]
    limits: tuple[str, ...]
    disabled_by: Callable[[Mapping[str, str], Path], Iterable[str]]
    next_step: str


def home_of(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home())


def directory(env: Mapping[str, str], variable: str, default: str) -> Path:
    """The directory that a variable names, else the usual one below home."""
    return Path(env[variable]).expanduser() if env.get(variable) else home_of(env) / default


def mcp_words(record: Path, host: str) -> list[str]:
    """The command of our MCP server; `-I` keeps a repository's own modules out of it."""
    words = ["mcp", "--host", host, "--connections", os.fspath(record.parent)]
    return [sys.executable, "-I", "-m", "accord", *words]


def hook_entries(
    host: str,
    record: Path,
    value: Callable[[str, HookEvent], Mapping[str, Any]],
) -> tuple[Entry, ...]:
    """One entry for each event of the host; `value` puts the command into the host's form."""
    return tuple(
        Entry(
            path=("hooks", event.name),
            value=value(hook_command(record, host, event), event),
            mark=os.fspath(record),
        )
        for event in HOOK_EVENTS[host]
    )


def timeout_of(event: HookEvent) -> int:
    """How many seconds the host waits for our hook."""
    return GATE_TIMEOUT_S if event.is_gate else REPORT_TIMEOUT_S


def settings_in(files: Sequence[tuple[Path, FileFormat]]) -> Iterator[tuple[Path, Any]]:
    """The content of those files that are there and can be read."""
    for path, file_format in files:
        try:
            yield path, file_format.values(path.read_text("utf-8"))
        except (OSError, ValueError):
            continue


def value_at(values: Any, *names: str) -> Any:
    """The value at this path; None if there is none."""
    for name in names:
        values = values.get(name) if isinstance(values, dict) else None
    return values
