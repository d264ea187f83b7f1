"""What flags, environment and file say together, where each value came from, what is wrong."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from accord.config.table import (
    ALL,
    KEYS,
    LIMIT_SETTINGS,
    SECTION,
    SETTINGS,
    Config,
    Setting,
    shown,
)
from accord.core.kernel.limits import LIMITS, Limits
from accord.settings import SettingsError

FILE = "accord.toml"
CONFIG = "ACCORD_CONFIG"
LIMIT = "ACCORD_LIMIT_"
CUTOFF = 0.6
LARGEST_FILE = 1 << 20
# Names that do not belong here, and where they do.
ELSEWHERE = {
    "token": "put a token into ACCORD_TOKEN, never into a file",
    "data_dir": "the data directory is named by --data-dir or ACCORD_HOME",
    "home": "the data directory is named by --data-dir or ACCORD_HOME",
    "url": "that is for clients, in .accord.toml",
    "session": "that is for clients, in .accord.toml",
}


class Chosen(NamedTuple):
    """A configuration, where each value that was set came from, and what was wrong."""

    config: Config
    sources: dict[str, str]
    wrong: list[str]
    file: Path | None

    def usable(self) -> Config:
        """The configuration; SettingsError with the first thing that is wrong."""
        if self.wrong:
            more = len(self.wrong) - 1
            rest = f" (and {more} more; `accord doctor` lists them)" if more else ""
            raise SettingsError(f"{self.wrong[0]}{rest}")
        return self.config

    def value(self, key: str) -> Any:
        """What holds for a setting."""
        section, _, name = key.rpartition(".")
        return getattr(self.config.limits if section else self.config, name)


class Layer(NamedTuple):
    """What one source says, and how it calls a key."""

    said: dict[str, Any]
    called: Callable[[str], str]


def choose(flags: Mapping[str, Any], env: Mapping[str, str], home: Path) -> Chosen:
    """Flags beat the environment, that beats the file; `flags` are by key, `config` is a file."""
    wrong: list[str] = []
    named = flags.get("config") or env.get(CONFIG)
    file = Path(named).expanduser() if named else home / FILE
    there = bool(named) or lies(file)
    layers = (
        Layer(dict(in_the_file(file, wrong)) if there else {}, lambda _: str(file)),
        Layer(dict(in_the_environment(env, wrong)), lambda key: KEYS[key].variable),
        Layer({key: value for key, value in flags.items() if key in KEYS}, on_the_line),
    )
    said: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for layer in layers:
        for key, value in layer.said.items():
            try:
                said[key] = KEYS[key].read(value)
            except ValueError as no:
                wrong.append(f"{layer.called(key)}: {key}: {no}")
            else:
                sources[key] = layer.called(key)
    made = build(said)
    return Chosen(made, sources, [*wrong, *clashes(made)], file if there else None)


def on_the_line(key: str) -> str:
    """How the command line says it."""
    setting = KEYS[key]
    return setting.flag if isinstance(setting, Setting) else f"--limit {setting.limit.name}"


def build(said: Mapping[str, Any]) -> Config:
    """The configuration with what was said in place of what is usual."""
    limits = {name: said[each.key] for name, each in LIMIT_SETTINGS.items() if each.key in said}
    rest = {name: said[name] for name in SETTINGS if name in said}
    return Config(**rest, limits=Limits(**limits))


def clashes(config: Config) -> Iterator[str]:
    """Values that are good each and make no sense together."""
    limits = config.limits
    if limits.message > limits.frame:
        what = f"{SECTION}.message is {limits.message}, more than {SECTION}.frame"
        yield f"{what}, {limits.frame}; a message comes in a frame"
    if (config.tls_cert is None) != (config.tls_key is None):
        there, lacks = ("tls_key", "tls_cert") if config.tls_key else ("tls_cert", "tls_key")
        yield f"{there} is set and {lacks} is not; TLS needs both, plain HTTP neither"


# Reading


def lies(file: Path) -> bool:
    """Whether a file is there; one that nobody may look for is there and cannot be read."""
    try:
        return file.is_file()
    except OSError:
        return True


def in_the_file(file: Path, wrong: list[str]) -> Iterator[tuple[str, Any]]:
    """Keys and values; a limit's key has its section in front."""
    said = parsed(file, wrong)
    limits = said.pop(SECTION, {})
    if isinstance(limits, dict):
        said |= {f"{SECTION}.{name}": value for name, value in limits.items()}
    else:
        wrong.append(f"{file}: {SECTION} is a table; write [{SECTION}] and its rows below")
    for key, value in said.items():
        if key in KEYS:
            yield key, value
        else:
            wrong.append(f"{file}: there is no setting {shown(key)}; {hint(key, KEYS)}")


def parsed(file: Path, wrong: list[str]) -> dict[str, Any]:
    """What stands in the file; nothing where it cannot be read."""
    try:
        with file.open("rb") as opened:
            text = opened.read(LARGEST_FILE + 1)
        if len(text) > LARGEST_FILE:
            wrong.append(f"{file} is no configuration: it has more than {LARGEST_FILE} bytes")
            return {}
        return tomllib.loads(text.decode("utf-8"))
    except OSError as no:
        wrong.append(f"{file} cannot be read: {no.strerror}")
        return {}
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as no:
        wrong.append(f"{file} cannot be read: {no}")
        return {}


def in_the_environment(env: Mapping[str, str], wrong: list[str]) -> Iterator[tuple[str, Any]]:
    """What variables say; an empty one says nothing."""
    known = {each.variable: each.key for each in ALL}
    for name, value in env.items():
        if name in known and value:
            yield known[name], value
        elif name.startswith(LIMIT) and name not in known:
            limits = [each for each in known if each.startswith(LIMIT)]
            wrong.append(f"{name}: there is no such limit; {hint(name, limits)}")


def hint(word: str, known: Iterable[str]) -> str:
    """The nearest of these, or where to look."""
    if word in ELSEWHERE:
        return ELSEWHERE[word]
    if word in LIMITS:
        return f"did you mean {SECTION}.{word}?"
    if near := get_close_matches(word, list(known), n=1, cutoff=CUTOFF):
        return f"did you mean {near[0]}?"
    return "`accord serve --help` and the reference list what there is"


def limit_of(text: str) -> tuple[str, int]:
    """`NAME=VALUE` as a key and its value; ValueError with what is allowed."""
    name, equals, value = text.partition("=")
    if name not in LIMITS:
        near = get_close_matches(name, LIMITS, n=1, cutoff=CUTOFF)
        there = f"did you mean {near[0]}?" if near else f"there are {', '.join(LIMITS)}"
        raise ValueError(f"there is no limit {shown(name)}; {there}")
    if not equals:
        raise ValueError(f"{shown(text)} will not do; write {name}=NUMBER")
    setting = LIMIT_SETTINGS[name]
    return setting.key, setting.read(value)
