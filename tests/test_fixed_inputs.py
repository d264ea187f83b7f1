"""By default, random tests try the same inputs on every machine; `make soak` tries others."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.seeds import FIXED_SEED

TESTS = Path(__file__).parent
SEEDS_MODULE = TESTS / "helpers" / "seeds.py"
CHOICES = """
import json
from hypothesis import settings
import tests.conftest
from tests.helpers.seeds import run_seed, seeds
print(json.dumps([settings().derandomize, run_seed(), list(seeds(3, long=4))]))
"""


def choices(**variables: str) -> tuple[bool, int, list[int]]:
    """Whether hypothesis repeats its examples, one seed, and several."""
    names = ("CI", "ACCORD_LONG", "ACCORD_SEED")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    ran = subprocess.run(
        [sys.executable, "-c", CHOICES],
        cwd=TESTS.parent,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    derandomized, seed, several = json.loads(ran.stdout)
    return derandomized, seed, several


@pytest.mark.parametrize("ci", [{}, {"CI": "true"}], ids=["local", "ci"])
def test_default_suite_has_fixed_inputs_without_and_with_ci(ci: dict[str, str]) -> None:
    assert choices(**ci) == (True, FIXED_SEED, [0, 1, 2])


def test_long_rounds_have_other_inputs_each_time() -> None:
    first, second = choices(ACCORD_LONG="1"), choices(ACCORD_LONG="1", CI="true")

    assert first[0] is second[0] is False
    assert first[1:] != second[1:]
    assert len(first[2]) == len(second[2]) == 4


def test_seed_of_an_earlier_run_can_be_repeated() -> None:
    assert choices(ACCORD_LONG="1", ACCORD_SEED="17")[1] == 17


def test_only_the_seeds_module_draws_seeds_from_the_operating_system() -> None:
    drawing = [
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if path not in {SEEDS_MODULE, Path(__file__)} and "SystemRandom" in path.read_text("utf-8")
    ]
    assert drawing == []
