"""Layout of the data directory."""

from pathlib import Path
from urllib.parse import quote

DATABASE_NAME = "accord.db"
KEYS_DIR_NAME = "keys"
NATS_COPY_DIR_NAME = "nats-copy"


def store_url_of(home: Path, store: str | None = None) -> str:
    """URL of the store; defaults to the database in the data directory.

    A store in NATS keeps its local copy there.
    """
    if store and store.startswith("nats:") and "copy=" not in store:
        return f"{store}{'&' if '?' in store else '?'}copy={quote(str(home / NATS_COPY_DIR_NAME))}"
    return store or f"sqlite:{home / DATABASE_NAME}"
