"""What people write: a settings file, a script, an address, a command line."""

import contextlib
import io
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accord.agents import script
from accord.cli import durations, main
from accord.cli.server_url import check_url, unreachable_advice
from accord.core.kernel.refusal import Refused
from accord.settings.client import Settings, SettingsError, is_local
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.targets import FuzzInput

SETTINGS = b'url = "http://127.0.0.1:7420"\nsession = "ses_1"\n'
SCRIPT = b"""[[reply]]
when = "x"
[[reply.steps]]
propose = "shell"
arguments = { argv = ["ls"] }
granted = [{ say = "It printed {output}" }]
"""
JSON = b'{"reply": [{"when": "x", "steps": [{"say": "y"}]}]}'
COMMAND_LINES = (
    "session create --name First --approve shell_execute --quorum any:1",
    "session log ses_1 --at 3 --json",
    "token issue --id alice --type human --roles admin,driver --ttl 12h",
    "gates --session ses_1",
    "approve g1 --comment yes",
    "serve --port 0 --auth open --rate-limit off",
    "verify --json",
    "doctor",
    "help session",
)
BAD_INPUT = 2
# Imported here, so that the fuzzer sees into them.
MODULES = {name: main.load_command(name) for name in main.COMMANDS}
DEEP_NESTING = 2000


def seeds() -> Iterator[bytes]:
    """One of each."""
    yield b"s" + SETTINGS
    yield b"t" + SCRIPT
    yield b"j" + JSON
    for way in (b"s", b"t"):
        yield way + b"url = " + b"[" * DEEP_NESTING + b"]" * DEEP_NESTING
    yield b"a" + b"http://127.0.0.1:7420"
    yield b"a" + b"wss://[::1]:1/x"
    yield b"d" + b"12h"
    for line in COMMAND_LINES:
        yield b"c" + "\0".join(line.split()).encode()


def make_runner(place: Path) -> FuzzInput:
    """By the first letter."""
    file = place / "file"

    def read(data: bytes) -> None:
        RUNNER_OF_PREFIX.get(data[:1], check_command_line)(file, data[1:])

    return read


def check_settings(file: Path, data: bytes) -> None:
    """A file that came with a clone."""
    file.write_bytes(data)
    try:
        said = Settings.load({"ACCORD_TOKEN": "secret"}, file)
    except SettingsError as no:
        mark_reached(str(no)[-30:])
        return
    assert said.token is None or is_local(said.url or ""), "a file sends the token elsewhere"


def check_script_toml(file: Path, data: bytes) -> None:
    """A script in TOML."""
    check_script(file.with_suffix(".toml"), data)


def check_script_json(file: Path, data: bytes) -> None:
    """A script in JSON."""
    check_script(file.with_suffix(".json"), data)


def check_script(file: Path, data: bytes) -> None:
    """A script, or why it is none."""
    file.write_bytes(data)
    try:
        script.load_script(file).steps_for_prompt("x")
    except script.ScriptError as no:
        mark_reached(str(no)[-30:])


def check_address(file: Path, data: bytes) -> None:
    """An address, or why it is none."""
    with contextlib.suppress(Refused):
        unreachable_advice(check_url(data.decode("utf-8", "replace")))


def check_duration(file: Path, data: bytes) -> None:
    """How long, or an example."""
    with contextlib.suppress(ValueError):
        assert durations.parse_duration(data.decode("utf-8", "replace")) >= 0


def check_command_line(file: Path, data: bytes) -> None:
    """A command line is read, explained, or refused with a sentence and 2."""
    typed = data.decode("utf-8", "surrogateescape").split("\0")
    if typed[0] not in main.COMMANDS:
        return
    said, wrong = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
            args = main.build_parser(typed[0], MODULES[typed[0]]).parse_words(typed[1:])
    except SystemExit as end:
        code = end.code
    else:
        assert isinstance(args, Namespace)
        return
    assert code in {0, BAD_INPUT}
    assert said.getvalue() or wrong.getvalue()
    mark_reached(typed[0], wrong.getvalue()[-30:])


RUNNER_OF_PREFIX: dict[bytes, Callable[[Path, bytes], None]] = {
    b"s": check_settings,
    b"t": check_script_toml,
    b"j": check_script_json,
    b"a": check_address,
    b"d": check_duration,
    b"c": check_command_line,
}


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """A file may send the token anywhere."""
    patch.setattr("accord.settings.client.is_local", lambda url: True)
