"""The load: sessions × participants, each sender with a bounded number of events in flight.

Runs as a process of its own, on a core of its own. It prints START and END around the time that
counts, so that whoever started it reads the server's CPU time at those moments, and then one line
of JSON. Every sender waits for its own events to come back, so what is counted was delivered.
"""

import argparse
import asyncio
import collections
import gc
import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import uvloop
from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect

from bench.adapters import Adapter, adapter_of, is_event
from bench.machine import pin

TEXT = WSMsgType.TEXT
SEQ = re.compile(rb'"seq":(\d+)')
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
READY_SECONDS = 30
DRAIN_SECONDS = 10
now = time.perf_counter


class Tally:
    """What all clients count together."""

    __slots__ = (
        "acks",
        "counter",
        "errors",
        "faults",
        "gaps",
        "latencies",
        "measuring",
        "ready",
        "received",
        "sent",
        "stopped",
    )

    def __init__(self) -> None:
        self.counter = int(time.time() * 1000) % 10**9 * 10**9
        self.ready = self.sent = self.acks = self.received = self.errors = self.gaps = 0
        self.measuring = self.stopped = False
        self.latencies: list[float] = []
        self.faults: list[Exception] = []


class Client(WSListener):
    """One participant."""

    def __init__(self, adapter: Adapter, tally: Tally, i: int, j: int, *, sends: bool) -> None:
        self.adapter, self.tally = adapter, tally
        self.i, self.j, self.sends = i, j, sends
        self.event = adapter.event
        self.own = adapter.own(i, j)
        self.waiting: collections.deque[float] = collections.deque()
        self.owed = 0
        self.is_ready = False
        # One receiver checks that everything comes, once and in order.
        self.checks = i == 0 and j == 0
        self.last: int | None = None

    def on_ws_connected(self, transport: WSTransport) -> None:
        self.transport = transport
        hello = self.adapter.hello(self.i, self.j)
        for frame in hello:
            transport.send(TEXT, frame)
        if not hello:
            self._mark_ready()

    def _mark_ready(self) -> None:
        self.is_ready = True
        self.tally.ready += 1

    def fill(self, count: int) -> None:
        """Send so many more."""
        tally, at = self.tally, now()
        send = self.transport.send
        for _ in range(count):
            tally.counter += 1
            self.waiting.append(at)
            send(TEXT, self.event(self.i, self.j, tally.counter))
        tally.sent += count

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:  # noqa: ARG002
        if frame.msg_type is not TEXT:
            return
        payload = frame.get_payload_as_bytes()
        if not self.is_ready:
            self._wait(payload)
            return
        if not is_event(payload):
            self._record_error(payload)
            return
        tally = self.tally
        if self.checks:
            self._check(payload)
        tally.received += 1
        if self.sends and self.own in payload:
            tally.acks += 1
            sent_at = self.waiting.popleft()
            if tally.measuring:
                tally.latencies.append(now() - sent_at)
            if not tally.stopped:
                self.owed += 1
        if frame.last_in_buffer and self.owed:
            owed, self.owed = self.owed, 0
            self.fill(owed)

    def _wait(self, payload: bytes) -> None:
        try:
            if self.adapter.ready(self.i, self.j, payload):
                self._mark_ready()
        except Exception as error:  # noqa: BLE001 - raised where the run is awaited
            self.tally.faults.append(error)

    def _record_error(self, payload: bytes) -> None:
        self.tally.errors += 1
        if self.tally.errors < 4:
            print("unexpected frame:", payload[:300], file=sys.stderr)

    def _check(self, payload: bytes) -> None:
        found = SEQ.search(payload[-40:])
        seq = int(found.group(1)) if found else -1
        if self.last is not None and seq != self.last + 1:
            self.tally.gaps += 1
        self.last = seq


async def until(done: Callable[[], bool], seconds: float) -> bool:
    """Whether it came to be in that time."""
    for _ in range(int(seconds / 0.05)):
        if done():
            return True
        await asyncio.sleep(0.05)
    return done()


async def connect_all(args: argparse.Namespace, adapter: Adapter, tally: Tally) -> list[Client]:
    """Everybody, joined and ready to send."""
    clients: list[Client] = []
    for i in range(args.sessions):
        for j in range(args.participants):
            client = Client(adapter, tally, i, j, sends=j < args.senders)
            await ws_connect(lambda client=client: client, adapter.url(args.url, i, j))
            clients.append(client)
    await until(lambda: tally.ready == len(clients) or bool(tally.faults), READY_SECONDS)
    if tally.faults:
        raise tally.faults[0]
    if tally.ready < len(clients):
        raise RuntimeError(f"only {tally.ready} of {len(clients)} participants became ready")
    return clients


async def run(args: argparse.Namespace, adapter: Adapter) -> dict[str, Any]:
    """Warm up, measure, stop sending, and wait for what is under way."""
    tally = Tally()
    clients = await connect_all(args, adapter, tally)
    for client in clients:
        if client.sends:
            client.fill(args.inflight)
    await asyncio.sleep(min(1.0, args.secs / 3))
    tally.measuring = True
    acks, received, began = tally.acks, tally.received, now()
    print("START", flush=True)
    await asyncio.sleep(args.secs)
    took = now() - began
    result = {
        "secs": took,
        "events_s": (tally.acks - acks) / took,
        "deliveries_s": (tally.received - received) / took,
    }
    print("END", flush=True)
    tally.measuring, tally.stopped = False, True
    await until(lambda: not any(client.waiting for client in clients), DRAIN_SECONDS)
    latencies = sorted(tally.latencies)
    for client in clients:
        client.transport.disconnect()
    return result | {
        "p50_ms": percentile(latencies, 0.5),
        "p99_ms": percentile(latencies, 0.99),
        "sent": tally.sent,
        "acked": tally.acks,
        "delivered": tally.received,
        "errors": tally.errors,
        "gaps": tally.gaps,
        "load_cpu_s": time.process_time(),
        "sessions": adapter.sessions(args.sessions),
    }


def percentile(latencies: list[float], share: float) -> float | None:
    """A percentile in milliseconds."""
    return latencies[int(len(latencies) * share)] * 1e3 if latencies else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--adapter", default="probe", choices=["probe", "agents", "drivers"])
    parser.add_argument("--run", default="", help="makes session ids fresh")
    parser.add_argument("--sessions", type=int, default=5)
    parser.add_argument("--participants", type=int, default=10)
    parser.add_argument("--senders", type=int, default=10)
    parser.add_argument("--inflight", type=int, default=16)
    parser.add_argument("--secs", type=float, default=4.0)
    parser.add_argument("--core", type=int, help="stay on this core")
    args = parser.parse_args()
    if urlsplit(args.url).hostname not in LOOPBACK:
        parser.error("loopback only")
    pin(args.core)
    gc.freeze()
    adapter = adapter_of(args.adapter, args.run, args.senders)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(args, adapter))), flush=True)


if __name__ == "__main__":
    main()
