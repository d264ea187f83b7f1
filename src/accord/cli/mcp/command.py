"""Speak MCP on standard input and output, for hosts that start servers.

Forwards to the server that you are logged in to (`accord login`), or to ACCORD_URL with
ACCORD_TOKEN. It holds nothing itself: when that server restarts, the next call goes to the new one.
Problems are reported on standard error and in the answers.

Examples:
  accord mcp
  accord mcp --url https://accord.example.com
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add --url."""
    parser.add_argument("--url", help="the server (default: that of your profile, or ACCORD_URL)")


def run(args: argparse.Namespace) -> int:
    """Forward until the input ends."""
    return forward(args.url)


def run_without_options(words: Sequence[str]) -> int | None:
    """Run without a parser, which hosts would wait for at every start; None if there are words."""
    return forward(None) if not words else None


def forward(url: str | None) -> int:
    """Forward until the input ends."""
    from accord.cli.mcp.bridge import Bridge

    env = {**os.environ, **({"ACCORD_URL": url} if url else {})}
    return Bridge(env).run(0, 1)
