"""Makes the environment: exactly the files that the locks name, and accord from this checkout.

No resolver takes part. The locks are complete, so nothing is worked out from what packages say they
need, nothing is built from somebody else's source, and each file has a hash to fit. `pip` fetches
`uv`, and `uv` the rest, because it takes seconds for what takes `pip` a minute.

    python3 tools/install.py runtime    what running needs
    python3 tools/install.py dev        what the checks need besides
"""

import argparse
import ast
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "requirements"
SETS = {"runtime": ("runtime", "build"), "dev": ("dev",)}
PINNED = re.compile(r"^([\w.-]+)==([\w.!+]+)", re.MULTILINE)

# pip's settings, and uv's variables with the same meaning.
UV_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
OTHER_NAMES = {
    "UV_DEFAULT_INDEX": ("UV_INDEX_URL",),
    "UV_INDEX": ("UV_EXTRA_INDEX_URL",),
}
COMMA_SEPARATED = frozenset({"UV_FIND_LINKS"})
# From the weakest to the strongest.
PLACES = ("global.", "install.", ":env:.")


def main() -> None:
    """One environment, from nothing or from what is there."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("set", choices=SETS)
    asked.add_argument("--venv", type=Path, default=ROOT / ".venv", metavar="DIR")
    args = asked.parse_args()
    began = time.monotonic()
    Environment(args.venv.absolute()).fill(SETS[args.set])
    print(f"Ready in {time.monotonic() - began:.1f} s.")


class Environment:
    """A folder with a Python, and what is installed for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.pip = [str(self.python), "-m", "pip", "--disable-pip-version-check", "-qq"]
        self.uv = folder / "bin" / "uv"

    def fill(self, names: tuple[str, ...]) -> None:
        """Have exactly what these locks name, and accord."""
        if not runs(self.python):
            # A broken environment is cleared; a folder that never was an environment is left alone.
            clear = ["--clear"] if (self.folder / "pyvenv.cfg").exists() else []
            with timed_step(f"Making the environment in {self.folder.name}"):
                run([sys.executable, "-m", "venv", *clear, str(self.folder)])
        wanted = "uv " + " ".join(version for _, version in pinned("uv"))
        if wanted not in output_of([str(self.uv), "--version"]):
            with timed_step(f"Installing {wanted}"):
                install = ["install", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
                run([*self.pip, *install, "-r", str(lock("uv"))])
        self._sync(names)

    def _sync(self, names: tuple[str, ...]) -> None:
        settings = [*self.pip[:-1], "config", "list"]
        env = {**os.environ, **translated(output_of(settings), os.environ)}
        options = ["--quiet", "--python", str(self.python)]
        count = len({name for each in names for name, _ in pinned(each)})
        files = " and ".join(f"requirements/{each}.txt" for each in names)
        with timed_step(f"Installing the {count} packages of {files}"):
            locks = [str(lock(each)) for each in names]
            run(
                [str(self.uv), "pip", "sync", *options, "--require-hashes", "--no-build", *locks],
                env,
            )
        with timed_step("Installing accord from this checkout"):
            alone = ["--no-deps", "--no-build-isolation", "--offline"]
            run([str(self.uv), "pip", "install", *options, *alone, "--editable", str(ROOT)], env)
        with timed_step("Checking that nothing is missing"):
            run([str(self.uv), "pip", "check", *options], env)


def lock(name: str) -> Path:
    """The file that pins a set."""
    return LOCKS / f"{name}.txt"


def pinned(name: str) -> list[tuple[str, str]]:
    """Names and versions of a lock."""
    return PINNED.findall(lock(name).read_text("utf-8"))


def translated(listed: str, env: Mapping[str, str]) -> dict[str, str]:
    """What `pip config list` prints, for uv; what is set for uv itself is left alone."""
    found: dict[str, str] = {}
    for place in PLACES:
        for key, value in settings(listed):
            name = UV_VARIABLES.get(key.removeprefix(place))
            if key.startswith(place) and name and value.strip():
                found[name] = ("," if name in COMMA_SEPARATED else " ").join(value.split())
    kept = {
        name: value
        for name, value in found.items()
        if not any(each in env for each in (name, *OTHER_NAMES.get(name, ())))
    }
    if "UV_INDEX" in kept:
        # As pip does it: whichever index has the file. Its hash says that it is the right one.
        kept.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    return kept


def settings(listed: str) -> Iterator[tuple[str, str]]:
    """Each setting that is listed as `key='value'`."""
    for line in listed.splitlines():
        key, separator, value = line.partition("=")
        if separator:
            yield key, str(ast.literal_eval(value))


def runs(python: Path) -> bool:
    """Whether it runs: an environment does not outlive the Python that it was made with."""
    return output_of([str(python), "-m", "pip", "--version"]) != ""


def output_of(words: Iterable[str]) -> str:
    """What a program prints; empty if it is missing or fails."""
    try:
        done = subprocess.run(list(words), capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def run(words: list[str], env: Mapping[str, str] | None = None) -> None:
    """Run a command; its output is shown if it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
    except OSError as error:
        fail(words, str(error))
    if done.returncode != 0:
        fail(words, (done.stdout + done.stderr).strip())


def fail(words: list[str], why: str) -> NoReturn:
    """End with the command and its output."""
    print(" failed", flush=True)
    print(f"\n$ {' '.join(words)}\n{why}", file=sys.stderr)
    sys.exit(1)


@contextmanager
def timed_step(what: str) -> Iterator[None]:
    """A line that says what is done, and then how long it took."""
    began = time.monotonic()
    print(f"{what} …", end="", flush=True)
    yield
    print(f" {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
