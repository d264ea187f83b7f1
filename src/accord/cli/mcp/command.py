"""Speak MCP on standard input and output, for hosts that start servers.

Forwards to the server that you are logged in to (`accord login`), or to ACCORD_URL with
ACCORD_TOKEN. It holds nothing itself: when that server restarts, the next call goes to the new one.
Problems are reported on standard error and in the answers.

Examples:
  accord mcp
  accord mcp --url https://accord.example.com
  accord mcp --host claude-code
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add --url, and what `accord connect` writes into a host's configuration."""
    add = parser.add_argument
    add("--url", help="the server (default: that of your profile, or ACCORD_URL)")
    add("--host", metavar="HOST", help="speak as the agent that `accord connect HOST` made here")
    add("--connections", metavar="DIR", help="where `accord connect` keeps its records")


def run(args: argparse.Namespace) -> int:
    """Forward until the input ends."""
    if args.host:
        return forward_as_agent(args.host, args.connections)
    return forward(args.url)


def forward_as_agent(host: str, records: str | None) -> int:
    """Forward as the agent of this host in the repository around the working directory."""
    from pathlib import Path

    from accord.cli.mcp.bridge import Bridge
    from accord.cli.mcp.host_connection import find_connection, serve_nothing
    from accord.git.remote_server import RemoteServer
    from accord.hosts.connection_token import ConnectionToken
    from accord.hosts.connections import connections_dir

    folder = Path(records) if records else connections_dir(os.environ)
    connection = find_connection(host, folder, Path.cwd().resolve())
    if connection is None:
        return serve_nothing(host, 0, 1)

    def server() -> RemoteServer:
        return RemoteServer(connection.url, ConnectionToken(connection)())

    return Bridge(os.environ, server).run(0, 1)


def run_without_options(words: Sequence[str]) -> int | None:
    """Run without a parser, which hosts would wait for at every start; None if there are words."""
    return forward(None) if not words else None


def forward(url: str | None) -> int:
    """Forward until the input ends."""
    from accord.cli.mcp.bridge import Bridge

    env = {**os.environ, **({"ACCORD_URL": url} if url else {})}
    return Bridge(env).run(0, 1)
