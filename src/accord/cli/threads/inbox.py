"""See which threads you have not read, and what waits for your answer.

Reading the inbox acknowledges nothing: a message stays unread until `accord thread read --ack` or
`accord thread ack`. With --watch, new messages are printed as they arrive; their senders see them
as seen if they appear on a terminal, and with --seen also if a file or a program takes them.

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
    parser.add_argument(
        "--seen",
        action="store_true",
        help="with --watch: count messages as seen although the output is not a terminal",
    )
    connection.arguments(parser)


def run(args: argparse.Namespace) -> int:
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

    home = await client.home()
    unread, questions = home.unread_threads, home.questions
    if args.json:
        print_json({"threads": unread, "questions": questions})
        return
    if unread:
        rendering.print_threads(unread)
        print(f"\nTo read the first:\n  accord thread read {unread[0].thread_id} --ack")
    else:
        print(style.green("Nothing unread."))
    if questions:
        print("\nWaiting for you:")
        for line in map(rendering.question_line, questions):
            print(f"  {line}")
