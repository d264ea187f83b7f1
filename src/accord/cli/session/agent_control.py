"""`accord session prompt` and `accord session stop`."""

import argparse
import sys
from typing import TYPE_CHECKING

from accord.cli import connection
from accord.show.text import one_line

if TYPE_CHECKING:
    from accord.client import Client

STDIN = "-"


def prompt_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the agent, the text, --context and --fork."""
    add = parser.add_argument
    add("agent", metavar="AGENT", help="the agent to ask")
    add("text", nargs="+", metavar="TEXT", help="the prompt; - reads standard input")
    add(
        "--context",
        action="append",
        default=[],
        metavar="KEY",
        help="a context item for the agent to read; may be repeated",
    )
    add("--fork", metavar="FORK", help="ask in this fork (default: the trunk)")


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the agent, the urgency, --message and --inject."""
    parser.add_argument(
        "agent", nargs="?", metavar="AGENT", help="the agent (default: every agent)"
    )
    how = parser.add_mutually_exclusive_group()
    add = how.add_argument
    add(
        "--pause",
        action="store_const",
        const="pause",
        dest="urgency",
        help="pause after the current tool call",
    )
    add(
        "--emergency",
        action="store_const",
        const="emergency",
        dest="urgency",
        help="stop, and reject the agent's open proposals",
    )
    parser.set_defaults(urgency="stop")
    parser.add_argument("--message", required=True, help="why, for the agent and the members")
    parser.add_argument("--inject", metavar="TEXT", help="additional context for the agent")


async def prompt(args: argparse.Namespace) -> None:
    """Send a prompt and print its id."""
    from accord.core.room.conversation.prompts import PromptSubmit
    from accord.show.output import print_json

    text = sys.stdin.read() if args.text == [STDIN] else " ".join(args.text)
    client = await connection.member_client(args, args.session)
    body = PromptSubmit(text, args.agent, (client.id,), tuple(args.context))
    receipt = await client.post(args.session, body, fork=args.fork)
    if args.json:
        print_json({"id": receipt.id, "seq": receipt.seq})
        return
    print(receipt.id)
    if sys.stderr.isatty() and await is_absent(client, args.session, args.agent):
        told = f"{one_line(args.agent)} is not connected; it gets the prompt when it comes back"
        print(f"accord: {told}", file=sys.stderr)


async def is_absent(client: "Client", session: str, agent: str) -> bool:
    """Whether the agent cannot have received the prompt yet."""
    from accord.core.room.state import ABSENT_PRESENCES

    members = (await client.session(session)).members
    return any(each.id == agent and each.presence in ABSENT_PRESENCES for each in members)


async def stop(args: argparse.Namespace) -> None:
    """Interrupt one agent or all; the server enforces it."""
    from accord.core.room.conversation.interrupts import InterruptRaise
    from accord.core.room.state import Urgency
    from accord.show.output import print_json

    client = await connection.member_client(args, args.session)
    body = InterruptRaise(Urgency(args.urgency), args.message, args.agent, args.inject)
    receipt = await client.post(args.session, body)
    halted = dict((await client.session(args.session)).halted)
    if args.json:
        print_json({"message": receipt.id, "seq": receipt.seq, "halted": halted})
    else:
        print(stop_sentence(args.agent or "Every agent", args.urgency))


def stop_sentence(target: str, urgency: str) -> str:
    """What the interrupt means for the agent."""
    if urgency == "pause":
        return f"{target} was asked to pause after the current tool call."
    return f"{target} cannot propose or run anything until the next prompt."
