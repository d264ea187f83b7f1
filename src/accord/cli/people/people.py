"""See who has access, revoke it, and remove people.

You need to be an operator: a human with an admin token, or the owner of the server's data. A person
appears with the tokens, devices and unused invitations that they have now.

Examples:
  accord people list
  accord people devices
  accord people invitations
  accord people remove bob --reason "left the team"
  accord people revoke 01JZ0Q6Y5W3V8T2N4M6K8H0F2D --reason "laptop lost"
"""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.api.people import ListedDevice
    from accord.identity.token_service import TokenAdmin


def arguments(parser: argparse.ArgumentParser) -> None:
    """`list`, `remove`, `devices`, `invitations` and `revoke`."""
    from accord.cli.admin import admin_api
    from accord.core.kernel.actor import DEFAULT_WORKSPACE

    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="list|remove|devices|invitations|revoke"
    )
    listing = verbs.add_parser("list", help="everyone with a token, a device or an invitation")
    remove = verbs.add_parser(
        "remove",
        help="revoke every token, device and invitation of a person, and end their memberships",
    )
    remove.add_argument("who", metavar="WHO", help="the person's or agent's id")
    remove.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="default: %(default)s")
    remove.add_argument("--reason", default="", help="why, for the record")
    devices = verbs.add_parser("devices", help="devices that are signed in")
    invitations = verbs.add_parser("invitations", help="links that were not used yet")
    revoke = verbs.add_parser("revoke", help="revoke a device or an invitation")
    revoke.add_argument("id", help="its id, as `devices` or `invitations` shows it")
    revoke.add_argument("--reason", default="", help="why, for the record")
    for verb in (listing, remove, devices, invitations, revoke):
        admin_api.arguments(verb)


def run(args: argparse.Namespace) -> int:
    from accord.cli.admin import admin_api

    verbs = {
        "list": list_people,
        "remove": remove_person,
        "devices": list_devices,
        "invitations": list_invitations,
        "revoke": revoke_id,
    }
    return admin_api.run_admin(args, lambda admin: verbs[args.verb](admin, args), makes=False)


async def list_people(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    """Print everyone who can get in."""
    from accord.show.output import print_json, print_table

    people = await admin.people.people()
    if args.json:
        print_json({"people": people})
        return
    rows = (
        (
            *(each.id, each.type, ",".join(each.roles), each.workspace),
            *(str(each.tokens), str(each.devices), str(each.invitations)),
        )
        for each in people
    )
    print_table(("ID", "TYPE", "ROLES", "WORKSPACE", "TOKENS", "DEVICES", "INVITATIONS"), rows)


async def remove_person(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    """Remove a person or agent, and say what ended."""
    from accord.show.output import print_json
    from accord.show.text import escape_controls

    ended = await admin.people.remove(args.who, args.workspace, args.reason)
    if args.json:
        print_json({"id": args.who, "ended": ended})
        return
    counts = (
        f"{ended.tokens} tokens, {ended.devices} devices and {ended.invitations} invitations "
        f"are revoked, and {ended.sessions} memberships ended"
    )
    print(escape_controls(f"{args.who} is removed: {counts}"))


async def list_devices(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    """Print all signed-in devices."""
    from accord.show.output import print_json, print_table

    devices = await admin.people.devices()
    if args.json:
        print_json({"devices": devices})
        return
    rows = (
        (
            *(each.id, each.principal, device_kind(each)),
            *(",".join(each.roles), each.workspace, each.added_at),
        )
        for each in devices
    )
    print_table(("DEVICE", "WHO", "KIND", "ROLES", "WORKSPACE", "SINCE"), rows)


def device_kind(device: "ListedDevice") -> str:
    """What holds the key; of an agent, also who enrolled it."""
    if device.by:
        return f"agent of {device.by}"
    return "browser" if device.browser else "program"


async def list_invitations(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    """Print what was not used yet."""
    from accord.show.output import print_json, print_table

    invitations = await admin.people.invitations()
    if args.json:
        print_json({"invitations": invitations})
        return
    rows = (
        (
            *(each.id, each.principal, ",".join(each.roles), each.workspace),
            *(each.by, each.expires_at),
        )
        for each in invitations
    )
    print_table(("INVITATION", "FOR", "ROLES", "WORKSPACE", "BY", "UNTIL"), rows)


async def revoke_id(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    """Both kinds of ids are unique, so the id alone says what is meant."""
    from accord.show.output import print_json

    invitations = {each.id for each in await admin.people.invitations()}
    if args.id in invitations:
        await admin.people.revoke_invitation(args.id, args.reason)
    else:
        await admin.people.revoke_device(args.id, args.reason)
    kind = "invitation" if args.id in invitations else "device"
    if args.json:
        print_json({"id": args.id, "kind": kind, "revoked": True})
    else:
        print(f"The {kind} {args.id} is revoked and no longer valid")
