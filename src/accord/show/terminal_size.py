"""The width of the terminal, without importing `shutil`, which is slow to load."""

import os

# Output, error and input: output into a pager is shown on the terminal of the other two.
STANDARD_STREAMS = (1, 2, 0)

MAX_HELP_COLUMNS = 100


def terminal_columns(default: int) -> int:
    """COLUMNS, else the width of the terminal in use, else `default`."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    for stream in STANDARD_STREAMS:
        try:
            return os.get_terminal_size(stream).columns or default
        except OSError:  # not a terminal, or closed
            continue
    return default


def help_columns() -> int:
    """The width of help texts; 80 without a terminal."""
    return min(terminal_columns(80), MAX_HELP_COLUMNS)


def wrap_words(text: str, width: int) -> list[str]:
    """Wrap prose without breaking a word, a flag or an address."""
    import textwrap

    prose = " ".join(text.split())
    return textwrap.wrap(prose, width, break_long_words=False, break_on_hyphens=False)
