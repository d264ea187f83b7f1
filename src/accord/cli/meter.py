"""How far something is that takes a while, on a terminal and nowhere else."""

import sys

from accord.show import paint

PAGES_PER_MIB = 256
# Less than this is over before one could read it.
WORTH_TELLING = 64 * PAGES_PER_MIB


def progress(done: int, pages: int) -> None:
    """One line that is written over, and gone at the end."""
    if pages < WORTH_TELLING or not sys.stderr.isatty():
        return
    said = f"{done // PAGES_PER_MIB} of {pages // PAGES_PER_MIB} MiB"
    print(f"\r\x1b[K{paint.dim(said) if done < pages else ''}", end="", file=sys.stderr, flush=True)
