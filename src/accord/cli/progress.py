"""A progress line on the terminal for long copies."""

import sys

from accord.show import style

PAGES_PER_MIB = 256
# Smaller copies finish before the line could be read.
MIN_PAGES_SHOWN = 64 * PAGES_PER_MIB


def print_progress(done: int, pages: int) -> None:
    """Overwrite one line with the progress; clear it at the end."""
    if pages < MIN_PAGES_SHOWN or not sys.stderr.isatty():
        return
    progress = f"{done // PAGES_PER_MIB} of {pages // PAGES_PER_MIB} MiB"
    print(
        f"\r\x1b[K{style.dim(progress) if done < pages else ''}",
        end="",
        file=sys.stderr,
        flush=True,
    )
