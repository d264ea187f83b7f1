"""The installer of hosts, with a small package of npm in place of a host."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers.git.npm_programs import LOCK_DIR, NODE_DIR
from tests.helpers.hosts import installation
from tests.helpers.hosts.host import Answer, Host
from tests.helpers.hosts.installation import HostNotInstalledError, ensure_installed
from tests.helpers.hosts.table import DEFAULT, HOSTS, chosen_hosts

pytestmark = [pytest.mark.network, pytest.mark.timeout(300)]

PACKAGE = "husky"
PRINT_VERSION = "console.log(require('./node_modules/husky/package.json').version)\n"


def fake_program(directory: Path) -> tuple[str, ...]:
    """A program that prints the version of the package."""
    script = directory / "version.js"
    script.write_text(PRINT_VERSION)
    return (str(NODE_DIR / "node"), str(script))


SMALL_HOST = Host(
    name="small",
    title="Small Host",
    installed_mb=1,
    program=fake_program,
    files=lambda _: {},
    environment=lambda _: {},
    turn_arguments=lambda _prompt, _resume: [],
    read_answer=lambda _: Answer(),
)


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock of the small host; the cache is empty."""
    pinned = json.loads((LOCK_DIR / "package-lock.json").read_text())
    entry = pinned["packages"][f"node_modules/{PACKAGE}"]
    dependencies = {PACKAGE: entry["version"]}
    directory = tmp_path / "locks" / SMALL_HOST.name
    directory.mkdir(parents=True)
    (tmp_path / "locks" / ".npmrc").write_text((LOCK_DIR / ".npmrc").read_text())
    root = {"name": "small", "dependencies": dependencies}
    (directory / "package.json").write_text(json.dumps({**root, "private": True}))
    packages = {"": root, f"node_modules/{PACKAGE}": entry}
    text = json.dumps({"name": "small", "lockfileVersion": 3, "packages": packages})
    (directory / "package-lock.json").write_text(text)
    monkeypatch.setattr(installation, "LOCKS", tmp_path / "locks")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return directory / "package-lock.json"


def test_a_host_is_installed_once_and_then_found(
    lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ensure_installed(SMALL_HOST)
    first = capsys.readouterr().err
    assert ensure_installed(SMALL_HOST) == command

    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    version = installation.pinned_version(SMALL_HOST)
    assert done.stdout.strip() == version
    assert f"Installing Small Host {version}" in first
    assert "MB in" in first
    assert capsys.readouterr().err == ""


def test_a_file_that_does_not_fit_its_hash_is_refused_and_nothing_stays(lock: Path) -> None:
    pinned = json.loads(lock.read_text())
    pinned["packages"][f"node_modules/{PACKAGE}"]["integrity"] = "sha512-" + "A" * 86 + "=="
    lock.write_text(json.dumps(pinned))

    with pytest.raises(HostNotInstalledError, match="EINTEGRITY") as caught:
        ensure_installed(SMALL_HOST)

    assert "make test HOSTS=" in str(caught.value)
    assert [each.name for each in installation.cache_directory().iterdir()] == ["lock"]


def test_a_host_without_a_program_for_this_platform_is_refused(lock: Path) -> None:
    absent = Host(**{**vars(SMALL_HOST), "program": lambda directory: (str(directory / "no"),)})

    with pytest.raises(HostNotInstalledError, match="does not start"):
        ensure_installed(absent)


def test_versions_that_are_not_used_any_more_are_removed(lock: Path) -> None:
    cache = installation.cache_directory()
    for name, days in (("small-1.0.0-aaaa", 40), ("small-1.1.0-bbbb", 2)):
        marker = cache / name / installation.COMPLETE
        marker.parent.mkdir(parents=True)
        marker.touch()
        used_at = time.time() - days * 86400
        os.utime(marker, (used_at, used_at))

    ensure_installed(SMALL_HOST)

    left = sorted(each.name for each in cache.iterdir())
    current = installation.installed_directory(SMALL_HOST).name
    assert left == sorted(["lock", "small-1.1.0-bbbb", current])


def test_the_environment_chooses_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCORD_LONG", raising=False)
    monkeypatch.setenv("TEST_HOSTS", "")
    assert chosen_hosts() == DEFAULT
    monkeypatch.setenv("ACCORD_LONG", "1")
    assert chosen_hosts() == tuple(HOSTS)
    monkeypatch.setenv("TEST_HOSTS", "none")
    assert chosen_hosts() == ()
    monkeypatch.setenv("TEST_HOSTS", "gemini,claude")
    assert chosen_hosts() == ("claude", "gemini")
    with pytest.raises(ValueError, match="no host is called cursor"):
        chosen_hosts("cursor")


@pytest.mark.parametrize("name", HOSTS)
def test_a_lock_has_hashes_and_no_addresses(name: str) -> None:
    packages = json.loads((installation.LOCKS / name / "package-lock.json").read_text())["packages"]
    installed = {path: entry for path, entry in packages.items() if path}

    assert installed
    assert all(entry["integrity"].startswith("sha512-") for entry in installed.values())
    assert not any("resolved" in entry for entry in installed.values())
