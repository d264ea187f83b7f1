"""Several real servers on one PostgreSQL database, with the same keys."""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.helpers.servers.server_process import ServerProcess


class ServerGroup:
    """Servers on one log; the first one issues tokens."""

    def __init__(self, directory: Path, stores: Sequence[str], *flags: str) -> None:
        self.servers = [
            ServerProcess(directory / str(number), "token", "--store", store, *flags)
            for number, store in enumerate(stores)
        ]
        self.hidden: set[ServerProcess] = set()  # run, but a balancer would not choose them

    def __getitem__(self, number: int) -> ServerProcess:
        return self.servers[number]

    def running(self) -> list[ServerProcess]:
        """Those that run now."""
        return [each for each in self.servers if each.is_running and each not in self.hidden]

    def start(self) -> "ServerGroup":
        """Start all of them; the first one makes the keys."""
        first, *others = self.servers
        first.start()
        for server in others:
            shutil.copytree(first.home / "keys", server.home / "keys", dirs_exist_ok=True)
            server.start()
        return self

    def stop(self) -> None:
        """Kill those that still run."""
        for server in self.servers:
            if server.is_running:
                server.resume()
                server.kill()


@contextlib.contextmanager
def run_servers(directory: Path, stores: Sequence[str], *flags: str) -> Iterator[ServerGroup]:
    """Run one server for each store URL, and fail the test if one logged a traceback."""
    group = ServerGroup(directory, stores, *flags)
    try:
        yield group.start()
    finally:
        group.stop()
    for server in group.servers:
        assert "Traceback" not in server.log, server.log
        assert '"stack": [' not in server.log, server.log
