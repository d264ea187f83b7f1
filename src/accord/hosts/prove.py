"""Prints a proof of a connection's device key, in a process of its own.

    python -I -m accord.hosts.prove RECORD

The daemon asks for one each hour. The library that signs takes a fifth of the memory that a daemon
may have, so it does not stay there.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from accord.hosts.connections import Connection, ConnectionRecordError, read_connection
from accord.settings.profile_store import new_proof
from accord.settings.profiles import ProfileError

TIMEOUT_S = 20.0


def proof_of(connection: Connection) -> bytes:
    """A proof of now; raises ProfileError."""
    return json.dumps(new_proof(connection.profile, time.time_ns() // 1_000_000)).encode()


def proof_from_process(record: Path) -> bytes:
    """The same, made in another process; raises ProfileError."""
    command = [sys.executable, "-I", "-m", "accord.hosts.prove", str(record)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProfileError(f"The agent's key could not be used: {error}") from error
    if done.returncode:
        raise ProfileError(f"The agent's key could not be used: {done.stderr.decode()[-300:]}")
    return done.stdout


if __name__ == "__main__":
    try:
        sys.stdout.buffer.write(proof_of(read_connection(Path(sys.argv[1]))))
    except (ConnectionRecordError, ProfileError, OSError) as problem:
        sys.exit(str(problem))
