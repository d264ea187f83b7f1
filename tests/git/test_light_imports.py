"""What hooks import at every commit costs next to nothing."""

import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
LIGHT = ("build", "check", "confidence", "kinds", "message", "note", "participants", "redaction")
HEAVY = (
    "msgspec",
    "asyncio",
    "dataclasses",
    "inspect",
    "hashlib",
    "ssl",
    "urllib",
    "typing_extensions",
)


def test_reading_and_writing_messages_and_notes_needs_the_standard_library_alone() -> None:
    names = ", ".join(f"accord.core.provenance.{each}" for each in (*LIGHT, "refs", "trailers"))
    script = f"import sys, json; sys.path.insert(0, {str(SOURCE)!r}); import {names}; "
    script += f"print(json.dumps([each for each in {HEAVY!r} if each in sys.modules]))"

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )

    assert json.loads(done.stdout) == []
