"""The table of targets."""

import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import pytest

TARGETS = {
    "envelope": "bytes of a client, as PVP envelopes",
    "decide": "what several people say at random, to a real engine",
    "record": "damaged rows of the log and snapshots, read back and folded",
    "http": "bytes on a new connection, to the whole HTTP side",
    "frames": "bytes on a connection that speaks WebSocket",
    "stdio": "lines of a program and messages of a server, through the relay between them",
    "token": "bytes as a credential, and any claims under a good signature",
    "typed": "settings, scripts, addresses and command lines",
    "commit": "messages, notes and statements, as they come with a clone",
    "heard": "bytes of a server, as a client reads and shows them",
}
HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
FOUND = HERE.parent.parent / ".fuzz"
LARGEST_CORPUS = 64 << 10
USUAL_SECONDS = 60
LONG_SECONDS = 900

Trial = Callable[[bytes], None]


class Target(Protocol):
    """What a target's module has."""

    def seeds(self) -> Iterable[bytes]:
        """Something to begin with."""
        ...

    def trial(self, place: Path) -> Trial:
        """What takes any bytes; an exception is a finding. Files go to `place`."""
        ...

    def plant(self, patch: pytest.MonkeyPatch) -> None:
        """Put a defect in."""
        ...


def load(name: str) -> Target:
    """The module of a target."""
    return cast("Target", import_module(f"tests.fuzz.{name}"))


def kept(name: str) -> Iterator[Path]:
    """The inputs in the repository."""
    return (file for file in sorted((CORPUS / name).glob("*")) if file.is_file())


def seconds() -> int:
    """How long a target is tried: a minute, with ACCORD_LONG a quarter of an hour."""
    usual = LONG_SECONDS if os.environ.get("ACCORD_LONG") else USUAL_SECONDS
    return int(os.environ.get("ACCORD_FUZZ_SECONDS") or usual)
