"""The locked versions are installed, even after newer releases appear."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.setup.checkout import (
    PYTHON,
    copy_checkout,
    installed_versions,
    run,
    single_index_environment,
)
from tests.setup.index import (
    Index,
    Pin,
    file_name,
    pins,
    relock,
    run_index,
    uv_path,
    versions_of,
)
from tools import install

NAMES = ("uv", "runtime", "otel", "build", "dev")
pytestmark = pytest.mark.timeout(300)


class FutureCheckout:
    """A checkout whose package index has a newer release of everything."""

    def __init__(self, root: Path, index: Index, home: Path) -> None:
        self.root, self.index, self.env = root, index, single_index_environment(index.url, home)

    def lock(self, name: str) -> Path:
        """The file of a lock."""
        return self.root / "requirements" / f"{name}.txt"

    def pins(self, *names: str) -> list[Pin]:
        """The pins of these locks that apply to this machine."""
        return [pin for name in names for pin in pins(self.lock(name)) if pin.holds]

    def check(self, environment: Path, *names: str) -> None:
        """Assert that exactly the locks were installed, and nothing else was requested."""
        wanted = self.pins(*names)
        assert installed_versions(environment) == versions_of(wanted)
        assert self.index.asked <= {pin.name for pin in wanted}
        assert self.index.sent <= {file_name(pin.name, pin.version) for pin in wanted}


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[FutureCheckout]:
    root = copy_checkout(tmp_path / "checkout")
    locks = {name: root / "requirements" / f"{name}.txt" for name in NAMES}
    with run_index(locks.values(), real=[locks["build"]]) as index:
        for lock in locks.values():
            relock(lock, index)
        yield FutureCheckout(root, index, tmp_path / "home")


def test_setup_installs_exactly_the_lock(checkout: FutureCheckout) -> None:
    ran = run("make", "setup", f"PYTHON={PYTHON}", cwd=checkout.root, env=checkout.env)

    assert (ran.code, ran.err) == (0, ""), ran
    checkout.check(checkout.root / ".venv", "dev", "uv")
    version = run(".venv/bin/python", "-c", "import accord", cwd=checkout.root, env=checkout.env)
    assert version.code == 0, version


def test_runtime_lock_installs_alone_and_a_missing_package_is_reported(
    checkout: FutureCheckout,
) -> None:
    words = ("make", ".venv/.runtime", f"PYTHON={PYTHON}")

    ran = run(*words, cwd=checkout.root, env=checkout.env)

    assert (ran.code, ran.err) == (0, ""), ran
    assert ran.out.splitlines()[0].startswith("Making the environment in .venv … ")
    assert ran.out.splitlines()[-1].startswith("Ready in ")
    checkout.check(checkout.root / ".venv", "runtime", "build", "uv")

    relock(checkout.lock("runtime"), checkout.index, without=frozenset({"h11"}))
    again = run(*words, cwd=checkout.root, env=checkout.env)

    assert again.code != 0
    assert "h11" in again.err
    done = run(words[0], "--question", *words[1:], cwd=checkout.root, env=checkout.env)
    assert done.code == 1, "make took it for done"


def test_server_installs_as_documented(checkout: FutureCheckout, tmp_path: Path) -> None:
    page = (checkout.root / "docs" / "how-to" / "operate.md").read_text("utf-8")
    block = next(block for block in page.split("```") if "-m venv /opt/accord" in block)
    lines = [line.removeprefix("# ") for line in block.splitlines()]
    place = str(tmp_path / "opt")

    last_output = ""
    for line in lines:
        if "venv" in line or "/pip " in line:
            words = shlex.split(line.replace("/opt/accord", place).replace("python3", PYTHON))
            ran = run(*words, cwd=checkout.root, env=checkout.env)
            assert ran.code == 0, ran
            last_output = ran.out

    assert last_output == "No broken requirements found.\n"
    checkout.index.asked.discard("pip")  # pip checks for a newer pip, but does not install it
    checkout.check(tmp_path / "opt", "runtime", "build")


def test_uv_tool_install_uses_the_locked_versions(checkout: FutureCheckout, tmp_path: Path) -> None:
    env = checkout.env | {"UV_DEFAULT_INDEX": checkout.index.url}

    ran = run(uv_path(), "tool", "install", ".", cwd=checkout.root, env=env)

    assert ran.code == 0, ran
    wanted = checkout.pins("runtime", "build")
    (place,) = (tmp_path / "home").glob(".local/share/uv/tools/accord")
    assert installed_versions(place) == versions_of(checkout.pins("runtime"))
    assert checkout.index.sent <= {file_name(pin.name, pin.version) for pin in wanted}


def test_resolver_would_have_installed_newer_versions(
    checkout: FutureCheckout, tmp_path: Path
) -> None:
    pip = (sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed")
    lock = ("--require-hashes", "-r", str(checkout.lock("runtime")))

    ran = run(*pip, *lock, cwd=tmp_path, env=checkout.env)

    assert ran.code != 0
    assert "In --require-hashes mode" in ran.err
    # What a package asks for wins over the lock: here an extra for which the lock has no line.
    assert "pyjwt[crypto]" in ran.err


LISTED = r"""
:env:.find-links='/wheels'
:env:.timeout='180'
global.cert='/certificates.pem'
global.extra-index-url='\nhttp://a.example/simple\nhttp://b.example/simple'
global.find-links='/other'
global.index-url='http://main.example/simple'
install.index-url='http://better.example/simple'
"""


def test_pip_index_settings_apply_to_uv() -> None:
    assert install.translated(LISTED, {}) == {
        "SSL_CERT_FILE": "/certificates.pem",
        "UV_DEFAULT_INDEX": "http://better.example/simple",
        "UV_FIND_LINKS": "/wheels",
        "UV_INDEX": "http://a.example/simple http://b.example/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_uv_settings_override_pip_settings() -> None:
    env = {"UV_INDEX_URL": "", "UV_EXTRA_INDEX_URL": "", "SSL_CERT_FILE": "", "UV_FIND_LINKS": ""}

    assert install.translated(LISTED, env) == {}
