"""Finds the programs that tests drive, and installs Debian's packages where that is possible.

    python tools/test_programs.py       prints where they are

Nothing is downloaded but the distribution's own packages.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class TestProgram(NamedTuple):
    """A program, where it may be, and the package that has it."""

    names: tuple[str, ...]
    places: tuple[str, ...]
    variable: str
    package: str
    purpose: str

    def find(self) -> str | None:
        """Its path; None if it is not installed."""
        if named := os.environ.get(self.variable):
            return named
        on_path = (path for name in self.names if (path := shutil.which(name)))
        elsewhere = (
            str(path)
            for place in self.places
            for path in sorted(Path("/").glob(place.removeprefix("/")), reverse=True)
        )
        return next(on_path, None) or next(elsewhere, None)

    @property
    def how_to_install(self) -> str:
        return (
            f"{self.purpose} need {self.names[0]}. Install it, on Debian and Ubuntu with `sudo "
            f"apt-get install {self.package}`, or name it with {self.variable}=/path/to/it"
        )


CHROMIUM = TestProgram(
    ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome"),
    (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
    ),
    "ACCORD_CHROMIUM",
    "chromium",
    "The tests of the page",
)
# Debian does not put the server's programs on the path.
POSTGRES = TestProgram(
    ("postgres",),
    ("/usr/lib/postgresql/*/bin/postgres", "/opt/homebrew/opt/postgresql*/bin/postgres"),
    "ACCORD_POSTGRES",
    "postgresql",
    "The tests of logs in PostgreSQL",
)
# For root alone it is on the path.
NGINX = TestProgram(
    ("nginx",),
    ("/usr/sbin/nginx", "/opt/homebrew/bin/nginx"),
    "ACCORD_NGINX",
    "nginx",
    "The tests of several servers behind a proxy",
)
PROGRAMS = (CHROMIUM, POSTGRES, NGINX)


def install(package: str) -> None:
    """Install a package of Debian, if we may."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    print(f"Installing Debian's {package} for the tests …", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    words = ["apt-get", "install", "--yes", "--no-install-recommends", "-qq", package]
    if subprocess.run(words, env=env, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        subprocess.run(["apt-get", "update", "-qq"], env=env, check=False)
        subprocess.run(words, env=env, stdout=subprocess.DEVNULL, check=False)


def main() -> int:
    """With CI set, a missing program is a failure; else its tests say that they were skipped."""
    missing = False
    for program in PROGRAMS:
        if program.find() is None:
            install(program.package)
        path = program.find()
        missing = missing or path is None
        print(path or program.how_to_install)
    return 1 if missing and os.environ.get("CI") else 0


if __name__ == "__main__":
    sys.exit(main())
