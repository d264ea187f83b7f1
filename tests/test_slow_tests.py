"""A test that takes longer than others may is reported, unless it is named with a reason."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.helpers.measure import slow_tests
from tests.helpers.measure.slow_tests import NAMED

ROOT = Path(__file__).resolve().parent.parent
# Its own CPU time is small: a process that it starts does the work.
SLOW_TEST = """
import subprocess, sys
BURN = "import time\\nwhile time.process_time() < 1: pass"

def test_slow():
    subprocess.run([sys.executable, "-c", BURN], check=True)

def test_named():
    subprocess.run([sys.executable, "-c", BURN], check=True)

def test_fast():
    pass
"""
CONFTEST = """
from tests.helpers.measure import slow_tests
from tests.conftest import pytest_runtest_call

slow_tests.LIMIT_S = 0.3
slow_tests.machine_slowdown = lambda: 1.0
slow_tests.NAMED = {"test_sample.py::test_named": "it is slow"}
"""


def run_sample(folder: Path, **variables: str) -> str:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_sample.py").write_text(SLOW_TEST)
    environment = {name: value for name, value in os.environ.items() if name != "ACCORD_LONG"}
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder))
    ran = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout


def test_slow_test_fails_unless_it_is_named(tmp_path: Path) -> None:
    shown = run_sample(tmp_path)

    assert "1 failed, 2 passed" in shown, shown
    assert "FAILED test_sample.py::test_slow - Failed: this test took" in shown
    assert "at most 0 s here" in shown


def test_waiting_counts_unless_the_machine_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_tests, "PRESSURE", tmp_path)
    assert slow_tests.stalled_s() is None
    for number, name in enumerate(("cpu", "memory", "io"), 1):
        figures = f"some avg10=1.00 total={number}000000\nfull avg10=0.00 total=9"
        (tmp_path / name).write_text(figures)
    assert slow_tests.stalled_s() == 6.0

    assert not is_too_long(100, stalled=(0.0, 90.0), monkeypatch=monkeypatch)
    assert is_too_long(100, stalled=(0.0, 10.0), monkeypatch=monkeypatch)
    assert not is_too_long(100, stalled=(None, None), monkeypatch=monkeypatch)


def is_too_long(
    wall_s: float, stalled: tuple[float | None, ...], monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Whether a test without a name fails that takes so long, while the machine stalls so long."""
    times, stalls = iter((0.0, wall_s)), iter(stalled)
    test = cast("pytest.Item", SimpleNamespace(nodeid="tests/test_other.py::test_other"))
    with monkeypatch.context() as patch:
        patch.setattr(slow_tests, "machine_slowdown", lambda: 1.0)
        patch.setattr(slow_tests, "tree_cpu_s", lambda: 0.0)
        patch.setattr(slow_tests, "stalled_s", lambda: next(stalls))
        patch.setattr(slow_tests, "time", SimpleNamespace(monotonic=lambda: next(times)))
        running = slow_tests.limit_time(test)
        next(running)
        try:
            next(running)
        except pytest.fail.Exception:
            return True
        except StopIteration:
            return False
    raise AssertionError


def test_long_rounds_may_be_slow(tmp_path: Path) -> None:
    assert "3 passed" in run_sample(tmp_path, ACCORD_LONG="1")


@pytest.mark.parametrize("test_id", NAMED)
def test_each_named_test_exists_and_has_a_reason(test_id: str) -> None:
    path, _, names = test_id.partition("::")
    found: object = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    for name in names.split("::"):
        found = getattr(found, name)

    assert callable(found)
    assert len(NAMED[test_id].split()) > 5
