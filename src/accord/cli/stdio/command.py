"""Speak PVP on standard input and output, one JSON envelope per line.

For local programs that do not want to use WebSockets. Lines on standard input are sent to the
server at ACCORD_URL with the token in ACCORD_TOKEN; messages of the joined sessions are written to
standard output. The end of input closes the connection and leaves no session: send session.leave to
leave one. Lost connections are restored, and no message is delivered twice. A message that could
not be sent gets a TRANSPORT_ERROR in response and may be sent again with the same id. Connection
problems are reported on standard error.

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

from accord.cli import connection
from accord.core.kernel.refusal import Reason, Refused

if TYPE_CHECKING:
    from accord.cli.stdio.line_io import LineWriter
    from accord.cli.stdio.relay import StdioRelay
    from accord.client.identity import Identity
    from accord.settings.client import Settings

FLUSH_TIMEOUT_S = 5
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url", help=f"the server (default: ACCORD_URL, or {connection.DEFAULT_URL})"
    )


def run(args: argparse.Namespace) -> int:
    """Relay until the input ends or a signal arrives."""
    return asyncio.run(run_relay(args.url))


async def run_relay(url: str | None) -> int:
    """Connect, relay lines in both directions, then wait for the last responses."""
    from accord.cli.connection_notice import ConnectionNotice
    from accord.cli.server_url import check_url
    from accord.cli.stdio.line_io import LineWriter
    from accord.cli.stdio.relay import StdioRelay
    from accord.client.connection.backoff import RetryPolicy
    from accord.client.connection.reconnect import ReconnectLoop
    from accord.client.identity import new_runtime_id, parse_address

    known = connection.resolve_settings(url)
    place = parse_address(check_url(known.url or connection.DEFAULT_URL))
    notice = ConnectionNotice(place.base_url)
    loop = ReconnectLoop(place, identity_of(known), new_runtime_id(), RetryPolicy(), notice)
    relay, out = StdioRelay(loop), LineWriter(1)
    relay.put, relay.wait_for_room = out.put, out.wait_for_room
    link = asyncio.create_task(relay.run(), name="accord link")
    try:
        await wait_for_any(link, asyncio.create_task(relay.connected.wait()))
        await relay_until_stopped(relay, out, link)
        await wait_for_any(link, asyncio.create_task(finish(relay)))
    finally:
        link.cancel()
        await asyncio.gather(link, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                await out.wait_flushed()
    if out.broken.is_set():
        raise BrokenPipeError
    return 0


def identity_of(known: "Settings") -> "Identity":
    """The identity in the token; without a token the first message provides it."""
    from accord.client.identity import DEFAULT_ROLES, Identity, read_claims, resolve_identity

    if not known.token:
        return Identity("", "human", "", DEFAULT_ROLES)
    if read_claims(known.token) is None:
        raise Refused(
            Reason.UNAUTHENTICATED,
            "ACCORD_TOKEN does not hold an Accord token; `accord token issue` makes one",
        )
    return resolve_identity(connection.token_of(known), None, None)


async def relay_until_stopped(
    relay: "StdioRelay", out: "LineWriter", link: "asyncio.Task[None]"
) -> None:
    """Relay until the input ends, the output is closed, or a signal arrives."""
    from accord.cli.stdio.line_io import LineReader
    from accord.client.envelope import MAX_FRAME_BYTES

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.set)
    await wait_for_any(
        link,
        asyncio.create_task(LineReader(sys.stdin.fileno(), MAX_FRAME_BYTES).read(relay.send_line)),
        asyncio.create_task(stop.wait()),
        asyncio.create_task(out.broken.wait()),
    )


async def finish(relay: "StdioRelay") -> None:
    """Wait for the last responses; refuses if the server does not answer in time."""
    try:
        await relay.finish()
    except TimeoutError:
        sentence = "the server did not answer the last messages; send them again with the same ids"
        raise Refused(Reason.TIMED_OUT, sentence) from None


async def wait_for_any(link: "asyncio.Task[None]", *others: "asyncio.Task[object]") -> None:
    """Wait for the first of the other tasks; raises its error, or the link's."""
    try:
        await asyncio.wait({link, *others}, return_when=asyncio.FIRST_COMPLETED)
        for task in (link, *others):
            if task.done():
                task.result()
    finally:
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
