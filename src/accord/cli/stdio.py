"""Speak PVP on standard input and output, one JSON envelope per line.

For programs of this machine that would rather not open a WebSocket. What is written to standard
input goes to the server at ACCORD_URL as whoever ACCORD_TOKEN says; what their sessions hear comes
out of standard output. The end of input leaves every session that was joined. Lost connections are
made again and nothing is heard twice; what could not be sent is answered with TRANSPORT_ERROR and
may be sent again with the same id. Everything else is said on standard error, also that the
server is away and that it answers again.

Examples:
  accord stdio
  ./my-agent <to-agent | accord stdio >to-agent
"""

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from accord.cli import where
from accord.core.kernel.refusal import Refused, Why

if TYPE_CHECKING:
    from accord.cli.pipes import Output
    from accord.cli.relay import Relay
    from accord.client.identity import Identity
    from accord.settings import Settings

FLUSH_SECONDS = 5
STOPPING = (signal.SIGTERM, signal.SIGINT)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which server."""
    parser.add_argument("--url", help=f"the server (default: ACCORD_URL, or {where.DEFAULT_URL})")


def run(args: argparse.Namespace) -> int:
    """Until the input ends, or somebody stops us."""
    return asyncio.run(converse(args.url))


async def converse(url: str | None) -> int:
    """Lines in, lines out, and a goodbye."""
    from accord.cli.absence import Absence
    from accord.cli.address import checked
    from accord.cli.pipes import Output
    from accord.cli.relay import Relay
    from accord.client.backoff import Retry
    from accord.client.identity import address, fresh_runtime

    known = where.settings(url)
    place = address(checked(known.url or where.DEFAULT_URL))
    relay, out = Relay(place, speaker(known), fresh_runtime(), Retry()), Output(1)
    relay.put, relay.room = out.put, out.room
    relay.watch = Absence(place.base)
    link = asyncio.create_task(relay.run(), name="accord link")
    try:
        await until(link, asyncio.create_task(relay.connected.wait()))
        await talk(relay, out, link)
        await until(link, asyncio.create_task(goodbye(relay)))
    finally:
        link.cancel()
        await asyncio.gather(link, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await out.flushed()
    if out.broken.is_set():
        raise BrokenPipeError
    return 0


def speaker(known: "Settings") -> "Identity":
    """Whoever the token says; without one the server knows by what is said first."""
    from accord.client.identity import DEFAULT_ROLES, Identity, identity, read

    if not known.token:
        return Identity("", "human", "", DEFAULT_ROLES)
    if read(known.token) is None:
        raise Refused(Why.UNAUTHENTICATED, "What is in ACCORD_TOKEN is no token of Accord")
    return identity(known.token, None, None)


async def talk(relay: "Relay", out: "Output", link: "asyncio.Task[None]") -> None:
    """Until the input ends, nobody reads, or a signal comes."""
    from accord.cli.pipes import Input
    from accord.client.envelope import LARGEST_FRAME

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in STOPPING:
        loop.add_signal_handler(each, stop.set)
    await until(
        link,
        asyncio.create_task(Input(sys.stdin.fileno(), LARGEST_FRAME).read(relay.take)),
        asyncio.create_task(stop.wait()),
        asyncio.create_task(out.broken.wait()),
    )


async def goodbye(relay: "Relay") -> None:
    """Leave; refused where nobody heard of it."""
    try:
        await relay.leave()
    except TimeoutError:
        sentence = "the server could not be told that we leave; it will notice by itself"
        raise Refused(Why.LATE, sentence) from None


async def until(link: "asyncio.Task[None]", *others: "asyncio.Task[object]") -> None:
    """One of the others is over; raises what ended it, or the link."""
    try:
        await asyncio.wait({link, *others}, return_when=asyncio.FIRST_COMPLETED)
        for each in (link, *others):
            if each.done():
                each.result()
    finally:
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)
