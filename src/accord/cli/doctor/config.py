"""Configuration checks of `accord doctor`."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from accord.cli.doctor import certificates
from accord.cli.doctor.check_result import FAIL, OK, WARN, CheckResult
from accord.settings.client import is_local
from accord.settings.server import ALL_SETTINGS, CONFIG_VARIABLE, LoadedConfig
from accord.settings.server.open_files import RESERVED_FILES, OpenFileLimit, open_file_limit
from accord.show.text import escape_controls

SUBJECT = "settings"
WRITABLE_BY_OTHERS = 0o022
VARIABLE_PATTERN = re.compile(r"ACCORD_[A-Z_]+")
# Variables that Accord reads in addition to the settings.
OTHER_VARIABLES = frozenset(
    {CONFIG_VARIABLE, "ACCORD_HOME", "ACCORD_URL", "ACCORD_TOKEN", "ACCORD_SESSION"}
)
TYPO_CUTOFF = 0.8
CONNECTIONS_KEY = "limits.connections"


def check_config(chosen: LoadedConfig, env: Mapping[str, str]) -> Iterator[CheckResult]:
    """Invalid values, risky permissions, and every value that differs from its default."""
    for problem in chosen.problems:
        yield CheckResult(
            FAIL,
            SUBJECT,
            escape_controls(problem),
            "Correct it; the server does not start until then.",
        )
    yield from check_misspelled(env)
    if chosen.file is not None:
        yield from check_file_permissions(chosen.file)
    host, port = chosen.config.host, chosen.config.port
    if chosen.config.auth == "open" and not is_local(listen_url(host, port)):
        source = source_of(chosen, "auth")
        says = f"auth is open ({source}), but {escape_controls(host)} is reachable from elsewhere"
        yield CheckResult(FAIL, SUBJECT, says, "Set auth to token, or host to 127.0.0.1.")
    if chosen.config.tls is not None:
        yield certificates.check_configured(*chosen.config.tls)
    yield from check_open_files(chosen.config.limits.connections, open_file_limit())
    if not chosen.problems:
        yield CheckResult(
            OK, SUBJECT, "; ".join(non_default_values(chosen)) or "all at their defaults"
        )


def check_open_files(connections: int, files: OpenFileLimit) -> Iterator[CheckResult]:
    """Whether the limit on open files allows for all configured connections."""
    possible = files.connections_within(connections)
    enough = connections + RESERVED_FILES
    cure = f"Raise it (LimitNOFILE={enough} in systemd, ulimit -Hn {enough})"
    if few := files.shortage:
        yield CheckResult(FAIL, "files", few, f"{cure}.")
    elif possible < connections:
        says = f"the system allows {files.hard} open files: enough for {possible} of {connections}"
        cure = f"{cure}, or set {CONNECTIONS_KEY} = {possible}."
        yield CheckResult(WARN, "files", f"{says} connections", cure)


def non_default_values(chosen: LoadedConfig) -> Iterator[str]:
    """Each value that differs from its default, with its source."""
    for setting in ALL_SETTINGS:
        value = chosen.value_of(setting.key)
        if value != setting.default:
            shown = "off" if value is None else escape_controls(str(value))
            yield f"{setting.key} is {shown} ({source_of(chosen, setting.key)})"


def source_of(chosen: LoadedConfig, key: str) -> str:
    """Where the value was set."""
    return escape_controls(chosen.sources.get(key, "default"))


def check_misspelled(env: Mapping[str, str]) -> Iterator[CheckResult]:
    """Environment variables that look like a misspelled setting."""
    known = {setting.variable for setting in ALL_SETTINGS} | OTHER_VARIABLES
    for name in sorted(env):
        if VARIABLE_PATTERN.fullmatch(name) and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=TYPO_CUTOFF)
            if near:
                yield CheckResult(
                    WARN, SUBJECT, f"{name} is not a setting", f"Did you mean {near[0]}?"
                )


def check_file_permissions(file: Path) -> Iterator[CheckResult]:
    """Anyone who can write the file can open the server to everyone."""
    try:
        found = file.stat()
    except OSError:
        return  # reported as a problem of the configuration
    quoted = shlex.quote(str(file))
    if found.st_mode & WRITABLE_BY_OTHERS:
        yield CheckResult(WARN, SUBJECT, f"other users can write {file}", f"chmod go-w {quoted}")
    if found.st_uid not in {0, os.getuid()}:
        yield CheckResult(WARN, SUBJECT, f"{file} belongs to another user", f"chown $USER {quoted}")


def listen_url(host: str, port: int, *, tls: bool = False) -> str:
    """The address at which a server with this configuration listens."""
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
