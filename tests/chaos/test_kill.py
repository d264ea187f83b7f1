"""Kill a server with SIGKILL under load; every acknowledged message must survive, once, in order.

The server is killed 20 times by default and 1000 times with `ACCORD_LONG=1`; `ACCORD_ROUNDS` sets
another number. The random choices come from `tests.helpers.seeds`.
"""

import asyncio
import os
import random
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from accord.client import Client
from accord.core.kernel.messages import Body
from accord.core.room.conversation.responses import ResponseChunk, ResponseStart
from accord.operations.verify import check_all_streams, check_signatures, load_keys
from accord.stores.sqlite import SqliteLog
from tests.chaos.listener import Listener
from tests.chaos.load_clients import AcknowledgedCount, Approver, Speaker, Worker, people, prompt
from tests.chaos.stored_log import Acknowledging, StoredLog
from tests.helpers.seeds import LONG, run_seed
from tests.helpers.servers.fork_server import FORK_SERVER
from tests.helpers.servers.server_process import ServerProcess, run_server, spawn_process
from tests.spec import proves

ROUNDS = int(os.environ.get("ACCORD_ROUNDS", "1000" if LONG else "20"))
SEED = run_seed()
MOST_PER_ROUND = 150
# The start limit is a share of the measured start time; a server stops in about 0.1 s.
LONGEST_START = 1.2
LONGEST_STOP = 0.1
LONGEST_WAIT = 2.0
POLL = 0.001
# Every OFTEN rounds the real command is started instead of a fork, and the whole log is verified if
# it has grown by the factor GROWN since the last time.
OFTEN = 10
GROWN = 1.1


def chunk(n: int) -> Body:
    return ResponseChunk(f"claude:{n}")


def while_working(server: ServerProcess, rng: random.Random) -> None:
    """Kill at any moment."""


def while_starting(server: ServerProcess, rng: random.Random) -> None:
    """Kill during a start or just after it."""
    server.kill()
    server.launch()
    time.sleep(rng.uniform(0, LONGEST_START * server.startup_s))


def while_stopping(server: ServerProcess, rng: random.Random) -> None:
    """Kill during a graceful stop."""
    server.request_stop()
    time.sleep(rng.uniform(0, LONGEST_STOP))


def while_copying(server: ServerProcess, rng: random.Random) -> None:
    """Kill while a checkpoint writes into the database file."""
    file = server.home / "accord.db"
    before, end = file.stat().st_mtime_ns, time.monotonic() + LONGEST_WAIT
    while file.stat().st_mtime_ns == before and time.monotonic() < end:
        time.sleep(POLL)
    time.sleep(rng.uniform(0, 5 * POLL))


MOMENTS = (while_working, while_working, while_starting, while_stopping, while_copying)


@proves(
    "PVP-1.2-1",
    "PVP-3.2-2",
    "PVP-19.1-3",
    "PVP-19.5-1",
    "PVP-19.5-2",
    "OPEN-31",
    "OPEN-35",
    "OPEN-36",
    "OPEN-37",
    "UNI-7",
    "UNI-9",
    "UNI-11",
)
@pytest.mark.timeout(60 + 20 * ROUNDS)
async def test_acknowledged_messages_survive_every_kill(tmp_path: Path) -> None:
    print(f"ACCORD_SEED={SEED} ACCORD_ROUNDS={ROUNDS}")
    rng = random.Random(SEED)
    with run_server(tmp_path / "server") as server:
        async with people(server) as who, AsyncExitStack() as stack:
            one, two = await who["alice"].create(), await who["bob"].create()
            bob, claude = await who["bob"].join(one.id), await who["claude"].join(one.id)
            three = await who["alice"].create()
            working = await who["claude"].join(three.id)
            await who["claude"].join(two.id, listen=False)
            asked = (await one.send(prompt("alice")(0))).id
            start = (await claude.send(ResponseStart("claude", asked))).id
            speakers = [
                Speaker(one, lambda n: prompt("alice")(n + 1), None),
                Speaker(bob, prompt("bob"), None),
                Speaker(claude, chunk, start),
                Speaker(two, prompt("bob"), None),
            ]
            worker, approver = Worker(working), Approver(three)
            busy: list[Speaker | Worker] = [*speakers, worker]
            everybody: list[Acknowledging] = [*busy, approver]
            listening = [
                await stack.enter_async_context(Listener(each))
                for each in (one, bob, claude, two, working)
            ]
            tally, enough = AcknowledgedCount(), asyncio.Event()
            approving = tally.watch(asyncio.create_task(approver.approve()))
            tasks = [asyncio.create_task(each.speak(tally, enough)) for each in busy]
            speaking = [tally.watch(task) for task in tasks]
            ledger, proven = StoredLog(server.home, tmp_path / "copy"), 0

            for number in range(ROUNDS):
                whole = number % OFTEN == 0 and ledger.size >= GROWN * proven
                await tally.reach(tally.count + rng.randrange(MOST_PER_ROUND))
                await asyncio.to_thread(rng.choice(MOMENTS), server, rng)
                await asyncio.to_thread(server.kill)
                ledger.read(whole=whole)
                ledger.check(everybody)
                if whole:
                    proven = ledger.size
                    await chain_holds(server.home)
                server.spawn = FORK_SERVER.spawn if number % OFTEN else spawn_process
                await asyncio.to_thread(server.start)
                await same_over_http(who, ledger)
                for listener in listening:
                    listener.check()

            enough.set()
            await asyncio.gather(*speaking)
            for each, listener in zip(busy, listening, strict=True):
                await listener.until(each.acknowledged[-1].seq)
            approving.cancel()
            await asyncio.to_thread(server.stop)
            ledger.read(whole=True)
            ledger.check(everybody)
            for each, listener in zip(busy, listening, strict=True):
                kept = [said.id for said in ledger.of(each.session.id).said]
                heard = list(listener.ids)
                assert heard == kept[kept.index(heard[0]) :][: len(heard)], "not everything, once"
                assert {message.id for message in each.acknowledged} <= listener.ids.keys()
    assert worker.done
    each_grant_was_used_once(ledger, three.id, worker)
    await chain_holds(server.home)
    await asyncio.to_thread(verify_by_command, server.home)


def each_grant_was_used_once(ledger: StoredLog, session: str, worker: Worker) -> None:
    """Proposals, approvals, grants, uses and results must be equally many."""
    kinds = [said.kind for said in ledger.of(session).said]
    for kind in ("ToolPropose", "ToolApprove", "ToolResult"):
        assert kinds.count(kind) == len(worker.done), kind
    assert kinds.count("ToolExecute") == 2 * len(worker.done)


async def same_over_http(who: dict[str, Client], ledger: StoredLog) -> None:
    """The transcript over HTTP must begin with what the killed process had stored."""
    for page in ledger.rooms():
        session = page.stream.partition("/")[2]
        after = max(0, len(page.said) - MOST_PER_ROUND)
        read = [each.id async for each in who["claude"].history(session, after)]
        assert read[: len(page.said) - after] == [each.id for each in page.said[after:]]


async def chain_holds(home: Path) -> None:
    """The log must verify, with complete signatures."""
    log = await SqliteLog.open(str(home / "accord.db"))
    try:
        keys = await load_keys(log, home / "keys")
        signatures = await check_signatures(log, keys)
        findings = [each async for each in check_all_streams(log, keys)]
    finally:
        await log.close()
    assert findings
    assert signatures.problem is None
    for finding in findings:
        assert finding.holds, finding.problem


def verify_by_command(home: Path) -> None:
    """The same through the command line."""
    command = [sys.executable, "-m", "accord", "verify", "--data-dir", str(home)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "The log is intact." in said.stdout
