"""Connections: which host works in which repository, for which session and as which agent.

`accord connect` writes one file for each connection into the configuration directory, and the
daemon reads it for every hook. The file has the private key of the agent's own device and no token:
a program that needs a token proves the key (`connection_token.py`).

A hook is configured with the path of this file. Neither the environment nor the repository takes
part in finding it, so neither can change the server, the session or the agent.
"""

import json
import os
import re
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from accord.atomic_files import write_private
from accord.hosts.hook_events import HookEvent
from accord.hosts.last_hook_call import forget_hook_calls
from accord.settings.profiles import Profile, ProfileError, config_dir, read_private

CONNECTIONS_DIR = "connections"
PRIVATE_DIR_MODE = 0o700
ID_PATTERN = re.compile(r"[a-z][a-z0-9-]{0,40}-[0-9a-f]{8}")
ID_BYTES = 4
GATE_HOOK = Path(__file__).with_name("gate_hook.py")
# The shell of a host runs this. Whatever keeps our hook from running or ends it, a missing
# interpreter included, becomes exit code 2 with a sentence, which every host takes as a refusal.
REFUSING_SCRIPT = (
    '"$0" "$@" || { echo "Accord refused this call: its gate hook could not run. '
    'Ask the user to run \\`accord doctor\\`." >&2; exit 2; }'
)
IGNORING_SCRIPT = '"$0" "$@" || exit 0'


class ConnectionRecordError(ValueError):
    """The record cannot be used; the message says how to fix it."""


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """What `accord connect` recorded; `key` is the private half of the device's key, in base64.

    `root` is the top directory of the repository and `repository` its id (`accord.repo`), which
    selects the signed policy: an agent can change the id in git's configuration, not here.
    `person` is the id of the person who connected the host, `created_at` the time in seconds since
    1970, and `price` what they pay for a million tokens, in and out, in US dollars.
    """

    id: str
    host: str
    root: str
    url: str
    server: str
    session: str
    agent: str
    device: str
    key: str
    created_at: int
    repository: str = ""
    person: str = ""
    fork: str = ""
    price: tuple[float, float] | None = None

    def __repr__(self) -> str:
        """Without the key."""
        return f"Connection({self.id!r}, {self.agent!r} at {self.url!r})"

    @property
    def profile(self) -> Profile:
        """The agent's identity, as far as a proof needs it."""
        return Profile(
            self.id,
            url=self.url,
            server=self.server,
            id=self.agent,
            device=self.device,
            key=self.key,
            token="",
            expires_at=0,
        )


def new_connection_id(host: str) -> str:
    """An id that also says which host it is for."""
    return f"{host}-{secrets.token_hex(ID_BYTES)}"


def connections_dir(env: Mapping[str, str]) -> Path:
    """Where the records are."""
    return Path(config_dir(env)) / CONNECTIONS_DIR


def connection_path(env: Mapping[str, str], id: str) -> Path:
    """The file of a connection; raises ConnectionRecordError for what is not an id."""
    if not ID_PATTERN.fullmatch(id):
        raise ConnectionRecordError(f"{id[:60]!r} is not the id of a connection")
    return connections_dir(env) / f"{id}.json"


def save_connection(env: Mapping[str, str], connection: Connection) -> Path:
    """Write the record for its owner alone; returns its path."""
    path = connection_path(env, connection.id)
    path.parent.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
    content = json.dumps(msgspec.to_builtins(connection), indent=2) + "\n"
    write_private(path, content.encode(), durable=True)
    return path


def find_connection(env: Mapping[str, str], id: str) -> Connection | None:
    """The connection with this id; None if there is none. Raises ConnectionRecordError."""
    try:
        return read_connection(connection_path(env, id))
    except FileNotFoundError:
        return None


def read_connection(path: Path) -> Connection:
    """The record in this file; raises ConnectionRecordError, or FileNotFoundError."""
    try:
        content = read_private(os.fspath(path))
        connection = msgspec.json.decode(content, type=Connection)
    except FileNotFoundError:
        raise
    except ProfileError as error:
        raise ConnectionRecordError(str(error)) from None
    except OSError as error:
        raise ConnectionRecordError(f"{path} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConnectionRecordError(
            f"{path} is damaged ({error}); connect the host again"
        ) from None
    if f"{connection.id}.json" != path.name:
        raise ConnectionRecordError(f"{path} is the record of another connection; connect again")
    return connection


def list_connections(env: Mapping[str, str]) -> list[Connection]:
    """All connections, oldest first; raises ConnectionRecordError."""
    return sorted(_all_connections(env), key=lambda each: (each.created_at, each.id))


def _all_connections(env: Mapping[str, str]) -> Iterator[Connection]:
    for path in connections_dir(env).glob("*.json"):
        if ID_PATTERN.fullmatch(path.stem):
            with suppress(FileNotFoundError):  # another process has just deleted it
                yield read_connection(path)


def delete_connection(env: Mapping[str, str], id: str) -> bool:
    """Delete the record; False if there was none."""
    path = connection_path(env, id)
    was_there = path.exists()
    path.unlink(missing_ok=True)
    forget_hook_calls(path)
    return was_there


def hook_arguments(record: Path, host: str, event: str) -> list[str]:
    """The command that runs our hook for one of our events, as an argument array.

    `-I` and `-S` keep Python away from the environment, the working directory and site-packages.
    """
    return [sys.executable, "-I", "-S", os.fspath(GATE_HOOK), os.fspath(record), host, event]


def hook_command(record: Path, host: str, event: HookEvent) -> str:
    """The command line for a host's configuration; hosts give it to the user's shell.

    A gate hook that cannot run refuses the call. Any other hook that cannot run is ignored.
    """
    script = REFUSING_SCRIPT if event.is_gate else IGNORING_SCRIPT
    return shlex.join(["/bin/sh", "-c", script, *hook_arguments(record, host, event.event)])
