"""See what waits for an approval.

Lists the open gates of all your sessions: what would be run, who asks, how risky it is, how many
have agreed and how long it stays open; then what a decision holds, so that nobody is asked about
it yet. With --session you join that session first, if your token
lets you, so that you can decide there.

Examples:
  accord gates
  accord gates --session ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord gates --json
"""

import argparse
from typing import TYPE_CHECKING

from accord.cli import where
from accord.show import paint
from accord.show.text import count, line

if TYPE_CHECKING:
    from accord.cli.ballots import Found


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which session, and who asks."""
    parser.add_argument("--session", help="one session alone (default: all of yours)")
    where.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Cards, or JSON."""
    import asyncio

    from accord.cli.ballots import gather
    from accord.show.output import tell

    found = asyncio.run(gather(args))
    if args.json:
        gates = [{"session": each.session["id"], **each.gate} for each in found.open]
        held = [{"session": each.session["id"], **each.tool} for each in found.held]
        tell({"gates": gates, "held": held})
    else:
        print("\n".join(shown(found)))
    return 0


def shown(found: "Found") -> list[str]:
    """A card each, how to answer, and where else something waits."""
    from accord.show.cards import card, waits

    lines: list[str] = []
    for each in found.open:
        lines += [*card(each.gate, line(each.session["name"]) or each.session["id"]), ""]
    lines += how_to_answer(found) if found.open else nothing(found)
    for held in found.held:
        lines += ["", *waits(held.tool, "Held  ")]
    for left in found.elsewhere:
        gates = count(left["open_gates"], "open gate")
        lines += ["", f"{gates} in a session you have left. To come back:"]
        lines += [f"  accord gates --session {line(left['id'])}"]
    return lines


def how_to_answer(found: "Found") -> list[str]:
    """The commands, for the first gate that still waits for the caller."""
    from accord.cli.ballots import has_approved, needed

    gates = [each.gate for each in found.open]
    mine = [gate for gate in gates if not has_approved(gate, found.me)]
    opened = f"{count(len(gates), 'gate')} open."
    if not mine:
        return [f"{opened} You have approved; {needed(gates[0]).replace('It still', 'it still')}."]
    gate = line(mine[0]["id"])
    reject = f'  accord reject {gate} --reason "…"'
    return [f"{opened} To decide:", f"  accord approve {gate}", reject]


def nothing(found: "Found") -> list[str]:
    """That all is quiet; and for who is in no session, how to come into one."""
    lines = [paint.green("Nothing waits for an approval.")]
    if not found.sessions:
        lines += ["You are in no session yet. To join one: accord gates --session ID"]
    return lines
