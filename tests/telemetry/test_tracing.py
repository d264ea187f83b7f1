"""Traces are optional and contain times and ids, never content."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import copy_context
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from accord.engine.counters import TimedSpan
from accord.telemetry.tracing import Tracing
from tests.helpers.attacks.approval_scene import PROMPT, get, scene
from tests.helpers.clients.http_client import HttpClient
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.telemetry.test_metrics import scraped, value

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


async def until_signed(server: ServerProcess) -> None:
    """The worker that signs has done so once, which it does in its own time."""
    while not value(await scraped(server), "accord_worker_act_seconds_count", worker="heads"):
        pass


async def test_spans_reach_the_collector_without_content(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    with run_server(tmp_path, "token", "--otel", "on") as server:
        here = await scene(server)
        await here.alice.send("prompt.submit", here.session, PROMPT | {"content": MARK})
        await here.alice.receive_until("prompt.submit")
        await get(f"{server.url}/sessions/{here.session}", server.admin_token)
        await here.alice.socket.close()
        await here.bot.socket.close()
        await until_signed(server)
        server.stop()

    assert collector.services == {"accord"}
    stream = f"room/{here.session}"
    assert stream in {span["accord.stream"] for span in collector.named("store.commit")}
    assert stream in {span["accord.stream"] for span in collector.named("messages.handle")}
    assert {"accord.worker": "heads"} in collector.named("worker.act")
    assert "/sessions/{id}" in {span["http.route"] for span in collector.named("http.request")}
    assert all(0 < s.start_time_unix_nano <= s.end_time_unix_nano for s in collector.spans)
    assert MARK.encode() not in collector.raw


async def test_spans_are_children_of_the_request_and_its_caller(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    with run_server(tmp_path, "token", "--otel", "on") as server:
        alice = HttpClient.with_token(server, "alice", roles=["admin", "driver"])
        session = await alice.create()
        alice.http.headers["traceparent"] = f"00-{trace}-{caller}-01"
        item = {"key": "k", "content_type": "text", "content": MARK}
        await alice.send("context.add", session, item)
        alice.http.headers["traceparent"] = "00-nonsense"
        await alice.poll(session)
        await alice.close()
        await until_signed(server)
        server.stop()

    (request,) = [each for each in collector.spans if each.parent_span_id.hex() == caller]
    assert (request.name, request.trace_id.hex()) == ("http.request", trace)
    (handle,) = [each for each in collector.spans if each.parent_span_id == request.span_id]
    assert handle.name == "messages.handle"
    parts = [each for each in collector.spans if each.parent_span_id == handle.span_id]
    assert {each.name for each in parts} == {"store.commit", "messages.deliver"}
    for each in (handle, *parts):
        assert each.trace_id.hex() == trace
        assert request.start_time_unix_nano <= each.start_time_unix_nano
    assert all(each.end_time_unix_nano <= handle.end_time_unix_nano for each in parts)
    roots = [each for each in collector.spans if not each.parent_span_id]
    assert {each.name for each in roots} == {"http.request", "messages.handle", "worker.act"}
    assert MARK.encode() not in collector.raw


def test_timer_work_is_not_part_of_an_answered_request(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    kept = InMemorySpanExporter()
    tracing = Tracing()
    tracing.provider.add_span_processor(SimpleSpanProcessor(kept))
    with tracing.request((), {"status": 200}):
        later = copy_context()
        tracing.span(TimedSpan("messages.handle", 1.0, 2.0), [TimedSpan("store.commit", 1.0, 1.5)])
    later.run(tracing.span, TimedSpan("messages.handle", 3.0, 4.0))
    spans = kept.get_finished_spans()
    # Its thread would go on in this process, and retry with random pauses beside later tests.
    tracing.provider.shutdown()

    assert [each.name for each in spans] == [
        "store.commit",
        "messages.handle",
        "http.request",
        "messages.handle",
    ]
    commit, handle, request, late = spans
    assert commit.parent == handle.context
    assert handle.parent == request.context
    assert (request.parent, late.parent) == (None, None)
    assert (handle.end_time or 0) - (handle.start_time or 0) == 10**9


async def test_unreachable_collector_does_not_block_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    with run_server(tmp_path, "token", "--otel", "on") as server:
        await get(f"{server.url}/healthz")
        server.stop()


def without_packages(home: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """A server where none of it is installed."""
    words = [sys.executable, "-c", WITHOUT, "serve", "--data-dir", str(home), *flags]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def test_missing_packages_are_named(tmp_path: Path) -> None:
    ended = without_packages(tmp_path, "--port", "0", "--otel", "on")

    assert ended.returncode == 2
    assert "pip install 'accord[otel]'" in ended.stderr


def test_disabled_tracing_imports_nothing(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    words = ["serve", "--data-dir", str(tmp_path), "--port", "0", "--ready-file", str(ready)]
    server = subprocess.Popen([sys.executable, "-c", WITHOUT, *words], stderr=subprocess.PIPE)
    while not ready.exists():
        assert server.poll() is None
    server.terminate()
    _, said = server.communicate(timeout=60)

    assert server.returncode == 0
    assert b"stack" not in said
