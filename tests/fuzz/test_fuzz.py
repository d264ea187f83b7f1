"""Every target: what was found once stays mended, a minute finds nothing new, a defect is found."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.mutation import WORDS, dictionary
from tests.fuzz.targets import HERE, LARGEST_CORPUS, TARGETS, kept, load, seconds
from tests.spec import proves

ROOT = HERE.parent.parent
# Two at a time: there is seldom more to be had.
AT_ONCE = 2
# Found in a moment; only a machine that has other things to do needs more.
PLANTED_SECONDS = 300
# Starting, reading the corpus, and the machine being busy with other things.
SLACK = 120
Ended = subprocess.CompletedProcess[str]


def fuzz(name: str, budget: int, *flags: str) -> Ended:
    """One target for so many seconds."""
    words = [sys.executable, "-m", "tests.fuzz", name, "--seconds", str(budget), *flags]
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False
    )


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> Iterator[dict[str, "Future[Ended]"]]:
    """The minutes of all the targets that are asked for."""
    if find_spec("atheris") is None:
        reason = "atheris, the fuzzer, is not there for this platform"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    asked = {item.callspec.params["minute"] for item in minutes(request.session)}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(fuzz, name, seconds()) for name in TARGETS if name in asked}


def minutes(session: pytest.Session) -> Iterator[pytest.Function]:
    """The tests that wait for such a run."""
    for item in session.items:
        if isinstance(item, pytest.Function) and "minute" in item.fixturenames:
            yield item


@proves("OPEN-51", "PVP-17-2")
@pytest.mark.parametrize("name", TARGETS)
def test_what_the_corpus_holds_does_no_harm(name: str, tmp_path: Path) -> None:
    target = load(name)
    trial = target.trial(tmp_path)
    for seed in target.seeds():
        trial(seed)
    for file in kept(name):
        trial(file.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_is_there_and_small(name: str) -> None:
    assert 0 < sum(file.stat().st_size for file in kept(name)) <= LARGEST_CORPUS


@pytest.mark.timeout(len(TARGETS) * (seconds() + SLACK))
@pytest.mark.parametrize("minute", TARGETS)
def test_nothing_is_found_in_a_minute(runs: dict[str, "Future[Ended]"], minute: str) -> None:
    ended = runs[minute].result()
    assert ended.returncode == 0, ended.stderr[-4000:] + ended.stdout
    assert "number_of_executed_units" in ended.stderr


@pytest.mark.timeout(PLANTED_SECONDS + SLACK)
@pytest.mark.parametrize("name", TARGETS)
def test_a_defect_is_found_and_one_is_told_how_to_see_it_again(name: str) -> None:
    if find_spec("atheris") is None:
        pytest.skip("atheris, the fuzzer, is not there for this platform")
    ended = fuzz(name, PLANTED_SECONDS, "--planted")
    assert ended.returncode != 0, ended.stderr[-2000:]
    assert f"python -m tests.fuzz {name} --replay " in ended.stdout


def test_the_dictionary_names_what_the_messages_are_made_of() -> None:
    assert {"tool.propose", "shell_execute", "visible_to", "causal_refs"} <= set(WORDS)
    assert '"gate.approve"\n' in dictionary()
