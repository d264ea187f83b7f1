"""Reject what a gate asks for.

GATE is the id of the gate or of its proposal, or the beginning of either. One rejection is enough:
the proposal will not run and has to be proposed again. A proposal that a decision holds back can be
rejected in the same way, and so can a call that was approved, as long as its agent has not started
it: that takes the approval back.

Examples:
  accord reject 01JZ0Q6Y5W3V8T2N4M6K8H0F2D --reason "Not on a Friday"
  accord reject 01JZ0Q6Y --reason "Approved too early"
  accord reject 01JZ0Q6Y --session ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D --reason "Needs a test first"
"""

import argparse

from accord.cli import connection
from accord.cli.parsing import non_empty


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the gate, --session and --reason."""
    parser.add_argument(
        "gate", metavar="GATE", help="id of the gate or its proposal, or its beginning"
    )
    parser.add_argument("--session", help="only look in this session")
    parser.add_argument(
        "--reason", required=True, type=non_empty, help="why, for the agent or member that asked"
    )
    connection.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Vote and print the outcome."""
    import asyncio

    from accord.cli.gates.voting import vote
    from accord.core.room.approval.votes import GateReject

    def rejection(gate: str, me: str) -> GateReject:
        return GateReject(gate=gate, rejector=me, reason=args.reason)

    asyncio.run(vote(args, rejection, rejects=True))
    return 0
