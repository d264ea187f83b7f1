"""Posts over MCP: CPU, latency and memory, beside two small servers in the same run."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.machine import cores
from bench.servers import ROOT, Running, on_core, running_accord, stop, temporary_directory

META = "io.modelcontextprotocol/"
MODERN = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
CLIENTS = 16
BODY = "The mapper drops null fields; see the finding on line 42. " * 4
WARM_UP = 50


class Posts(NamedTuple):
    """What one server did."""

    per_cpu_s: float
    p50_ms: float
    rss_kib: int


class Figures(NamedTuple):
    """All servers of one run."""

    modern: Posts
    older: Posts
    starlette: Posts
    single: Posts
    sdk: Posts
    idle_kib: int
    sdk_idle_kib: int


class Connection:
    """One kept-alive connection that posts."""

    def __init__(self, path: str, headers: dict[str, str]) -> None:
        lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1:7420", "Content-Type: application/json"]
        lines += ["Accept: application/json, text/event-stream"]
        self.head = "\r\n".join([*lines, *(f"{k}: {v}" for k, v in headers.items())])

    async def connect(self, port: int) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)

    async def post(self, body: bytes) -> tuple[bytes, bytes]:
        """Head and body of the response."""
        self.writer.write(f"{self.head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        size = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        content = await self.reader.readexactly(size)
        if b" 200 " not in head[:16] or b'"isError":true' in content:
            raise RuntimeError(f"refused: {content[:500]!r}")
        return head, content


def call(name: str, arguments: Any, *, modern: bool) -> bytes:
    params = {"name": name, "arguments": arguments} | ({"_meta": MODERN} if modern else {})
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    ).encode()


def modern_headers(name: str) -> dict[str, str]:
    return {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}


async def open_session(path: str, port: int) -> dict[str, str]:
    """The headers of a session of an older revision."""
    opening = Connection(path, {})
    await opening.connect(port)
    info = {"name": "bench", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    head, _ = await opening.post(json.dumps(request).encode())
    found = (line for line in head.decode().split("\r\n") if line.lower().startswith("mcp-session"))
    opening.writer.close()
    return {"Mcp-Session-Id": next(found).split(": ")[1], "Mcp-Protocol-Version": "2025-06-18"}


async def measure_posts(
    server: Running, path: str, headers: dict[str, str], body: bytes, seconds: float
) -> Posts:
    """Posts per CPU-second of the server with 16 clients, then the latency of one client."""
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    clients = [Connection(path, headers) for _ in range(CLIENTS)]
    await asyncio.gather(*(each.connect(port) for each in clients))
    for _ in range(WARM_UP):
        await clients[0].post(body)
    count, until, before = 0, time.perf_counter() + seconds, server.cpu_s

    async def work(client: Connection) -> None:
        nonlocal count
        while time.perf_counter() < until:
            await client.post(body)
            count += 1

    await asyncio.gather(*map(work, clients))
    per_cpu_s = count / (server.cpu_s - before)
    times = []
    for _ in range(max(20, int(100 * seconds))):
        began = time.perf_counter()
        await clients[0].post(body)
        times.append((time.perf_counter() - began) * 1000)
    for client in clients:
        client.writer.close()
    return Posts(per_cpu_s, median(times), server.rss_kib)


@contextmanager
def small_server(kind: str, home: Path) -> Iterator[Running]:
    """One of the two small servers."""
    words = [sys.executable, "-m", "bench.small_servers", kind, str(home / f"{kind}.db")]
    process = subprocess.Popen(
        [*words, *on_core(cores()[0])], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        yield Running(f"http://127.0.0.1:{line.split()[1]}", process.pid, home)
    finally:
        stop(process)


async def measure_accord(server: Running, seconds: float) -> tuple[Posts, Posts]:
    """The newest revision, and one with sessions."""
    path = "/mcp?as=claude"
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    maker = Connection(path, modern_headers("create_thread"))
    await maker.connect(port)
    wish = {"title": "bench", "participants": ["claude"]}
    _, made = await maker.post(call("create_thread", wish, modern=True))
    maker.writer.close()
    thread = json.loads(made)["result"]["structuredContent"]["thread_id"]
    post = {"thread_id": thread, "schema_version": 1, "body": BODY}
    newest = await measure_posts(
        server,
        path,
        modern_headers("post_message"),
        call("post_message", post, modern=True),
        seconds,
    )
    session = await open_session(path, port)
    older = await measure_posts(
        server, path, session, call("post_message", post, modern=False), seconds
    )
    return newest, older


def measure(where: str | None, seconds: float) -> Figures:
    """All servers, one after the other on the same core."""
    plain = json.dumps({"thread_id": "th_1", "body": BODY}).encode()
    post = {"thread_id": "th_1", "schema_version": 1, "body": BODY}
    with running_accord(where) as server:
        idle_kib = server.rss_kib
        modern, older = asyncio.run(measure_accord(server, seconds))
    found = []
    with temporary_directory(where) as home:
        for kind in ("starlette", "single"):
            with small_server(kind, home) as server:
                found.append(asyncio.run(measure_posts(server, "/post", {}, plain, seconds)))
        with small_server("sdk", home) as server:
            sdk_idle_kib = server.rss_kib
            body, headers = call("post_message", post, modern=True), modern_headers("post_message")
            sdk = asyncio.run(measure_posts(server, "/mcp", headers, body, seconds))
    return Figures(modern, older, found[0], found[1], sdk, idle_kib, sdk_idle_kib)
