"""Layout of the data directory.

A directory whose log was moved into PostgreSQL or NATS still has the SQLite file of before. A
server notes the store that it uses, so that no later command takes the old file for the log because
the store was not named.
"""

from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

DATABASE_NAME = "accord.db"
KEYS_DIR_NAME = "keys"
NATS_COPY_DIR_NAME = "nats-copy"
STORE_NAME_FILE = "store-in-use"
SQLITE_PREFIX = "sqlite:"


def store_url_of(home: Path, store: str | None = None) -> str:
    """URL of the store; defaults to the database in the data directory.

    A store in NATS keeps its local copy there.
    """
    if store and store.startswith("nats:") and "copy=" not in store:
        return f"{store}{'&' if '?' in store else '?'}copy={quote(str(home / NATS_COPY_DIR_NAME))}"
    return store or f"sqlite:{home / DATABASE_NAME}"


def public_store_name(url: str) -> str:
    """The URL of a store without user, password and parameters."""
    scheme, _, rest = url.partition("://")
    place = rest.partition("?")[0]
    hosts, slash, path = place.partition("/")
    shown = ",".join(host.rpartition("@")[2] for host in hosts.split(","))
    return f"{scheme}://{shown}{slash}{path}"


def note_store(home: Path, url: str) -> None:
    """Remember the store that a server uses, or that it uses the file of the data directory."""
    path = home / STORE_NAME_FILE
    if url.startswith((SQLITE_PREFIX, "memory:")):
        with suppress(FileNotFoundError):
            path.unlink()
    else:
        path.write_text(public_store_name(url) + "\n", "utf-8")


def store_in_use(home: Path) -> str:
    """The store that the last server noted; empty for the file of the data directory."""
    try:
        return (home / STORE_NAME_FILE).read_text("utf-8").strip()
    except OSError:
        return ""
