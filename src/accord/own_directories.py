"""Accord's own directories on this machine, which agents may not touch."""

import os
from collections.abc import Mapping
from pathlib import Path

from accord.settings.client import home_of
from accord.settings.profiles import config_dir


def own_directories(env: Mapping[str, str]) -> tuple[str, ...]:
    """Configuration, data and runtime directories, as they are named and as they really are."""
    named = [Path(config_dir(env)), home_of(env)]
    if runtime := env.get("XDG_RUNTIME_DIR"):
        named.append(Path(runtime) / "accord")
    paths = {str(each) for path in named for each in (path.absolute(), path.resolve())}
    return tuple(sorted(paths))


def home_directory(env: Mapping[str, str]) -> str:
    """What a shell puts in place of `~`."""
    return env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - text in, text out
