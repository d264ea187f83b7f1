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
from accord.show import transcript
from accord.show.timeline import timeline
from tests.core.dialects.envelopes import PAYLOADS, wire
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.targets import FuzzInput

# What holds emoji together is no harm.
EMOJI_JOINER = re.compile("(?<=[^\x00-\x7f])\u200d(?=[^\x00-\x7f])")


def seeds() -> Iterator[bytes]:
    """An envelope of each type, and a conversation of all."""
    yield b"\n".join(wire(name, seq=1) for name in sorted(PAYLOADS))
    for name in sorted(PAYLOADS):
        yield wire(name, seq=1)


def make_runner(place: Path) -> FuzzInput:
    """Read it, and show what was read."""
    return check_lines


def check_lines(data: bytes) -> None:
    """Each line is an envelope."""
    told = [said for line in data.split(b"\n") if (said := read_line(line)) is not None]
    turns = timeline.turns_of(told)
    for line in transcript.render_transcript(turns, whole=True):
        words = EMOJI_JOINER.sub("", line.replace("\n", ""))
        assert words.isprintable(), f"not for a terminal: {line!r}"


def read_line(line: bytes) -> dict[str, Any] | None:
    """What a proper server could have sent."""
    head = envelope.parse_head(line)
    typed = envelope.decode_envelope(head) if head else None
    mark_reached(typed.type if typed else None)
    if typed is None:
        return None
    pvp.encode(typed.body)
    try:
        said: dict[str, Any] = json.loads(pvp.encode_relayed(pvp.decode(line)))
    except Refused:
        return None
    return said


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """Words are shown as they come."""
    patch.setattr(transcript, "escape_controls", lambda text: text)
