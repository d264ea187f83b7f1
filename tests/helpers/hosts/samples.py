"""Recorded input of hooks, with the directories of a test in place of the recorded ones."""

import json
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).with_name("hook_samples")


def sample_names(host: str) -> list[str]:
    """The samples of a host, such as `PreToolUse-shell`."""
    return sorted(file.stem.removeprefix("hook-") for file in (SAMPLES / host).glob("hook-*.json"))


def read_sample(host: str, name: str, home: Path, project: Path) -> dict[str, Any]:
    """One sample."""
    text = (SAMPLES / host / f"hook-{name}.json").read_text("utf-8")
    text = text.replace("PROJECT-SLUG", "slug").replace("PROJECT", str(project))
    content: dict[str, Any] = json.loads(text.replace('"HOME/', f'"{home}/'))
    return content
