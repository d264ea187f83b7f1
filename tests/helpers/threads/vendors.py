"""A vendor's program on disk, and what it saw."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("vendor_program.py")


class Vendor:
    """One program with its behaviour; `path` is what an operator would name."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / "vendor"
        words = shlex.join([sys.executable, str(PROGRAM), str(folder)])
        self.path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        self.path.chmod(0o700)
        self.behaves()

    def behaves(self, *behaviours: dict[str, Any]) -> None:
        """The first behaviour whose `when` is among the arguments applies."""
        (self.folder / "behaviour.json").write_text(json.dumps(behaviours))

    @property
    def starts(self) -> list[dict[str, Any]]:
        file = self.folder / "starts.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def arguments(self) -> list[list[str]]:
        return [start["argv"] for start in self.starts]
