"""The table of fuzz targets."""

import os
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

import pytest

TARGETS = {
    "envelope": "bytes from a client, decoded as PVP envelopes",
    "room_session": "random messages of several members to a real engine",
    "stored_records": "damaged rows and snapshots, decoded and folded",
    "http": "bytes on a new connection to the whole HTTP side",
    "websocket_frames": "bytes on an upgraded WebSocket connection",
    "stdio": "lines of a program and messages of a server, through the relay between them",
    "token": "bytes as a credential, and arbitrary claims under a valid signature",
    "user_input": "settings, scripts, addresses and command lines",
    "git_provenance": "commit messages, notes and attestations, as they arrive with a clone",
    "server_messages": "bytes from a server, decoded and shown by a client",
    "thread_methods": "arguments of thread methods, called on a real service",
}
FUZZ_DIR = Path(__file__).parent
CORPUS_DIR = FUZZ_DIR / "corpus"
FINDINGS_DIR = FUZZ_DIR.parent.parent / ".fuzz"
MAX_CORPUS_BYTES = 64 << 10
LONG = bool(os.environ.get("ACCORD_LONG"))
DEFAULT_SECONDS = 60
LONG_SECONDS = 900

FuzzInput = Callable[[bytes], None]


class Target(Protocol):
    """The functions of a target's module."""

    def seeds(self) -> Iterable[bytes]:
        """Valid and nearly valid inputs to start from; the same ones in every run."""
        ...

    def make_runner(self, directory: Path) -> FuzzInput:
        """The function to fuzz: it takes any bytes, and an exception is a finding.

        It may write files to `directory`.
        """
        ...

    def plant_defect(self, patch: pytest.MonkeyPatch) -> None:
        """Break the code in a way that the target must notice."""
        ...


def load_target(name: str) -> Target:
    return cast("Target", import_module(f"tests.fuzz.{name}"))


def corpus_files(name: str) -> Iterator[Path]:
    return (file for file in sorted((CORPUS_DIR / name).glob("*")) if file.is_file())


def fuzz_seconds() -> int:
    """Time for one target: `ACCORD_FUZZ_SECONDS`, else a minute, or 15 with `ACCORD_LONG`."""
    default = LONG_SECONDS if LONG else DEFAULT_SECONDS
    return int(os.environ.get("ACCORD_FUZZ_SECONDS") or default)
