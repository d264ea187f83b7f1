"""Invite a person: print a link that works once, within seven days.

You need to be an operator: a human with an admin token, or the owner of the server's data. Only the
link is printed to standard output. Give it to that person over a channel you trust; with
`accord login LINK` they are signed in. Without --name the server makes an id up.

Examples:
  accord invite --role driver --name bob
  accord invite --role approver,navigator --name carol --json
  accord invite --role admin --name me --data-dir ./data
"""

import argparse
import sys
from typing import TYPE_CHECKING

from accord.cli.parsing import SubsetOf

if TYPE_CHECKING:
    from accord.identity.token_service import TokenAdmin


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add --role, --name, --workspace and where to ask."""
    from accord.cli.admin import admin_api
    from accord.core.kernel.actor import DEFAULT_WORKSPACE
    from accord.core.kernel.role_permissions import Role

    add = parser.add_argument
    add(
        "--role",
        required=True,
        type=SubsetOf(Role),
        metavar="A,B",
        help=f"some of {', '.join(Role)}",
    )
    add("--name", metavar="WHO", default="", help="the person's id, for example bob")
    add("--workspace", default=DEFAULT_WORKSPACE, help="default: %(default)s")
    admin_api.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Make the invitation and print its link."""
    from accord.cli.admin import admin_api
    from accord.cli.admin.token import check_new_id

    if args.name:
        check_new_id(args.name, "")

    async def work(admin: "TokenAdmin") -> None:
        await print_invitation(admin, args)

    return admin_api.run_admin(args, work, makes=False)


async def print_invitation(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    """Make an invitation; print the link, and on standard error who may use it."""
    import msgspec

    from accord.api.people import InvitationRequest
    from accord.client.sign_in.login import make_link
    from accord.core.kernel.role_permissions import Role
    from accord.show.output import print_json

    roles = frozenset(Role(role) for role in args.role)
    request = InvitationRequest(roles=roles, id=args.name, workspace=args.workspace)
    made = await admin.people.invite(request)
    link = make_link(server_of(args), made.code)
    if args.json:
        public = msgspec.to_builtins(made)
        del public["code"]
        print_json({**public, "link": link})
        return
    roles_text = ", ".join(made.roles)
    print(
        f"{made.principal}, {roles_text}; works once, until {made.expires_at}; "
        f"to revoke it: accord people revoke {made.id}",
        file=sys.stderr,
    )
    print(link)


def server_of(args: argparse.Namespace) -> str:
    """The address that the invited person will use."""
    from accord.cli.connection import DEFAULT_URL
    from accord.cli.doctor.health_checks import running_url
    from accord.cli.server_url import connectable_url
    from accord.settings.client import Settings
    from accord.settings.profiles import server_address

    if args.data_dir is None:
        known = Settings.for_client(url=args.url)
        if known.url:
            return server_address(connectable_url(known.url))
    home = Settings.for_process(home=args.data_dir).home
    return server_address(connectable_url(args.url or running_url(home) or DEFAULT_URL))
