"""A client of `/mcp` and of small servers: requests made beforehand, and what they cost."""

import asyncio
import json
import time
from collections.abc import Sequence
from itertools import cycle
from statistics import median
from typing import Any, NamedTuple

from bench.servers import Running

META = "io.modelcontextprotocol/"
MODERN = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}}
OLDER = "2025-06-18"
WARM_UP = 50


class Load(NamedTuple):
    """Requests for one server, sent one after the other and over again."""

    server: Running
    requests: Sequence[bytes]


class Connection:
    """A connection that is kept open."""

    async def connect(self, server: Running) -> None:
        host, _, port = server.url.partition("://")[2].partition("/")[0].rpartition(":")
        self.reader, self.writer = await asyncio.open_connection(host, int(port))

    async def exchange(self, request: bytes) -> tuple[bytes, bytes]:
        """Head and body of the response; RuntimeError for a refusal."""
        self.writer.write(request)
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

    def close(self) -> None:
        self.writer.close()


def http_request(path: str, headers: dict[str, str], content: Any) -> bytes:
    """A POST of JSON."""
    body = json.dumps(content).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1:7420", "Content-Type: application/json"]
    lines += ["Accept: application/json, text/event-stream", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def tool_call(path: str, name: str, arguments: Any) -> bytes:
    """A call of a tool in the newest revision."""
    params = {"name": name, "arguments": arguments, "_meta": MODERN}
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
    return http_request(path, headers, rpc("tools/call", params))


def rpc(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def result_of(content: bytes) -> Any:
    return json.loads(content)["result"]["structuredContent"]


async def ask(server: Running, request: bytes) -> tuple[bytes, bytes]:
    """One request on a connection of its own."""
    connection = Connection()
    await connection.connect(server)
    try:
        return await connection.exchange(request)
    finally:
        connection.close()


async def session_headers(server: Running, path: str) -> dict[str, str]:
    """The headers of a session of an older revision."""
    info = {"name": "bench", "version": "1"}
    params = {"protocolVersion": OLDER, "capabilities": {}, "clientInfo": info}
    head, _ = await ask(server, http_request(path, {}, rpc("initialize", params)))
    found = (line for line in head.decode().split("\r\n") if line.lower().startswith("mcp-session"))
    return {"Mcp-Session-Id": next(found).split(": ")[1], "Mcp-Protocol-Version": OLDER}


async def cpu_us(load: Load, clients: int, seconds: float, count: int | None = None) -> float:
    """µs of the server's CPU for a request, for so many seconds or requests."""
    opened = [Connection() for _ in range(clients)]
    for one in opened:
        await one.connect(load.server)
    requests = cycle(load.requests)
    for _ in range(WARM_UP):
        await opened[0].exchange(next(requests))
    done, until = 0, time.perf_counter() + seconds
    before = load.server.cpu_s

    async def work(connection: Connection) -> None:
        nonlocal done
        while time.perf_counter() < until if count is None else done < count:
            done += 1
            await connection.exchange(next(requests))

    await asyncio.gather(*map(work, opened))
    used = load.server.cpu_s - before
    for one in opened:
        one.close()
    return used / done * 1e6


async def p50_ms(load: Load, count: int) -> float:
    """How long one client waits for an answer, in the middle."""
    one = Connection()
    await one.connect(load.server)
    requests = cycle(load.requests)
    times = []
    for _ in range(WARM_UP + count):
        began = time.perf_counter()
        await one.exchange(next(requests))
        times.append((time.perf_counter() - began) * 1000)
    one.close()
    return median(times[WARM_UP:])
