"""See what waits for an approval.

Lists the open gates of all your sessions: what would be run, who asks, how risky it is, how many
have agreed and how long it stays open. With --session you join that session first, if your token
lets you, so that you can decide there.

Examples:
  accord gates
  accord gates --session ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord gates --json
"""

import argparse
from typing import Any

from accord.cli import where
from accord.show import paint
from accord.show.text import count, line


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
        tell({"gates": [{"session": each.session["id"], **each.gate} for each in found.open]})
    else:
        print("\n".join(shown(found.open, found.elsewhere)))
    return 0


def shown(found: list[Any], elsewhere: list[dict[str, Any]]) -> list[str]:
    """A card each, how to answer, and where else something waits."""
    from accord.show.cards import card

    lines: list[str] = []
    for each in found:
        lines += [*card(each.gate, line(each.session["name"]) or each.session["id"]), ""]
    if found:
        gate = found[0].gate["id"]
        lines += [
            f"{count(len(found), 'gate')} open. To decide:",
            f"  accord approve {gate}",
            f'  accord reject {gate} --reason "…"',
        ]
    else:
        lines += [paint.green("Nothing waits for an approval.")]
    for each in elsewhere:
        gates = count(each["open_gates"], "open gate")
        lines += ["", f"{gates} in a session you have left. To come back:"]
        lines += [f"  accord gates --session {each['id']}"]
    return lines
