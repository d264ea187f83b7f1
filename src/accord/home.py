"""The data directory: what lies where in it."""

from pathlib import Path

DATABASE = "accord.db"
KEYS = "keys"


def place(home: Path, store: str | None = None) -> str:
    """The URL of the store, by default the file in the data directory."""
    return store or f"sqlite:{home / DATABASE}"
