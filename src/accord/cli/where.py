"""Whom a command talks to: the server, or for reading the files when no server answers."""

from pathlib import Path

from accord.settings import Settings

DEFAULT_URL = "http://127.0.0.1:7420"


def settings(url: str | None = None, data_dir: Path | None = None) -> Settings:
    """What flags, environment and file say; by default the server of this machine."""
    known = Settings.here(url=url, home=data_dir)
    return known if known.url else Settings.here(url=DEFAULT_URL, home=data_dir)
