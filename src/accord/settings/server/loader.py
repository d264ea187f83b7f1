"""Merging flags, environment and file into a configuration, with sources and problems."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from accord.core.kernel.limits import LIMITS, Limits
from accord.settings.client import SettingsError
from accord.settings.server.schema import (
    ALL_SETTINGS,
    LIMIT_SETTINGS,
    LIMITS_SECTION,
    SETTINGS,
    SETTINGS_BY_KEY,
    ServerConfig,
    Setting,
    abbreviate,
)

CONFIG_FILE = "accord.toml"
CONFIG_VARIABLE = "ACCORD_CONFIG"
LIMIT_VARIABLE_PREFIX = "ACCORD_LIMIT_"
MATCH_CUTOFF = 0.6
MAX_CONFIG_BYTES = 1 << 20
# Settings that belong elsewhere, and where.
MISPLACED_KEYS = {
    "token": "put a token into ACCORD_TOKEN, never into a file",
    "data_dir": "set the data directory with --data-dir or ACCORD_HOME",
    "home": "set the data directory with --data-dir or ACCORD_HOME",
    "url": "this is a client setting, for .accord.toml",
    "session": "this is a client setting, for .accord.toml",
}


class LoadedConfig(NamedTuple):
    """A configuration, the source of each value that was set, and all problems."""

    config: ServerConfig
    sources: dict[str, str]
    problems: list[str]
    file: Path | None

    def require_valid(self) -> ServerConfig:
        """The configuration; SettingsError with the first problem."""
        if self.problems:
            more = len(self.problems) - 1
            rest = f" (and {more} more; `accord doctor` lists them)" if more else ""
            raise SettingsError(f"{self.problems[0]}{rest}")
        return self.config

    def value_of(self, key: str) -> Any:
        """The effective value of a setting."""
        section, _, name = key.rpartition(".")
        return getattr(self.config.limits if section else self.config, name)


class ConfigLayer(NamedTuple):
    """One source's values, and how it names a key."""

    values: dict[str, Any]
    source_of: Callable[[str], str]


def load_config(flags: Mapping[str, Any], env: Mapping[str, str], home: Path) -> LoadedConfig:
    """Merge all sources; `flags` are by key, and `config` names the file."""
    problems: list[str] = []
    config_path = flags.get("config") or env.get(CONFIG_VARIABLE)
    file = Path(config_path).expanduser() if config_path else home / CONFIG_FILE
    exists = bool(config_path) or config_exists(file)
    layers = (
        ConfigLayer(dict(read_config_file(file, problems)) if exists else {}, lambda _: str(file)),
        ConfigLayer(
            dict(read_environment(env, problems)), lambda key: SETTINGS_BY_KEY[key].variable
        ),
        ConfigLayer(
            {key: value for key, value in flags.items() if key in SETTINGS_BY_KEY}, flag_of
        ),
    )
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        for key, value in layer.values.items():
            try:
                values[key] = SETTINGS_BY_KEY[key].parse(value)
            except ValueError as error:
                problems.append(f"{layer.source_of(key)}: {key}: {error}")
            else:
                sources[key] = layer.source_of(key)
    # Port 0 means that several servers run, and only one of them can have the bridge's port.
    if values.get("port") == 0:
        values.setdefault("bridge_port", None)
    config = build_config(values)
    return LoadedConfig(
        config, sources, [*problems, *find_conflicts(config)], file if exists else None
    )


def flag_of(key: str) -> str:
    """The setting's name on the command line."""
    setting = SETTINGS_BY_KEY[key]
    return setting.flag if isinstance(setting, Setting) else f"--limit {setting.limit.name}"


def build_config(values: Mapping[str, Any]) -> ServerConfig:
    """The configuration: the given values, and defaults for the rest."""
    limits = {
        name: values[setting.key]
        for name, setting in LIMIT_SETTINGS.items()
        if setting.key in values
    }
    rest = {name: values[name] for name in SETTINGS if name in values}
    return ServerConfig(**rest, limits=Limits(**limits))


def find_conflicts(config: ServerConfig) -> Iterator[str]:
    """Values that are valid alone but not together."""
    limits = config.limits
    if limits.message > limits.frame:
        what = f"{LIMITS_SECTION}.message is {limits.message}, more than {LIMITS_SECTION}.frame"
        yield f"{what}, {limits.frame}; a frame must have room for a message"
    if (config.tls_cert is None) != (config.tls_key is None):
        exists, lacks = ("tls_key", "tls_cert") if config.tls_key else ("tls_cert", "tls_key")
        yield f"{exists} is set and {lacks} is not; TLS needs both, plain HTTP neither"


# Reading


def config_exists(file: Path) -> bool:
    """Whether the file exists.

    One in an unreadable directory counts, so that reading it reports that.
    """
    try:
        return file.is_file()
    except OSError:
        return True


def read_config_file(file: Path, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """Keys and values; a limit's key is prefixed with its section."""
    values = parse_toml(file, problems)
    limits = values.pop(LIMITS_SECTION, {})
    if isinstance(limits, dict):
        values |= {f"{LIMITS_SECTION}.{name}": value for name, value in limits.items()}
    else:
        problems.append(
            f"{file}: {LIMITS_SECTION} must be a table; write [{LIMITS_SECTION}] and its rows below"
        )
    for key, value in values.items():
        if key in SETTINGS_BY_KEY:
            yield key, value
        else:
            problems.append(
                f"{file}: there is no setting {abbreviate(key)}; "
                f"{suggest_name(key, SETTINGS_BY_KEY)}"
            )


def parse_toml(file: Path, problems: list[str]) -> dict[str, Any]:
    """The parsed file; empty, with a problem recorded, if it cannot be read."""
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_CONFIG_BYTES + 1)
        if len(text) > MAX_CONFIG_BYTES:
            problems.append(
                f"{file} is too large for a configuration: over {MAX_CONFIG_BYTES} bytes"
            )
            return {}
        return tomllib.loads(text.decode("utf-8"))
    except OSError as error:
        problems.append(f"{file} cannot be read: {error.strerror}")
        return {}
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        problems.append(f"{file} cannot be read: {error}")
        return {}


def read_environment(env: Mapping[str, str], problems: list[str]) -> Iterator[tuple[str, Any]]:
    """Values of environment variables; empty ones are ignored."""
    known_names = {setting.variable: setting.key for setting in ALL_SETTINGS}
    for name, value in env.items():
        if name in known_names and value:
            yield known_names[name], value
        elif name.startswith(LIMIT_VARIABLE_PREFIX) and name not in known_names:
            limits = [
                setting for setting in known_names if setting.startswith(LIMIT_VARIABLE_PREFIX)
            ]
            problems.append(f"{name}: there is no such limit; {suggest_name(name, limits)}")


def suggest_name(name: str, known_names: Iterable[str]) -> str:
    """The closest known name, or where to look."""
    if name in MISPLACED_KEYS:
        return MISPLACED_KEYS[name]
    if name in LIMITS:
        return f"did you mean {LIMITS_SECTION}.{name}?"
    if matches := get_close_matches(name, list(known_names), n=1, cutoff=MATCH_CUTOFF):
        return f"did you mean {matches[0]}?"
    return "`accord serve --help` lists all settings"


def parse_limit(text: str) -> tuple[str, int]:
    """Parse `NAME=VALUE` into key and value; ValueError says what is allowed."""
    name, equals, value = text.partition("=")
    if name not in LIMITS:
        matches = get_close_matches(name, LIMITS, n=1, cutoff=MATCH_CUTOFF)
        exists = f"did you mean {matches[0]}?" if matches else f"the limits are {', '.join(LIMITS)}"
        raise ValueError(f"there is no limit {abbreviate(name)}; {exists}")
    if not equals:
        raise ValueError(f"{abbreviate(text)} is not valid; write {name}=NUMBER")
    setting = LIMIT_SETTINGS[name]
    return setting.key, setting.parse(value)
