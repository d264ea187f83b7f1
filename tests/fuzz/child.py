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
    from tests.fuzz.mutation import mutated
    from tests.fuzz.reached import reached
    from tests.fuzz.targets import load

# How often a change respects JSON.
SHARE = 0.7


def change(data: bytes, most: int, seed: int) -> bytes:
    """Another input, not far from this one."""
    random = Random(seed)
    if random.random() < SHARE and (other := respectful(data, random)) is not None:
        return other[:most]
    return bytes(atheris.Mutate(data[:most], most))


def respectful(data: bytes, random: Random) -> bytes | None:
    """A change within JSON, where one can be made; whatever is raised here ends the process."""
    try:
        return mutated(data, random)
    except (ValueError, RecursionError, MemoryError):  # too deep or too long to write again
        return None


def main() -> None:
    """`child TARGET PLACE [--planted] -- libFuzzer's words`."""
    words = sys.argv[1:]
    ours, theirs = words[: words.index("--")], words[words.index("--") + 1 :]
    logging.disable(logging.CRITICAL)
    with atheris.instrument_imports(include=["accord"]):
        target = load(ours[0])
    reached.watched = atheris.instrument_func
    if "--planted" in ours:
        target.plant(pytest.MonkeyPatch())
    again = shlex.join([sys.executable, "-m", "tests.fuzz.child", *ours, "--"])  # for a merge
    atheris.Setup([again, *theirs], target.trial(Path(ours[1])), custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
