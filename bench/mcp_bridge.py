"""`accord mcp`: what a start costs, beside the SDK's server, and what an idle agent asks."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from bench.mcp_client import OLDER
from bench.report import Row, Spread, ratios, spread
from bench.servers import ROOT, Running, running_accord, temporary_directory

BRIDGE = [sys.executable, "-m", "accord", "mcp"]
HEARTBEAT_S = 30


class Scale(NamedTuple):
    """How thorough to be; `idle_s` is how long an agent does nothing."""

    rounds: int = 9
    idle_s: float = 2 * HEARTBEAT_S


TINY = Scale(1, 0.2)


class Figures(NamedTuple):
    """ms of CPU until `tools/list` is answered, one for each round; requests while idle."""

    accord_ms: list[float]
    sdk_ms: list[float]
    idle_s: float
    idle_requests: int


def send(to: IO[bytes], method: str, id: int | None = None, **params: Any) -> None:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    to.write(json.dumps(message | ({} if id is None else {"id": id})).encode() + b"\n")
    to.flush()


def shake_hands(process: "subprocess.Popen[bytes]") -> None:
    """From `initialize` to the answer to `tools/list`, as a host does at every start."""
    to, answers = process.stdin, process.stdout
    if to is None or answers is None:
        raise RuntimeError("no pipes")
    client = {"name": "bench", "version": "1"}
    send(to, "initialize", 0, protocolVersion=OLDER, capabilities={}, clientInfo=client)
    check(answers.readline(), "serverInfo")
    send(to, "notifications/initialized")
    send(to, "tools/list", 1)
    check(answers.readline(), "tools")


def check(line: bytes, key: str) -> None:
    answer = json.loads(line)
    if key not in answer.get("result", {}):
        raise RuntimeError(f"unexpected answer: {line[:500]!r}")


def cpu_ms(command: list[str], env: dict[str, str]) -> float:
    """CPU of a process that answers `tools/list` and ends with its input."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
        cwd=ROOT,
    )
    shake_hands(process)
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("no pipes")
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    return (usage.ru_utime + usage.ru_stime) * 1e3


def environment(server: Running, url: str) -> dict[str, str]:
    """For a bridge to this server, by the token that the server wrote down."""
    ready = json.loads((server.home / "ready.json").read_text())
    return {**os.environ, "ACCORD_URL": url, "ACCORD_TOKEN": ready["admin_token"]}


def http_url(server: Running) -> str:
    return server.url.replace("ws://", "http://").removesuffix("/ws")


class CountingProxy:
    """Passes bytes on to a server and counts the connections; the bridge opens one per request."""

    def __init__(self, server: Running) -> None:
        self.target = http_url(server).rpartition("/")[2]
        self.requests = 0

    async def serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._pass_on, "127.0.0.1", 0)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests += 1
        host, _, port = self.target.rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        await asyncio.gather(pump(reader, back), pump(there, writer))


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@contextmanager
def bridge(env: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A bridge whose agent says nothing of itself."""
    pipe = subprocess.PIPE
    with subprocess.Popen(BRIDGE, stdin=pipe, stdout=pipe, env=env, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.terminate()


async def idle_requests(server: Running, seconds: float) -> int:
    """How many requests a bridge makes while its agent does nothing."""
    proxy = CountingProxy(server)
    listener = await proxy.serve()
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    with bridge(environment(server, url)) as process:
        await asyncio.to_thread(shake_hands, process)
        before = proxy.requests
        await asyncio.sleep(seconds)
        made = proxy.requests - before
    listener.close()
    return made


def measure(where: str | None, scale: Scale) -> Figures:
    """Both in turns, then an agent that does nothing."""
    ours, theirs = [], []
    with temporary_directory(where) as home, running_accord(where) as server:
        env = environment(server, http_url(server))
        for number in range(scale.rounds):
            ours.append(cpu_ms(BRIDGE, env))
            theirs.append(cpu_ms(sdk_command(home / f"{number}.db"), env))
        made = asyncio.run(idle_requests(server, scale.idle_s))
    return Figures(ours, theirs, scale.idle_s, made)


def sdk_command(db: Path) -> list[str]:
    return [sys.executable, "-m", "bench.small_servers", "stdio", str(db)]


def rows(found: Figures) -> Iterator[Row]:
    """Each figure with its target."""
    ours: Spread = spread(found.accord_ms)
    ratio = ratios(found.accord_ms, found.sdk_ms)
    yield Row(
        "accord mcp to tools/list", f"{ours.text(0)} ms", "at most 60 ms CPU", ours.middle <= 60
    )
    yield Row("the same, to the SDK's", ratio.text(), "at most 0.08", ratio.middle <= 0.08)
    allowed = int(found.idle_s // HEARTBEAT_S)
    yield Row(
        f"requests of an idle agent in {found.idle_s:.0f} s",
        str(found.idle_requests),
        f"at most {allowed}, one heartbeat in {HEARTBEAT_S} s",
        found.idle_requests <= allowed,
    )
