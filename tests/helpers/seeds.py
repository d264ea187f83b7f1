"""Seeds of random tests: the default suite tries the same inputs on every machine.

With `ACCORD_LONG=1` (`make soak`) the seeds are random, and a failing test prints its own.
`ACCORD_SEED` repeats the random choices of an earlier run.
"""

import os
import random
from collections.abc import Sequence

LONG = bool(os.environ.get("ACCORD_LONG"))
FIXED_SEED = 1


def random_seed() -> int:
    return random.SystemRandom().randrange(1 << 32)


def run_seed() -> int:
    """The seed of a test that makes one long run."""
    return int(os.environ.get("ACCORD_SEED") or (random_seed() if LONG else FIXED_SEED))


def seeds(default: int, long: int) -> Sequence[int]:
    """The first `default` seeds, or `long` random ones; pytest shows a seed as a parameter."""
    return [random_seed() for _ in range(long)] if LONG else range(default)
