"""How a server is set up: one table; a flag beats the environment, that beats the file."""

from accord.config.choose import CONFIG, FILE, Chosen, choose, limit_of
from accord.config.table import ALL, LIMIT_SETTINGS, SETTINGS, Config, Setting

__all__ = [
    "ALL",
    "CONFIG",
    "FILE",
    "LIMIT_SETTINGS",
    "SETTINGS",
    "Chosen",
    "Config",
    "Setting",
    "choose",
    "limit_of",
]
