"""Every fuzz target: known and fixed inputs find nothing, and a planted defect is found.

The same inputs on every machine. With `ACCORD_LONG=1` (`make soak`) libFuzzer hunts by time too.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.support.fixed_inputs import fixed_inputs, known_inputs, run_inputs
from tests.fuzz.support.json_mutation import DICTIONARY_WORDS, libfuzzer_dictionary
from tests.fuzz.targets import (
    FUZZ_DIR,
    LONG,
    MAX_CORPUS_BYTES,
    TARGETS,
    corpus_files,
    fuzz_seconds,
    load_target,
)
from tests.spec import proves

ROOT = FUZZ_DIR.parent.parent
FIXED_INPUTS = 500
# Stops at the first finding, which takes a second at most.
MAX_PLANTED_INPUTS = 5000
# One target shows that libFuzzer is connected; the others differ in nothing that it sees.
LIBFUZZER_TARGETS = tuple(TARGETS) if LONG else ("token",)
LIBFUZZER_SEED = 1
# libFuzzer finds a planted defect at once; the rest is for a busy machine.
PLANTED_SECONDS = 300
# For starting up and reading the corpus.
SLACK_S = 120
PARALLEL_RUNS = 2
FinishedRun = subprocess.CompletedProcess[str]


def fuzz(name: str, seconds: int, *flags: str) -> FinishedRun:
    """Run libFuzzer on one target."""
    command = [sys.executable, "-m", "tests.fuzz", name, "--seconds", str(seconds), *flags]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False
    )


@pytest.fixture(scope="module")
def atheris() -> None:
    if find_spec("atheris") is None:
        reason = "atheris, the fuzzer, has no build for this platform"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@pytest.fixture(scope="module")
def hunts(
    request: pytest.FixtureRequest, atheris: None
) -> Iterator[dict[str, "Future[FinishedRun]"]]:
    """A run by time of every selected target, two at once."""
    selected = {test.callspec.params["hunted"] for test in hunting_tests(request.session)}
    with ThreadPoolExecutor(PARALLEL_RUNS) as pool:
        yield {
            name: pool.submit(fuzz, name, fuzz_seconds()) for name in TARGETS if name in selected
        }


def hunting_tests(session: pytest.Session) -> Iterator[pytest.Function]:
    for test in session.items:
        if isinstance(test, pytest.Function) and "hunted" in test.fixturenames:
            yield test


@proves("OPEN-51", "PVP-17-2")
@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_corpus_cause_no_failure(name: str, tmp_path: Path) -> None:
    run_inputs(name, known_inputs(name), tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_fixed_inputs_cause_no_failure(name: str, tmp_path: Path) -> None:
    run_inputs(name, fixed_inputs(name, FIXED_INPUTS), tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_fixed_inputs_are_the_same_each_time(name: str) -> None:
    assert list(fixed_inputs(name, 50)) == list(fixed_inputs(name, 50))


@pytest.mark.parametrize("name", TARGETS)
def test_fixed_inputs_find_a_planted_defect(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, fixed = list(known_inputs(name)), fixed_inputs(name, MAX_PLANTED_INPUTS)
    load_target(name).plant_defect(monkeypatch)

    with pytest.raises(AssertionError, match=f"python -m tests.fuzz {name} --replay "):
        run_inputs(name, (*known, *fixed), tmp_path, findings=tmp_path)


@pytest.mark.parametrize("name", TARGETS)
def test_corpus_is_present_and_within_its_size_limit(name: str) -> None:
    assert 0 < sum(file.stat().st_size for file in corpus_files(name)) <= MAX_CORPUS_BYTES


@pytest.mark.timeout(PLANTED_SECONDS + SLACK_S)
@pytest.mark.parametrize("name", LIBFUZZER_TARGETS)
def test_libfuzzer_finds_a_planted_defect_and_prints_how_to_replay_it(
    name: str, atheris: None
) -> None:
    run = fuzz(name, PLANTED_SECONDS, "--planted", "--seed", str(LIBFUZZER_SEED))

    assert run.returncode != 0, run.stderr[-2000:]
    assert f"python -m tests.fuzz {name} --replay " in run.stdout


@pytest.mark.long
@pytest.mark.timeout(len(TARGETS) * (fuzz_seconds() + SLACK_S))
@pytest.mark.parametrize("hunted", TARGETS)
def test_libfuzzer_finds_nothing_in_its_time(
    hunts: dict[str, "Future[FinishedRun]"], hunted: str
) -> None:
    run = hunts[hunted].result()

    assert run.returncode == 0, run.stderr[-4000:] + run.stdout
    assert "number_of_executed_units" in run.stderr


def test_dictionary_holds_the_words_of_messages() -> None:
    assert {"tool.propose", "shell_execute", "visible_to", "causal_refs"} <= set(DICTIONARY_WORDS)
    assert '"gate.approve"\n' in libfuzzer_dictionary()
