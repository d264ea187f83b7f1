"""Records of decisions to a remote and back."""

import argparse
from typing import TYPE_CHECKING, Any

from accord.show.text import line, listed

if TYPE_CHECKING:
    from accord.git.repository import Repository


def share(repo: "Repository", args: argparse.Namespace) -> int:
    """Send records to a remote."""
    from accord.git import naming, sharing

    return _shared(sharing.share(repo, naming.remote(repo, args.remote)), args)


def fetch(repo: "Repository", args: argparse.Namespace) -> int:
    """Bring records from a remote."""
    from accord.git import naming, sharing

    return _shared(sharing.fetch(repo, naming.remote(repo, args.remote)), args)


def _shared(done: Any, args: argparse.Namespace) -> int:
    from accord.show.output import tell

    if args.json:
        tell({"remote": done.remote, "fetched": done.came, "pushed": done.went})
        return 0
    came = f"merged {listed(done.came)} of {line(done.remote)}" if done.came else ""
    went = f"sent {listed(done.went)} to {line(done.remote)}" if done.went else ""
    print(
        "\n".join(filter(None, (came, went))) or f"{line(done.remote)} has no records, nor have you"
    )
    return 0
