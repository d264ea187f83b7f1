"""Server settings: one table; flags override the environment, which overrides the file."""

from accord.settings.server.loader import (
    CONFIG_FILE,
    CONFIG_VARIABLE,
    LoadedConfig,
    load_config,
    parse_limit,
)
from accord.settings.server.schema import (
    ALL_SETTINGS,
    LIMIT_SETTINGS,
    SETTINGS,
    ServerConfig,
    Setting,
)

__all__ = [
    "ALL_SETTINGS",
    "CONFIG_FILE",
    "CONFIG_VARIABLE",
    "LIMIT_SETTINGS",
    "SETTINGS",
    "LoadedConfig",
    "ServerConfig",
    "Setting",
    "load_config",
    "parse_limit",
]
