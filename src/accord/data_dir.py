"""Layout of the data directory."""

from pathlib import Path

DATABASE_NAME = "accord.db"
KEYS_DIR_NAME = "keys"


def store_url_of(home: Path, store: str | None = None) -> str:
    """URL of the store; defaults to the database in the data directory."""
    return store or f"sqlite:{home / DATABASE_NAME}"
