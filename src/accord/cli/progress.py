"""A progress line on the terminal for long copies."""

import sys

from accord.show import style

PAGES_PER_MIB = 256
# Smaller copies finish before the line could be read.
MIN_PAGES_SHOWN = 64 * PAGES_PER_MIB


MIN_RECORDS_SHOWN = 20_000
BAR_COLUMNS = 30


def print_progress(done: int, pages: int) -> None:
    """Overwrite one line with the progress of a copy in pages; clear it at the end."""
    if pages >= MIN_PAGES_SHOWN:
        unit = f"{done // PAGES_PER_MIB} of {pages // PAGES_PER_MIB} MiB"
        print_progress_line(unit, is_done=done >= pages)


def print_record_progress(done: int, records: int) -> None:
    """Overwrite one line with a bar and the number of records; clear it at the end."""
    if records >= MIN_RECORDS_SHOWN:
        filled = BAR_COLUMNS * done // records
        bar = "#" * filled + "." * (BAR_COLUMNS - filled)
        print_progress_line(f"[{bar}] {done:,} of {records:,} records", is_done=done >= records)


def print_progress_line(progress: str, *, is_done: bool) -> None:
    """On a terminal only."""
    if not sys.stderr.isatty():
        return
    print(
        f"\r\x1b[K{'' if is_done else style.dim(progress)}",
        end="",
        file=sys.stderr,
        flush=True,
    )
