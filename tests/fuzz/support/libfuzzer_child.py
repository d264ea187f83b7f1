"""The process that the fuzzer runs in; it ends when libFuzzer ends it."""

import logging
import shlex
import sys
from pathlib import Path
from random import Random

import atheris  # type: ignore[import-untyped]
import pytest

# Whatever is imported first in here is watched; what was imported before is not.
with atheris.instrument_imports(include=["accord"]):
    from tests.fuzz.support.coverage_labels import mark_reached
    from tests.fuzz.support.json_mutation import mutate_json_line
    from tests.fuzz.targets import load_target

# How often a change respects JSON.
JSON_MUTATION_SHARE = 0.7


def custom_mutator(data: bytes, most: int, seed: int) -> bytes:
    """Another input, not far from this one."""
    random = Random(seed)
    if random.random() < JSON_MUTATION_SHARE and (other := mutate_json(data, random)) is not None:
        return other[:most]
    return bytes(atheris.Mutate(data[:most], most))


def mutate_json(data: bytes, random: Random) -> bytes | None:
    """A change within JSON, where one can be made; whatever is raised here ends the process."""
    try:
        return mutate_json_line(data, random)
    except (ValueError, RecursionError, MemoryError):  # too deep or too long to write again
        return None


def main() -> None:
    """`child TARGET PLACE [--planted] -- libFuzzer's words`."""
    words = sys.argv[1:]
    ours, theirs = words[: words.index("--")], words[words.index("--") + 1 :]
    logging.disable(logging.CRITICAL)
    with atheris.instrument_imports(include=["accord"]):
        target = load_target(ours[0])
    mark_reached.instrument = atheris.instrument_func
    if "--planted" in ours:
        target.plant_defect(pytest.MonkeyPatch())
    again = shlex.join(
        [sys.executable, "-m", "tests.fuzz.support.libfuzzer_child", *ours, "--"]
    )  # for a merge
    atheris.Setup(
        [again, *theirs], target.make_runner(Path(ours[1])), custom_mutator=custom_mutator
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
