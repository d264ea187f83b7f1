"""Bytes of a server: a client reads them or passes by, and what it shows steers no terminal."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accord.client import envelope
from accord.core.dialects import pvp
from accord.core.kernel.refusal import Refused
from accord.show import prose, timeline
from tests.core.dialects.wire import PAYLOADS, wire
from tests.fuzz.reached import reached
from tests.fuzz.targets import Trial

# What holds emoji together is no harm.
JOINED = re.compile("(?<=[^\x00-\x7f])\u200d(?=[^\x00-\x7f])")


def seeds() -> Iterator[bytes]:
    """An envelope of each type, and a conversation of all."""
    yield b"\n".join(wire(name, seq=1) for name in sorted(PAYLOADS))
    for name in sorted(PAYLOADS):
        yield wire(name, seq=1)


def trial(place: Path) -> Trial:
    """Read it, and show what was read."""
    return listen


def listen(data: bytes) -> None:
    """Each line is an envelope."""
    told = [said for line in data.split(b"\n") if (said := read(line)) is not None]
    turns = timeline.turns(told)
    for line in prose.conversation(turns, whole=True):
        words = JOINED.sub("", line.replace("\n", ""))
        assert words.isprintable(), f"not for a terminal: {line!r}"


def read(line: bytes) -> dict[str, Any] | None:
    """What a proper server could have sent."""
    head = envelope.head(line)
    typed = envelope.typed(head) if head else None
    reached(typed.type if typed else None)
    if typed is None:
        return None
    pvp.encode(typed.body)
    try:
        said: dict[str, Any] = json.loads(pvp.relayed(pvp.decode(line)))
    except Refused:
        return None
    return said


def plant(patch: pytest.MonkeyPatch) -> None:
    """Words are shown as they come."""
    patch.setattr(prose, "safe", lambda text: text)
