"""Installs the hosts that the locks in `tests/hosts/npm` name into a cache outside the tree.

    python -m tests.helpers.hosts.installation [claude,codex,…]

npm checks every file against its hash in the lock. A host is usable after it has printed the pinned
version; only then does its directory get its final name, which has the lock's digest in it.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from tests.helpers.git.npm_programs import NODE_DIR, NPM
from tests.helpers.hosts.host import Host
from tests.helpers.hosts.platform_names import npm_platform
from tests.helpers.hosts.table import HOSTS, chosen_hosts

LOCKS = Path(__file__).resolve().parents[2] / "hosts" / "npm"
INSTALL_TIMEOUT_S = 900.0
VERSION_TIMEOUT_S = 120.0
PROGRESS_INTERVAL_S = 5.0
POLL_INTERVAL_S = 0.1
UNUSED_DAYS = 30
# Is written last; its time says when the host was used last.
COMPLETE = ".complete"


class HostNotInstalledError(RuntimeError):
    """A host could not be installed; the text says which and why."""


def cache_directory() -> Path:
    """Where installed hosts are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "accord" / "test-hosts"


def pinned_version(host: Host) -> str:
    """The version that the host's `package.json` names."""
    package = json.loads((LOCKS / host.name / "package.json").read_text("utf-8"))
    (version,) = {
        **package.get("dependencies", {}),
        **package.get("optionalDependencies", {}),
    }.values()
    return str(version)


def installed_directory(host: Host) -> Path:
    """The directory of a host, whether it is there or not."""
    lock = (LOCKS / host.name / "package-lock.json").read_bytes()
    digest = hashlib.sha256(lock + npm_platform().encode()).hexdigest()[:16]
    return cache_directory() / f"{host.name}-{pinned_version(host)}-{digest}"


def ensure_installed(host: Host) -> tuple[str, ...]:
    """The command that starts the host, after installing it where necessary."""
    directory = installed_directory(host)
    with exclusive(directory.parent):
        if not (directory / COMPLETE).exists():
            install(host, directory)
            remove_unused(host, directory)
        (directory / COMPLETE).touch()
    return host.program(directory)


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """One installation at a time for all processes of this user."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def install(host: Host, directory: Path) -> None:
    """Install into a temporary directory, check, and rename it."""
    started_at = time.monotonic()
    title = f"{host.title} {pinned_version(host)}"
    report(f"Installing {title} into {directory} (about {host.installed_mb} MB) …")
    shutil.rmtree(directory, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"installing-{host.name}-", dir=directory.parent))
    try:
        run_npm(host, made)
        check_version(host, made)
        (made / COMPLETE).touch()
        made.rename(directory)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    seconds = time.monotonic() - started_at
    report(f"Installed {title}: {size_mb(directory)} MB in {seconds:.1f} s.")


def run_npm(host: Host, directory: Path) -> None:
    """Install exactly what the lock names, and report how far it is."""
    for file in ("package.json", "package-lock.json"):
        shutil.copy(LOCKS / host.name / file, directory / file)
    shutil.copy(LOCKS / ".npmrc", directory / ".npmrc")
    env = {**os.environ, "PATH": f"{NODE_DIR}{os.pathsep}{os.environ['PATH']}"}
    flags = ["--ignore-scripts", "--prefer-offline", "--no-progress"]
    output = directory / "npm.log"
    with output.open("wb") as log:
        npm = subprocess.Popen(
            [str(NODE_DIR / "node"), str(NPM), "ci", *flags],
            cwd=directory,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        wait_for_npm(npm, host, directory)
    finally:
        npm.kill()
        npm.wait()
    if npm.returncode != 0:
        fail(host, f"npm exited with {npm.returncode}:\n{output.read_text('utf-8', 'replace')}")


def wait_for_npm(npm: "subprocess.Popen[bytes]", host: Host, directory: Path) -> None:
    """Wait for the end, with a line now and then; too long is an error."""
    started_at = reported_at = time.monotonic()
    while npm.poll() is None:
        now = time.monotonic()
        if now - started_at > INSTALL_TIMEOUT_S:
            fail(host, f"npm did not finish within {INSTALL_TIMEOUT_S:.0f} s")
        if now - reported_at > PROGRESS_INTERVAL_S:
            report(f"  {host.title}: {size_mb(directory)} of about {host.installed_mb} MB")
            reported_at = now
        time.sleep(POLL_INTERVAL_S)


def check_version(host: Host, directory: Path) -> None:
    """The program must print the pinned version; npm skips what is not there for a platform."""
    command = host.program(directory)
    env = {"HOME": str(directory / "home"), "PATH": os.environ["PATH"], "TERM": "dumb"}
    (directory / "home").mkdir()
    try:
        done = subprocess.run(
            [*command, "--version"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        fail(host, f"its program does not start on {npm_platform()}: {error}")
    if done.returncode != 0 or pinned_version(host) not in done.stdout:
        fail(host, f"`--version` exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    shutil.rmtree(directory / "home", ignore_errors=True)


def remove_unused(host: Host, current: Path) -> None:
    """Remove other versions of the host that no test has used for a month."""
    before = time.time() - UNUSED_DAYS * 86400
    for directory in current.parent.glob(f"{host.name}-*"):
        marker = directory / COMPLETE
        if directory != current and marker.exists() and marker.stat().st_mtime < before:
            report(f"Removing {directory}, unused for {UNUSED_DAYS} days.")
            shutil.rmtree(directory, ignore_errors=True)


def size_mb(directory: Path) -> int:
    """The size of all files below a directory."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(Path(parent) / name).st_size
            except FileNotFoundError:
                continue  # npm has renamed it
    return total // 1_000_000


def fail(host: Host, why: str) -> NoReturn:
    """Say what cannot be tested, and how to go on without it."""
    others = ",".join(name for name in chosen_hosts() if name != host.name) or "none"
    raise HostNotInstalledError(
        f"{host.title} {pinned_version(host)} cannot be installed: {why}\n"
        f"To test without it: make test HOSTS={others}"
    )


def report(line: str) -> None:
    """A line for the person who waits."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Install the hosts that are named, or those of the environment."""
    try:
        for name in chosen_hosts(sys.argv[1] if len(sys.argv) > 1 else None):
            ensure_installed(HOSTS[name])
    except (HostNotInstalledError, RuntimeError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
