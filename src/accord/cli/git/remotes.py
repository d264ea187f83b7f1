"""`accord git share` and `accord git fetch`."""

import argparse
from typing import TYPE_CHECKING

from accord.show.text import join_words, one_line

if TYPE_CHECKING:
    from accord.git.records.remotes import RemoteSync
    from accord.git.repository import Repository


def share(repo: "Repository", args: argparse.Namespace) -> int:
    """Send records to a remote."""
    from accord.git import user_arguments
    from accord.git.records import remotes

    return _print_transfer(
        remotes.push_records(repo, user_arguments.resolve_remote(repo, args.remote)), args
    )


def fetch(repo: "Repository", args: argparse.Namespace) -> int:
    """Fetch records from a remote and merge them."""
    from accord.git import user_arguments
    from accord.git.records import remotes

    return _print_transfer(
        remotes.fetch_records(repo, user_arguments.resolve_remote(repo, args.remote)), args
    )


def _print_transfer(done: "RemoteSync", args: argparse.Namespace) -> int:
    from accord.show.output import print_json

    if args.json:
        print_json({"remote": done.remote, "fetched": done.fetched, "pushed": done.pushed})
        return 0
    remote = one_line(done.remote)
    fetched = f"merged {join_words(done.fetched)} from {remote}" if done.fetched else ""
    pushed = f"sent {join_words(done.pushed)} to {remote}" if done.pushed else ""
    print(
        "\n".join(filter(None, (fetched, pushed)))
        or f"there are no records, neither here nor at {remote}"
    )
    return 0
