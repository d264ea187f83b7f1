"""A test that takes longer than others may is reported, unless it is named with a reason."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

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

slow_tests.LIMIT_S = 0.0
slow_tests.LIMIT_CPU_S = 0.3
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


def test_slow_test_fails_with_its_cpu_time_unless_it_is_named(tmp_path: Path) -> None:
    shown = run_sample(tmp_path)

    assert "1 failed, 2 passed" in shown, shown
    assert "FAILED test_sample.py::test_slow - Failed: this test used 1 s of CPU" in shown
    assert "at most 0 s here" in shown


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
