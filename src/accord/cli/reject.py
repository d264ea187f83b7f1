"""Say no to what a gate asks.

GATE is the gate's id, the beginning of it, or the id of the proposal it is about. One no is
enough: what was proposed will not run, and must be proposed anew. A proposal that a decision holds
is let go in the same way.

Examples:
  accord reject 01JZ0Q6Y5W3V8T2N4M6K8H0F2D --reason "Not on a Friday"
  accord reject 01JZ0Q --session ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D --reason "Needs a test first"
"""

import argparse

from accord.cli import where
from accord.cli.parsing import filled


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which gate, and why not."""
    parser.add_argument("gate", metavar="GATE", help="gate, beginning of its id, or proposal")
    parser.add_argument("--session", help="look in this session alone")
    parser.add_argument("--reason", required=True, type=filled, help="why not, for whoever asked")
    where.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Vote, then say what became of it."""
    import asyncio

    from accord.cli.ballots import vote
    from accord.core.room.votes import GateReject

    def no(gate: str, me: str) -> GateReject:
        return GateReject(gate=gate, rejector=me, reason=args.reason)

    asyncio.run(vote(args, no, rejects=True))
    return 0
