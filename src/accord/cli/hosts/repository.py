"""The repository that a host is connected for, and its connections."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.kernel.refusal import Reason, Refused

if TYPE_CHECKING:
    from accord.git.repository import Repository
    from accord.hosts.connections import Connection

NOT_A_REPOSITORY = "This is not a git repository; change to the one that the agent is to work in"


def current_repository() -> "Repository":
    """The repository around the working directory; raises Refused."""
    from accord.git.repository import find_repository

    repo = find_repository(Path.cwd())
    if repo is None or repo.is_bare:
        raise Refused(Reason.NOT_FOUND, NOT_A_REPOSITORY)
    return repo


def connection_for(host: str, root: Path) -> "Connection | None":
    """The connection of a host with this repository."""
    from accord.hosts.connections import list_connections

    found = [
        each
        for each in list_connections(os.environ)
        if each.host == host and Path(each.root) == root
    ]
    return found[-1] if found else None


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Keeps other processes from connecting and disconnecting hosts; raises Refused."""
    from accord.hosts.changed_files import connections_lock
    from accord.hosts.configuration.entry import ConfigurationError

    try:
        with connections_lock(os.environ):
            yield
    except ConfigurationError as error:
        raise Refused(Reason.WRONG_STATE, f"{error}. Nothing was changed") from None
