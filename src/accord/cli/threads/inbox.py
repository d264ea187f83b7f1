"""See which threads have messages that you have not read.

Reading the inbox acknowledges nothing: a message stays unread until `accord thread read --ack` or
`accord thread ack`. With --watch, new messages are printed as they arrive.

Examples:
  accord inbox
  accord inbox --watch
  accord inbox --json
"""

import argparse
from typing import TYPE_CHECKING

from accord.cli import connection

if TYPE_CHECKING:
    from accord.client import Client


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add --watch and the connection flags."""
    parser.add_argument(
        "--watch", action="store_true", help="keep printing messages that arrive; Ctrl-C stops"
    )
    connection.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the inbox."""
    import asyncio

    from accord.cli.threads.watch import watch

    client = connection.client_for(args)
    asyncio.run(watch(client, args) if args.watch else show(client, args))
    return 0


async def show(client: "Client", args: argparse.Namespace) -> None:
    """A table of unread threads, and how to read the first."""
    from accord.cli.threads import rendering
    from accord.show import style
    from accord.show.output import print_json

    unread = (await client.home()).unread_threads
    if args.json:
        print_json({"threads": unread})
    elif unread:
        rendering.print_threads(unread)
        print(f"\nTo read the first:\n  accord thread read {unread[0].thread_id} --ack")
    else:
        print(style.green("Nothing unread."))
