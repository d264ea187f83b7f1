"""List and rotate the keys that sign tokens and the log.

After a rotation a new key signs. Tokens signed before stay valid until they expire. A running
server uses the new key without a restart.

Examples:
  accord keys list
  accord keys list --json
  accord keys rotate
"""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.api.tokens import PublicKey
    from accord.identity.token_service import TokenAdmin


def arguments(parser: argparse.ArgumentParser) -> None:
    from accord.cli.admin import admin_api

    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|rotate")
    admin_api.arguments(verbs.add_parser("list", help="all keys, oldest first"))
    admin_api.arguments(verbs.add_parser("rotate", help="sign with a new key from now on"))


def run(args: argparse.Namespace) -> int:
    from accord.cli.admin import admin_api

    verbs = {"list": _list, "rotate": _rotate}
    # Rotating must not fall back to the local store if the configured server does not answer.
    rotates = args.verb == "rotate"
    work = verbs[args.verb]
    return admin_api.run_admin(
        args, lambda at: work(at, args), elsewhere=not rotates, makes=rotates
    )


async def _list(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    from accord.core.kernel.timestamps import to_iso
    from accord.show.output import print_json, print_table

    keys = await admin.keys()
    if args.json:
        print_json({"keys": [key_for_json(key) for key in keys]})
        return
    rows = (
        (key.kid, to_iso(key.created_at), "signs" if key.active else "verifies") for key in keys
    )
    print_table(("KEY", "CREATED", ""), rows)


async def _rotate(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    from accord.show.output import print_json

    key = await admin.rotate()
    if args.json:
        print_json(key_for_json(key))
    else:
        print(f"{key.kid} signs from now on")


def key_for_json(key: "PublicKey") -> dict[str, object]:
    """A key for programs, in the style that every command has."""
    from accord.core.kernel.timestamps import to_iso

    return {
        "id": key.kid,
        "public_key": key.public,
        "created_at": to_iso(key.created_at),
        "active": key.active,
    }
