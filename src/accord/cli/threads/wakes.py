"""See which agents were woken, how, and why.

One line for each wake, the newest first: who asked for it, how the agent was reached, and what came
of it. Operators and orchestrators see all wakes of the workspace, an agent its own.

Examples:
  accord wakes
  accord wakes --agent codex
  accord wakes --thread th_01K3Z8V7Q2M4N6P8R0S2T4V6W8 --json
"""

import argparse
from typing import TYPE_CHECKING

from accord.cli import connection

if TYPE_CHECKING:
    from accord.api.wakes import WakeRow
    from accord.client import Client

NO_WAKES = "No agent was woken yet. A message that names an agent in its addressees wakes it."
WAYS = {
    "trigger_runtime": "terminal",
    "resume_session": "resumed",
    "spawn_session": "new session",
    "none": "",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--thread", metavar="THREAD", help="only wakes for this thread or session")
    parser.add_argument("--agent", metavar="AGENT", help="only wakes of this agent")
    connection.arguments(parser)


def run(args: argparse.Namespace) -> int:
    import asyncio

    asyncio.run(list_wakes(connection.client_for(args), args))
    return 0


async def list_wakes(client: "Client", args: argparse.Namespace) -> None:
    """A line for each wake."""
    from accord.show.output import print_json, print_table
    from accord.show.text import wrap

    wakes = await client.threads.wakes(agent=args.agent, thread=args.thread)
    if args.json:
        print_json({"wakes": wakes})
    elif not wakes:
        print("\n".join(wrap(NO_WAKES)))
    else:
        titles = ("ASKED", "AGENT", "THREAD", "BY", "HOW", "RESULT", "WHY")
        print_table(titles, [row_of(each) for each in wakes])


def row_of(wake: "WakeRow") -> tuple[str, ...]:
    """A wake by message has `message of` before its sender, a forced one `forced by`."""
    from accord.cli.threads.rendering import moment
    from accord.show.text import one_line

    how = "forced by " if wake.forced else "message of " if wake.automatic else ""
    return (
        moment(wake.asked_at),
        *(wake.target_agent_id, wake.thread_id, how + one_line(wake.asked_by)),
        *(WAYS[wake.action], wake.result.replace("_", " "), one_line(wake.detail)),
    )
