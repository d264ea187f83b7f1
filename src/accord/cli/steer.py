"""Asking and stopping agents: `accord session prompt` and `accord session stop`."""

import argparse
import sys
from typing import TYPE_CHECKING

from accord.cli import where

if TYPE_CHECKING:
    from accord.client import Client

STDIN = "-"


def prompt_arguments(parser: argparse.ArgumentParser) -> None:
    """Whom, what, and with what before them."""
    add = parser.add_argument
    add("agent", metavar="AGENT", help="which agent is asked")
    add("text", nargs="+", metavar="TEXT", help="what is asked; - reads it from standard input")
    add("--context", action="append", default=[], metavar="KEY", help="context to look at")
    add("--fork", metavar="FORK", help="ask in this fork")


def stop_arguments(parser: argparse.ArgumentParser) -> None:
    """Whom, how hard, and why."""
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="default: every agent")
    how = parser.add_mutually_exclusive_group()
    add = how.add_argument
    add("--pause", action="store_const", const="pause", dest="urgency", help="after this tool")
    add(
        "--emergency",
        action="store_const",
        const="emergency",
        dest="urgency",
        help="and reject what it has asked for",
    )
    parser.set_defaults(urgency="stop")
    parser.add_argument("--message", required=True, help="why, for the agent and the others")
    parser.add_argument("--inject", metavar="TEXT", help="something the agent should know")


async def inside(client: "Client", session: str) -> None:
    """Who is not a member becomes one first, if the server lets them."""
    from accord.client import ServerRefused

    try:
        standing = (await client.session(session)).standing
    except ServerRefused as no:
        if no.code != "SESSION_NOT_FOUND":
            raise
        standing = ""
    if standing != "member":
        await client.join(session, listen=False)


async def prompt(args: argparse.Namespace) -> None:
    """Ask an agent; the prompt's id goes to standard output."""
    from accord.core.room.prompts import PromptSubmit
    from accord.show.output import tell

    text = sys.stdin.read() if args.text == [STDIN] else " ".join(args.text)
    async with where.client(args) as client:
        await inside(client, args.session)
        body = PromptSubmit(text, args.agent, (client.id,), tuple(args.context))
        said = await client.post(args.session, body, fork=args.fork)
    if args.json:
        tell({"id": said.id, "seq": said.seq})
    else:
        print(said.id)


async def stop(args: argparse.Namespace) -> None:
    """Tell agents to stop; the server holds them to it."""
    from accord.core.room.interrupts import InterruptRaise
    from accord.core.room.state import Urgency
    from accord.show.output import tell

    async with where.client(args) as client:
        await inside(client, args.session)
        body = InterruptRaise(Urgency(args.urgency), args.message, args.agent, args.inject)
        said = await client.post(args.session, body)
        halted = dict((await client.session(args.session)).halted)
    if args.json:
        tell({"id": said.id, "halted": halted})
    else:
        print(sentence(args.agent or "Every agent", args.urgency))


def sentence(whom: str, urgency: str) -> str:
    """What holds from now on."""
    if urgency == "pause":
        return f"{whom} was asked to pause after the present tool."
    return f"{whom} can propose and run nothing until somebody prompts it again."
