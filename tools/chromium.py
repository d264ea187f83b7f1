"""Finds the browser for the tests of the page, and installs Debian's where that is possible.

    python tools/chromium.py        prints its path

`ACCORD_CHROMIUM` names another one. Nothing is downloaded but the distribution's own package.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
HOW_TO = (
    "The tests of the page need Chromium. Install it, on Debian and Ubuntu with "
    "`sudo apt-get install chromium`, or name one with ACCORD_CHROMIUM=/path/to/chromium"
)


def find() -> str | None:
    """The path of a browser that is here; None if there is none."""
    if named := os.environ.get("ACCORD_CHROMIUM"):
        return named
    found = (path for name in NAMES if (path := shutil.which(name)))
    return next(found, None) or next((path for path in PLACES if Path(path).exists()), None)


def install() -> None:
    """Install Debian's package, if we may."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    print("Installing Debian's chromium for the tests of the page …", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    words = ["apt-get", "install", "--yes", "--no-install-recommends", "-qq", "chromium"]
    if subprocess.run(words, env=env, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        subprocess.run(["apt-get", "update", "-qq"], env=env, check=False)
        subprocess.run(words, env=env, stdout=subprocess.DEVNULL, check=False)


def main() -> int:
    if find() is None:
        install()
    path = find()
    print(path or HOW_TO)
    # Without CI the tests say that they were skipped, and why.
    return 1 if path is None and os.environ.get("CI") else 0


if __name__ == "__main__":
    sys.exit(main())
