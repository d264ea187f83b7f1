"""A Python whose clock a test moves, for every process started with it and for git's hooks.

The processes are real and run unchanged. A `.pth` file of the environment loads `CLOCK_MODULE`
before any other code, and that adds to the system's time the seconds that a file says. The file is
read at each call, so the time also passes for a server that is already running.
"""

import sysconfig
import time
import venv
from pathlib import Path

import accord
from tests.helpers.git.hook_timeout import HOOK_IMPORT, extend_hook_timeout

MODULE_NAME = "accord_test_clock"
CLOCK_MODULE = """
import os
import time

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "seconds-ahead")


def _ahead():
    with open(_FILE) as file:
        return int(file.read())


def _moved(real, scale):
    return lambda *clock: real(*clock) + _ahead() * scale


time.time = _moved(time.time, 1)
time.time_ns = _moved(time.time_ns, 10**9)
# The server's clock: it includes the time asleep. Timeouts of sockets use other ones.
time.clock_gettime_ns = _moved(time.clock_gettime_ns, 10**9)
time.monotonic_ns = _moved(time.monotonic_ns, 10**9)
"""


class MovedClock:
    """An environment of Python in a directory, with a clock of its own."""

    def __init__(self, directory: Path) -> None:
        venv.create(directory, symlinks=True, with_pip=False)
        self.python = str(directory / "bin" / "python")
        (packages,) = directory.glob("lib/python*/site-packages")
        self._folder = packages
        paths = [
            str(Path(accord.__file__).parents[1]),
            *_package_folders(),
            f"import {MODULE_NAME}",
        ]
        self.hours_ahead = 0.0
        self.move(0)
        (packages / f"{MODULE_NAME}.py").write_text(CLOCK_MODULE, "utf-8")
        (packages / "moved.pth").write_text("\n".join(paths) + "\n", "utf-8")

    def move(self, hours: float) -> None:
        """Let this time pass, for running processes too."""
        self.hours_ahead += hours
        new = self._folder / "seconds-ahead.new"
        new.write_text(str(int(self.hours_ahead * 3600)), "ascii")
        new.replace(self._folder / "seconds-ahead")

    def now(self) -> int:
        """Seconds since 1970."""
        return int(time.time() + self.hours_ahead * 3600)

    def move_hooks(self, hooks: Path) -> None:
        """Give installed hooks this clock, and a longer timeout, as the machine may be busy.

        Hooks run without `site`, so they load no `.pth` file.
        """
        load = f'sys.path.append("{self._folder}"); import {MODULE_NAME}; sys.path.pop(); '
        for file in hooks.iterdir():
            text = file.read_text("utf-8")
            file.write_text(text.replace(HOOK_IMPORT, load + HOOK_IMPORT), "utf-8")
        extend_hook_timeout(hooks)


def _package_folders() -> list[str]:
    return sorted({sysconfig.get_path(name) for name in ("purelib", "platlib")})
