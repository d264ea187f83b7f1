"""A checkout on a machine that has only Python, git and make."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PYTHON = str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
COMMAND_TIMEOUT_S = 300
# Variables of Accord, of the test run, and of the user's own directories.
REMOVED_PREFIXES = (
    "ACCORD_",
    "PYTHON",
    "COV_",
    "COVERAGE_",
    "PYTEST_",
    "XDG_",
    "GIT_",
    "MAKE",
    "PIPX_",
)
REMOVED_NAMES = ("VIRTUAL_ENV", "MFLAGS")
PREINSTALLED = frozenset({"pip", "setuptools", "accord"})


class CommandRun(NamedTuple):
    """The exit code and output of a command."""

    code: int
    out: str
    err: str


def copy_checkout(folder: Path) -> Path:
    """Copy the files that a clone of the current work tree would have."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        place = folder / name
        if (ROOT / name).is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place)
    return folder


def fresh_environment(home: Path, **env: str) -> dict[str, str]:
    """The environment of a new user; settings for reaching a package index are kept."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(REMOVED_PREFIXES)
        and name not in REMOVED_NAMES
        and name != "UV_CACHE_DIR"
    }
    own_bin = str(Path(sys.executable).parent)
    path = [entry for entry in os.environ["PATH"].split(os.pathsep) if entry != own_bin]
    local = {"HOME": str(home), "PATH": os.pathsep.join(path), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return kept | local | {"NO_COLOR": "1", "COLUMNS": "100"} | env


def single_index_environment(index: str, home: Path) -> dict[str, str]:
    """The same, with access to one package index only."""
    kept = {
        name: value
        for name, value in fresh_environment(home).items()
        if not name.startswith(("PIP_", "UV_")) and not name.lower().endswith("_proxy")
    }
    quiet = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "UV_NO_CONFIG": "1"}
    return kept | quiet | {"PIP_INDEX_URL": index, "UV_PYTHON": PYTHON}


def run(*words: str, cwd: Path, env: dict[str, str]) -> CommandRun:
    """Run a command and wait for it."""
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=env,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    return CommandRun(done.returncode, done.stdout, done.stderr)


def installed_versions(environment: Path) -> dict[str, str]:
    """Names and versions of the packages, except accord and those every environment has."""
    (site,) = environment.glob("lib/python*/site-packages")
    versions = {
        package.name.lower().replace("_", "-"): package.version
        for package in distributions(path=[str(site)])
    }
    return {name: version for name, version in versions.items() if name not in PREINSTALLED}
