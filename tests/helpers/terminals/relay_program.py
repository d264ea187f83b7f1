"""Runs a command under the relay alone: `python -m tests.helpers.terminals.relay_program FRAMES …`.

What the relay tells its link is written to the file FRAMES, so that a test can compare it with what
the terminal showed. `-` is for no link at all.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

from accord.supervisor.relay import Relay


def main() -> int:
    file, *command = sys.argv[1:]

    def start_link() -> socket.socket | None:
        if file == "-":
            return None
        ours, theirs = socket.socketpair()
        with Path(file).open("ab") as frames:
            subprocess.Popen(["cat"], stdin=theirs.fileno(), stdout=frames)
        theirs.close()
        return ours

    return Relay(command, os.environ, start_link, facts={"runtime": "claude_code"}).run()


if __name__ == "__main__":
    sys.exit(main())
