"""With CI=true no test is left out unnoticed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.skip_policy import UNAVAILABLE, SkipPolicy, read_parts

ROOT = Path(__file__).parents[2]
CONFTEST = """
import os
from pathlib import Path
from tests.helpers.skip_policy import SkipPolicy

def pytest_configure(config):
    config.addinivalue_line("markers", "long: only when asked for")
    config.pluginmanager.register(SkipPolicy(os.environ, Path("unavailable.toml")))
"""
LISTED = """
[[part]]
name = "a disk"
tests = ["test_some.py::test_listed"]
reason = "no disk here"
why = "there is none"
"""
SOME_TESTS = """
import pytest

@pytest.fixture
def disk():
    pytest.skip("no disk here")

def test_listed(disk): ...

def test_of_another_name(disk): ...

@pytest.mark.skip(reason="too slow")
def test_marked(): ...

@pytest.mark.long
def test_long(): ...

def test_that_runs(): ...
"""
WHOLE_MODULE = 'import pytest\npytest.importorskip("no_such_module")\ndef test_never(): ...\n'


def run_tests(folder: Path, *words: str, **env: str) -> tuple[int, str]:
    kept = {k: v for k, v in os.environ.items() if k not in {"CI", "ACCORD_LONG"}}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-ra", *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.returncode, done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "conftest.py": CONFTEST,
        "unavailable.toml": LISTED,
        "test_some.py": SOME_TESTS,
        "test_whole.py": WHOLE_MODULE,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_in_ci_what_is_skipped_and_not_listed_fails_with_its_name_and_reason(
    folder: Path,
) -> None:
    code, out = run_tests(folder, "-n1", CI="true")

    assert code != 0
    assert "test_some.py::test_of_another_name was skipped: no disk here" in out
    assert "test_some.py::test_marked was skipped: too slow" in out
    assert "test_whole.py was skipped: could not import 'no_such_module'" in out
    assert "test_listed was skipped" not in out
    assert "except for those in tests/unavailable.toml" in out


def test_in_ci_what_is_listed_or_long_fails_nothing(folder: Path) -> None:
    words = ("test_some.py", "-k", "listed or runs or long")
    code, out = run_tests(folder, *words, CI="true")

    assert (code, "1 passed, 1 skipped, 3 deselected" in out) == (0, True), out


def test_elsewhere_a_skipped_test_is_only_skipped_and_what_is_long_runs_if_asked(
    folder: Path,
) -> None:
    code, out = run_tests(folder, ACCORD_LONG="1")

    assert code == 0
    assert "2 passed, 4 skipped" in out


def test_each_part_that_is_listed_names_tests_that_exist_and_their_reason() -> None:
    for part in read_parts(UNAVAILABLE):
        assert part.name
        assert part.why
        for path in part.tests:
            helpers = (ROOT / "tests/helpers").rglob("*.py")
            sources = [ROOT / path, *helpers]
            assert (ROOT / path).is_file(), path
            assert any(part.reason in source.read_text("utf-8") for source in sources), part.reason


def test_ci_means_ci_is_true() -> None:
    assert SkipPolicy({"CI": "true"}).is_ci
    assert not SkipPolicy({}).is_ci
