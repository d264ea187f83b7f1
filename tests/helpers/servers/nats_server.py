"""Real NATS servers with JetStream for tests: one alone, or a cluster of three."""

import atexit
import itertools
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import msgspec

from tests.helpers.servers.postgres_server import free_port

START_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.02
PROGRAM = Path(sys.executable).with_name("nats-server")


class NatsServer:
    """One server process with its own store; `routes` name the others of its cluster."""

    def __init__(self, directory: Path, name: str = "n1", **options: str) -> None:
        self.directory = directory / name
        self.directory.mkdir(parents=True)
        self.name = name
        self.port, self.monitor_port, self.cluster_port = free_port(), free_port(), free_port()
        self.routes: list[int] = []
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log_file(self) -> Path:
        return self.directory / "server.log"

    def start(self) -> "NatsServer":
        """Start it and wait until it accepts connections."""
        config = self.directory / "nats.conf"
        config.write_text(self._configuration())
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                (PROGRAM, "-c", config), stdout=log, stderr=log, cwd=self.directory
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.asks("healthz?js-enabled-only=true"):
            assert self._process.poll() is None, self.log_file.read_text()
            assert time.monotonic() < deadline, self.log_file.read_text()
            time.sleep(POLL_INTERVAL_S)
        return self

    def _configuration(self) -> str:
        lines = [
            f"server_name: {self.name}",
            f"listen: 127.0.0.1:{self.port}",
            f"http: 127.0.0.1:{self.monitor_port}",
            f'jetstream {{ store_dir: "{self.directory}", {self._options.get("jetstream", "")} }}',
            self._options.get("more", ""),
        ]
        if self.routes:
            others = ", ".join(f"nats://127.0.0.1:{port}" for port in self.routes)
            listen = f"127.0.0.1:{self.cluster_port}"
            lines.append(f"cluster {{ name: test, listen: {listen}, routes: [{others}] }}")
        return "\n".join(lines)

    def asks(self, path: str) -> Any:
        """What the monitoring port answers; None if it does not."""
        try:
            address = f"http://127.0.0.1:{self.monitor_port}/{path}"
            with urllib.request.urlopen(address, timeout=5) as answer:
                return msgspec.json.decode(answer.read())
        except OSError:
            return None

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        assert self._process
        self._process.kill()
        self._process.wait(START_TIMEOUT_S)

    def pause(self) -> None:
        """Stop it without closing its connections."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Stop it, if it runs."""
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait(START_TIMEOUT_S)

    def new_stream(self, *options: str) -> str:
        """The URL of a stream that no other test uses."""
        more = f"?{'&'.join(options)}" if options else ""
        return f"nats://127.0.0.1:{self.port}/test-{next(_NUMBERS)}{more}"


_NUMBERS = itertools.count(1)


class NatsCluster:
    """Three servers that replicate streams to each other."""

    def __init__(self, directory: Path) -> None:
        self.servers = [NatsServer(directory, f"n{number}") for number in (1, 2, 3)]
        for server in self.servers:
            server.routes = [each.cluster_port for each in self.servers if each is not server]

    def start(self) -> "NatsCluster":
        """Start all and wait until they have a leader."""
        for server in self.servers:
            server.start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not all(self._has_leader(server) for server in self.servers):
            assert time.monotonic() < deadline, "the cluster has no leader"
            time.sleep(POLL_INTERVAL_S)
        return self

    @staticmethod
    def _has_leader(server: NatsServer) -> bool:
        state = server.asks("jsz") or {}
        cluster = state.get("meta_cluster", {})
        return bool(cluster.get("leader")) and cluster.get("cluster_size") == 3

    def stop(self) -> None:
        """Stop all."""
        for server in self.servers:
            server.stop()

    def new_stream(self) -> str:
        """The URL of a stream with three replicas."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"nats://{hosts}/test-{next(_NUMBERS)}"

    def leader_of(self, url: str) -> NatsServer:
        """The server that leads the stream of this URL."""
        stream = url.rpartition("/")[2].partition("?")[0]
        for server in self.servers:
            state = server.asks("jsz?streams=true") or {}
            for account in state.get("account_details", ()):
                for each in account.get("stream_detail", ()):
                    if each["name"] == stream:
                        name = each["cluster"]["leader"]
                        return next(one for one in self.servers if one.name == name)
        raise AssertionError(f"{stream} has no leader")


class SharedNats:
    """One server for all tests of this process, started by the first that needs it."""

    def __init__(self) -> None:
        self._server: NatsServer | None = None

    def server(self) -> NatsServer:
        """Started, until this process ends."""
        if self._server is None:
            directory = Path(tempfile.mkdtemp(prefix="accord-nats-"))
            self._server = NatsServer(directory)
            atexit.register(shutil.rmtree, directory, ignore_errors=True)
            atexit.register(self._server.stop)
            self._server.start()
        return self._server


SHARED_NATS = SharedNats()
