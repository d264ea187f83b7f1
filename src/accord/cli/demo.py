"""Play a complete session in a temporary repository and print it.

Shows a real server, a person and an agent, a gate, a crash and recovery, and a commit whose reason
git can explain. Takes half a minute, leaves nothing behind, and exits with 0 if everything worked.

Examples:
  accord demo
"""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    """The demo has no options."""


def run(args: argparse.Namespace) -> int:
    import asyncio

    from accord.demo.scenario import run_demo

    return asyncio.run(run_demo())
