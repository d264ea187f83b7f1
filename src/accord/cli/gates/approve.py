"""Approve what a gate asks for.

GATE is the id of the gate or of its proposal, or the beginning of either. You approve exactly what
`accord gates` shows; it runs as soon as enough members have approved.

Examples:
  accord approve 01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord approve 01JZ0Q6Y --comment "Looks right to me"
  accord approve 01JZ0Q6Y --session ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
"""

import argparse

from accord.cli import connection


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the gate, --session and --comment."""
    parser.add_argument(
        "gate", metavar="GATE", help="id of the gate or its proposal, or its beginning"
    )
    parser.add_argument("--session", help="only look in this session")
    parser.add_argument("--comment", help="a comment for the other members")
    connection.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Vote and print the outcome."""
    import asyncio

    from accord.cli.gates.voting import vote
    from accord.core.room.approval.votes import GateApprove

    def approval(gate: str, me: str) -> GateApprove:
        return GateApprove(gate=gate, approver=me, comment=args.comment)

    asyncio.run(vote(args, approval))
    return 0
