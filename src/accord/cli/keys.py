"""List and rotate the keys that sign tokens and the heads of the log.

A rotation makes a new key sign from now on. Tokens signed before stay good until they expire, and
servers that run notice by themselves.

Examples:
  accord keys list
  accord keys list --json
  accord keys rotate
"""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.desk import Office


def arguments(parser: argparse.ArgumentParser) -> None:
    """`list` and `rotate`."""
    from accord.cli import office

    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|rotate")
    office.arguments(verbs.add_parser("list", help="the keys that verify, oldest first"))
    office.arguments(verbs.add_parser("rotate", help="sign with a new key from now on"))


def run(args: argparse.Namespace) -> int:
    """What the chosen verb does."""
    from accord.cli import office

    verbs = {"list": _list, "rotate": _rotate}
    # A key is not to change here because a server that was named does not answer.
    rotates = args.verb == "rotate"
    work = verbs[args.verb]
    return office.run(args, lambda at: work(at, args), elsewhere=not rotates, makes=rotates)


async def _list(office: "Office", args: argparse.Namespace) -> None:
    from accord.core.kernel.times import iso
    from accord.show.output import table, tell

    keys = await office.keys()
    if args.json:
        tell({"keys": keys})
        return
    rows = ((key.kid, iso(key.created_at), "signs" if key.active else "verifies") for key in keys)
    table(("KEY", "CREATED", ""), rows)


async def _rotate(office: "Office", args: argparse.Namespace) -> None:
    from accord.show.output import tell

    key = await office.rotate()
    if args.json:
        tell(key)
    else:
        print(f"{key.kid} signs from now on")
