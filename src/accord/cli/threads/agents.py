"""See which agents are here, across vendors and machines, and pause one.

An agent appears with its first request, with the programs in which it was seen, and with the
threads that wait for it. A paused agent is not woken until a person resumes it; its messages wait
for it.

Examples:
  accord agents
  accord agents list --json
  accord agents pause codex
  accord agents resume codex
"""

import argparse
from typing import TYPE_CHECKING

from accord.cli import connection

if TYPE_CHECKING:
    from accord.api.threads import AgentDetail
    from accord.client import Client

VERB_WITHOUT_WORDS = "list"
NO_AGENTS = (
    "No agent has been seen yet. An agent appears with its first request, and when `accord mcp` "
    "runs for it."
)


def arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="list|pause|resume")
    listing = verbs.add_parser("list", help="the agents of your workspace")
    pause = verbs.add_parser("pause", help="keep an agent from being woken")
    resume = verbs.add_parser("resume", help="let a paused agent be woken again")
    for verb in (pause, resume):
        verb.add_argument("who", metavar="WHO", help="the agent's id")
    for verb in (listing, pause, resume):
        connection.arguments(verb)


def run(args: argparse.Namespace) -> int:
    import asyncio

    client = connection.client_for(args)
    if args.verb == "list":
        asyncio.run(list_agents(client, args))
    else:
        asyncio.run(set_paused(client, args, paused=args.verb == "pause"))
    return 0


async def list_agents(client: "Client", args: argparse.Namespace) -> None:
    """A line for each program of each agent."""
    from accord.show.output import print_json, print_table
    from accord.show.text import wrap

    agents = await client.threads.agents()
    if args.json:
        print_json({"agents": agents})
    elif not agents:
        print("\n".join(wrap(NO_AGENTS)))
    else:
        rows = [row for agent in agents for row in rows_of(agent)]
        print_table(("AGENT", "PROGRAM", "STATE", "SEEN", "MACHINE", "AWAITED IN"), rows)


def rows_of(agent: "AgentDetail") -> list[tuple[str, ...]]:
    """One row for each program; one without a program if the agent was never seen."""
    from accord.cli.threads.rendering import moment

    awaited = ", ".join(agent.awaited_in)
    paused = f"paused by {agent.paused_by}" if agent.paused_by else ""
    if not agent.runtimes:
        seen = moment(agent.last_seen_at) if agent.last_seen_at else ""
        state = agent.status if agent.last_seen_at else "never seen"
        return [(agent.agent_id, "", paused or state, seen, "", awaited)]
    return [
        (
            *(agent.agent_id, each.runtime, paused or each.status),
            *(moment(each.last_heartbeat_at), each.machine or "", awaited),
        )
        for each in agent.runtimes
    ]


async def set_paused(client: "Client", args: argparse.Namespace, *, paused: bool) -> None:
    """Say what holds now."""
    from accord.show.output import print_json
    from accord.show.text import one_line

    done = await client.threads.pause_agent(args.who, paused=paused)
    if args.json:
        print_json(done)
    else:
        state = "is paused: nothing wakes it" if done.paused else "can be woken again"
        print(f"{one_line(done.target_agent_id)} {state}")
