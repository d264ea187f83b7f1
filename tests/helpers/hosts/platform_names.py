"""The names of this machine's platform in npm packages."""

import platform
import sys

SYSTEMS = {"linux": "linux", "darwin": "darwin"}
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def npm_platform() -> str:
    """For example `linux-x64`."""
    system, machine = SYSTEMS.get(sys.platform), MACHINES.get(platform.machine().lower())
    if system is None or machine is None:
        raise RuntimeError(f"no host has a package for {sys.platform} on {platform.machine()}")
    return f"{system}-{machine}"
