"""Say yes to what a gate asks.

GATE is the gate's id, the beginning of it, or the id of the proposal it is about. What is
approved is exactly what `accord gates` shows; it runs as soon as enough people have agreed.

Examples:
  accord approve 01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord approve 01JZ0Q --comment "Looks right to me"
  accord approve 01JZ0Q --session ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
"""

import argparse

from accord.cli import where


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which gate, and a word about it."""
    parser.add_argument("gate", metavar="GATE", help="gate, beginning of its id, or proposal")
    parser.add_argument("--session", help="look in this session alone")
    parser.add_argument("--comment", help="a word for the others")
    where.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Vote, then say what became of it."""
    import asyncio

    from accord.cli.ballots import vote
    from accord.core.room.votes import GateApprove

    def yes(gate: str, me: str) -> GateApprove:
        return GateApprove(gate=gate, approver=me, comment=args.comment)

    asyncio.run(vote(args, yes))
    return 0
