"""How wide the terminal is."""

import fcntl
import os
import struct
import subprocess
import sys
import termios

import pytest

PROGRAM = """
import sys
from accord.show.terminal_size import terminal_columns
print(terminal_columns(77), file=sys.stderr)
"""


def told(stdout: int, columns: str) -> int:
    """What a process says whose standard output this is."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"COLUMNS": columns},
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=True,
    )
    return int(ran.stderr)


@pytest.mark.parametrize(("said", "read"), [("40", 40), ("", 77), ("0", 77), ("-3", 77), ("x", 77)])
def test_where_there_is_no_terminal_a_variable_decides(said: str, read: int) -> None:
    assert told(subprocess.DEVNULL, said) == read


@pytest.mark.parametrize(("wide", "read"), [(132, 132), (0, 77)])
def test_a_terminal_knows_how_wide_it_is(wide: int, read: int) -> None:
    controller, terminal = os.openpty()
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, wide, 0, 0))
        assert told(terminal, "") == read
        assert told(terminal, "50") == 50
    finally:
        os.close(controller)
        os.close(terminal)
