"""Traces are for whoever asks for them, and hold times and ids, never content."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.helpers.server import a_server
from tests.security.scene import PROMPT, get, scene

MARK = "xyzzy-content-7f3a"
WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
from accord.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


class Collector:
    """A real receiver of OTLP over HTTP."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()
        self.raw = b""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.take(self.path, body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def take(self, path: str, body: bytes) -> None:
        assert path == "/v1/traces"
        self.raw += body
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for resource in request.resource_spans:
            self.services |= {
                each.value.string_value
                for each in resource.resource.attributes
                if each.key == "service.name"
            }
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def named(self, name: str) -> list[dict[str, Any]]:
        return [
            {each.key: each.value.string_value or each.value.int_value for each in span.attributes}
            for span in self.spans
            if span.name == name
        ]


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


async def test_what_the_server_does_reaches_the_collector_without_content(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    with a_server(tmp_path, "token", "--otel", "on") as server:
        here = await scene(server)
        await here.alice.say("prompt.submit", here.session, PROMPT | {"content": MARK})
        await here.alice.hear_until("prompt.submit")
        await get(f"{server.url}/sessions/{here.session}", server.admin_token)
        await here.alice.socket.close()
        await here.bot.socket.close()
        server.stop()

    assert collector.services == {"accord"}
    stream = f"room/{here.session}"
    assert stream in {span["accord.stream"] for span in collector.named("store.commit")}
    assert stream in {span["accord.stream"] for span in collector.named("messages.handle")}
    assert {"accord.worker": "heads"} in collector.named("worker.act")
    assert "/sessions/{id}" in {span["http.route"] for span in collector.named("http.request")}
    assert all(0 < s.start_time_unix_nano <= s.end_time_unix_nano for s in collector.spans)
    assert MARK.encode() not in collector.raw


async def test_a_collector_that_is_gone_keeps_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    with a_server(tmp_path, "token", "--otel", "on") as server:
        await get(f"{server.url}/healthz")
        server.stop()


def without_packages(home: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """A server where none of it is installed."""
    words = [sys.executable, "-c", WITHOUT, "serve", "--data-dir", str(home), *flags]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def test_without_the_packages_it_says_what_to_install(tmp_path: Path) -> None:
    ended = without_packages(tmp_path, "--port", "0", "--otel", "on")

    assert ended.returncode == 2
    assert "pip install 'accord[otel]'" in ended.stderr


def test_who_does_not_ask_for_it_imports_nothing_of_it(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    words = ["serve", "--data-dir", str(tmp_path), "--port", "0", "--ready-file", str(ready)]
    server = subprocess.Popen([sys.executable, "-c", WITHOUT, *words], stderr=subprocess.PIPE)
    while not ready.exists():
        assert server.poll() is None
    server.terminate()
    _, said = server.communicate(timeout=30)

    assert server.returncode == 0
    assert b"stack" not in said
