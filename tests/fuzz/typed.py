"""What people write: a settings file, a script, an address, a command line."""

import contextlib
import io
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accord.agents import script
from accord.cli import durations, main
from accord.cli.address import advice, checked
from accord.core.kernel.refusal import Refused
from accord.settings import Settings, SettingsError, is_local
from tests.fuzz.reached import reached
from tests.fuzz.targets import Trial

SETTINGS = b'url = "http://127.0.0.1:7420"\nsession = "ses_1"\n'
SCRIPT = b"""[[reply]]
when = "x"
[[reply.steps]]
propose = "shell"
arguments = { argv = ["ls"] }
granted = [{ say = "It printed {output}" }]
"""
JSON = b'{"reply": [{"when": "x", "steps": [{"say": "y"}]}]}'
LINES = (
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
MODULES = {name: main.load(name) for name in main.COMMANDS}
DEEP = 2000


def seeds() -> Iterator[bytes]:
    """One of each."""
    yield b"s" + SETTINGS
    yield b"t" + SCRIPT
    yield b"j" + JSON
    for way in (b"s", b"t"):
        yield way + b"url = " + b"[" * DEEP + b"]" * DEEP
    yield b"a" + b"http://127.0.0.1:7420"
    yield b"a" + b"wss://[::1]:1/x"
    yield b"d" + b"12h"
    for line in LINES:
        yield b"c" + "\0".join(line.split()).encode()


def trial(place: Path) -> Trial:
    """By the first letter."""
    file = place / "file"

    def read(data: bytes) -> None:
        WAYS.get(data[:1], words)(file, data[1:])

    return read


def settings(file: Path, data: bytes) -> None:
    """A file that came with a clone."""
    file.write_bytes(data)
    try:
        said = Settings.load({"ACCORD_TOKEN": "secret"}, file)
    except SettingsError as no:
        reached(str(no)[-30:])
        return
    assert said.token is None or is_local(said.url or ""), "a file sends the token elsewhere"


def scripted(file: Path, data: bytes) -> None:
    """A script in TOML."""
    load(file.with_suffix(".toml"), data)


def scripted_json(file: Path, data: bytes) -> None:
    """A script in JSON."""
    load(file.with_suffix(".json"), data)


def load(file: Path, data: bytes) -> None:
    """A script, or why it is none."""
    file.write_bytes(data)
    try:
        script.load(file).answer("x")
    except script.ScriptError as no:
        reached(str(no)[-30:])


def address(file: Path, data: bytes) -> None:
    """An address, or why it is none."""
    with contextlib.suppress(Refused):
        advice(checked(data.decode("utf-8", "replace")))


def duration(file: Path, data: bytes) -> None:
    """How long, or an example."""
    with contextlib.suppress(ValueError):
        assert durations.seconds(data.decode("utf-8", "replace")) >= 0


def words(file: Path, data: bytes) -> None:
    """A command line is read, explained, or refused with a sentence and 2."""
    typed = data.decode("utf-8", "surrogateescape").split("\0")
    if typed[0] not in main.COMMANDS:
        return
    said, wrong = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
            args = main.parser(typed[0], MODULES[typed[0]]).read(typed[1:])
    except SystemExit as end:
        code = end.code
    else:
        assert isinstance(args, Namespace)
        return
    assert code in {0, BAD_INPUT}
    assert said.getvalue() or wrong.getvalue()
    reached(typed[0], wrong.getvalue()[-30:])


WAYS: dict[bytes, Callable[[Path, bytes], None]] = {
    b"s": settings,
    b"t": scripted,
    b"j": scripted_json,
    b"a": address,
    b"d": duration,
    b"c": words,
}


def plant(patch: pytest.MonkeyPatch) -> None:
    """A file may send the token anywhere."""
    patch.setattr("accord.settings.is_local", lambda url: True)
