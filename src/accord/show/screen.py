"""How wide the terminal is; the library's own way loads what packs and unpacks archives."""

import os


def columns(usual: int) -> int:
    """As COLUMNS says, else the terminal itself; `usual` where neither does."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told):
        return int(told)
    try:
        return os.get_terminal_size().columns or usual
    except OSError:  # no terminal, or closed
        return usual
