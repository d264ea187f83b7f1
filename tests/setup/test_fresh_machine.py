"""From a clone or a wheel to a running server and demo, with today's package registries."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from select import select

import pytest

from accord import __version__
from tests.setup.checkout import COMMAND_TIMEOUT_S, PYTHON, copy_checkout, fresh_environment, run
from tests.setup.index import uv_path

# An idle machine needs a third of this; this one runs other tests at the same time.
PROMISED_S, GENEROUS_S = 30, 120
SIGN_IN = re.compile(r"http://127\.0\.0\.1:\d+#code=[a-z2-7]{26}")
pytestmark = [pytest.mark.network, pytest.mark.timeout(COMMAND_TIMEOUT_S * 2)]


def test_fresh_clone_starts_a_server_with_a_sign_in_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = copy_checkout(tmp_path / "checkout")
    env = fresh_environment(
        tmp_path / "home", ACCORD_HOME=str(tmp_path / "data"), TERM="xterm-256color"
    )
    ours, theirs = pty.openpty()
    started = time.monotonic()
    words = ["make", "run", f"PYTHON={PYTHON}", "ARGS=--port 0"]
    running = subprocess.Popen(
        words, cwd=root, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    shown = ""
    try:
        for piece in read_terminal(ours, started + GENEROUS_S):
            shown += piece
            if SIGN_IN.search(shown):
                break
        took = time.monotonic() - started
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGTERM)
        running.wait(COMMAND_TIMEOUT_S)
        os.close(ours)

    assert SIGN_IN.search(shown), shown
    assert "packages of requirements/runtime.txt" in shown
    assert not list((root / ".venv").glob("lib/python*/site-packages/pytest"))
    with capsys.disabled():
        print(
            f"\nfrom a clone to the sign-in link: {took:.1f} s, of {PROMISED_S} on an idle machine"
        )


def read_terminal(terminal: int, deadline: float) -> Iterator[str]:
    """The output of a terminal, until it ends or the deadline passes."""
    while (left := deadline - time.monotonic()) > 0 and select([terminal], [], [], left)[0]:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # the process closed the terminal
            return
        yield read.decode("utf-8", "replace")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a clone."""
    folder: Path = tmp_path_factory.mktemp("wheel")
    root = copy_checkout(folder / "checkout")
    env = fresh_environment(folder / "home", UV_PYTHON=PYTHON)
    built = run(uv_path(), "build", "--wheel", cwd=root, env=env)
    assert built.code == 0, built
    (built_wheel,) = (root / "dist").glob("*.whl")
    return built_wheel


@pytest.mark.parametrize("program", ["uv", "pipx"])
def test_wheel_installs_and_runs_the_demo(program: str, wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = fresh_environment(
        home, UV_PYTHON=PYTHON, PIPX_DEFAULT_PYTHON=PYTHON, TMPDIR=str(tmp_path)
    )
    words = {
        "uv": [uv_path(), "tool", "install", str(wheel)],
        "pipx": [sys.executable, "-m", "pipx", "install", str(wheel)],
    }
    install_run = run(*words[program], cwd=tmp_path, env=env)
    assert install_run.code == 0, install_run
    accord = shutil.which("accord", path=str(home / ".local" / "bin"))
    assert accord, install_run

    version = run(accord, "--version", cwd=tmp_path, env=env)
    assert version == (0, f"accord {__version__}\n", ""), version
    demo = run(accord, "demo", cwd=tmp_path, env=env)
    assert (demo.code, demo.err) == (0, ""), demo
    assert "✓ accord why finds the decision behind the line" in demo.out
