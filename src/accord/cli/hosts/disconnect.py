"""Disconnect a coding agent from this repository.

Takes out what `accord connect` wrote, so that the host's files are again as they were, and revokes
the agent's key; with its last key the agent leaves its sessions. If a file was changed since,
only Accord's own entries are taken out.

Examples:
  accord disconnect claude-code
  accord disconnect codex --yes
"""

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING

from accord.core.kernel.refusal import Reason, Refused

if TYPE_CHECKING:
    from accord.hosts.adapters.host import HostAdapter
    from accord.hosts.changed_files import Change
    from accord.hosts.connections import Connection


def arguments(parser: argparse.ArgumentParser) -> None:
    """The host, --yes, --dry-run and --json."""
    from accord.hosts.adapters.table import HOSTS

    parser.add_argument("host", metavar="HOST", choices=tuple(HOSTS), help=", ".join(HOSTS))
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and stop")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from accord.cli.hosts.repository import connection_for, current_repository, one_at_a_time
    from accord.hosts.adapters.table import HOSTS

    adapter = HOSTS[args.host]
    root = current_repository().root.resolve()
    with one_at_a_time():
        connection = connection_for(adapter.name, root)
        if connection is None:
            raise Refused(Reason.NOT_FOUND, f"{adapter.title} is not connected in this repository")
        return show_and_disconnect(adapter, connection, args)


def show_and_disconnect(
    adapter: "HostAdapter", connection: "Connection", args: argparse.Namespace
) -> int:
    """Show the changes, ask, write, and revoke."""
    from accord.cli.hosts.connect import DECLINED, plan
    from accord.cli.hosts.dialogue import confirm, print_changes, say

    changes = plan(adapter, connection.id, remove=True)
    if not args.json:
        print_changes(changes)
    if not args.dry_run:
        if not confirm("Write this, and revoke the agent's key?", yes=args.yes):
            say(DECLINED)
            return 0
        disconnect(adapter, connection, changes, args)
    finish(adapter, connection, changes, args)
    return 0


def disconnect(
    adapter: "HostAdapter",
    connection: "Connection",
    changes: list["Change"],
    args: argparse.Namespace,
) -> None:
    """Write the files, revoke the key, and forget the connection."""
    from accord.cli.hosts.codex_trust import offer_trust
    from accord.cli.hosts.connect import CODEX
    from accord.hosts.changed_files import apply_changes
    from accord.hosts.connections import delete_connection, list_connections
    from accord.hosts.enrolment import revoke

    apply_changes(os.environ, changes)
    if not asyncio.run(revoke(connection)):
        told = f"{connection.url} did not confirm that the agent's key is revoked"
        cure = f"`accord people revoke {connection.device}` revokes it"
        print(f"accord: {told}; {cure}", file=sys.stderr)
    delete_connection(os.environ, connection.id)
    if adapter.name == CODEX:  # trust depends on a hook's place in the file, which has changed
        for other in list_connections(os.environ):
            if other.host == CODEX:
                offer_trust(adapter, other, args)


def finish(
    adapter: "HostAdapter",
    connection: "Connection",
    changes: list["Change"],
    args: argparse.Namespace,
) -> None:
    """Say what is different now."""
    from accord.cli.hosts.dialogue import say
    from accord.show.output import print_json

    if args.json:
        files = [str(each.path) for each in changes if each.is_needed]
        done = {"host": adapter.name, "connection": connection.id, "files": files}
        print_json({**done, "written": not args.dry_run})
    elif args.dry_run:
        say("This was a dry run: nothing was changed.")
    else:
        say(f"{adapter.title} is disconnected; {connection.agent} no longer takes part.")
