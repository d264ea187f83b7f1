"""Which store is the log of a data directory, for commands that work without its server."""

import os
from pathlib import Path

from accord.core.kernel.refusal import Reason, Refused
from accord.data_dir import DATABASE_NAME, store_in_use, store_url_of
from accord.settings.server.loader import CONFIG_FILE, load_config


def local_store_url(home: Path, named: str | None = None) -> str:
    """The named store, else that of the settings, else the file; Refused if that is not the log."""
    store = named or load_config({}, os.environ, home).config.store
    ensure_store_in_use(home, store)
    return store_url_of(home, store)


def ensure_store_in_use(home: Path, store: str | None) -> None:
    """Refuse the file of the data directory, if no store is named and its log is elsewhere."""
    used = "" if store else store_in_use(home)
    if used:
        file = f"sqlite:{home / DATABASE_NAME}"
        raise Refused(
            Reason.WRONG_STATE,
            f"The log of {home} is in {used}, and no store is named: set ACCORD_STORE, or `store` "
            f"in {home / CONFIG_FILE}; to go back to the file in the directory, name {file}",
        )
