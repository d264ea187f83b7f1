"""Issue, list and revoke signed identities.

Works through the server at ACCORD_URL when it answers, as the operator whose token is in
ACCORD_TOKEN; otherwise on the store of this machine. The token goes to standard output alone, so
that a shell can keep it. Without --roles, whoever has a seat in the pact of this directory gets the
roles that fit it: driver for who works, navigator for who reviews.

Examples:
  accord token issue --id alice --type human --roles admin,driver
  export ACCORD_TOKEN=$(accord token issue --id claude --type agent --roles driver --ttl 8h)
  accord token issue --id bob --type human --roles approver --labels security --ttl 7d
  accord token issue --id ann --type human       # roles as in the pact here
  accord token list
  accord token revoke 01JZ0Q6Y5W3V8T2N4M6K8H0F2D --reason "laptop lost"
"""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli.durations import seconds
from accord.cli.parsing import Some

if TYPE_CHECKING:
    from accord.core.kernel.authority import Capabilities, Roles
    from accord.desk import Issued, Office, Wish


def arguments(parser: argparse.ArgumentParser) -> None:
    """`issue`, `list` and `revoke`."""
    from accord.cli import office

    verbs = parser.add_subparsers(dest="verb", required=True, metavar="issue|list|revoke")
    issue = verbs.add_parser("issue", help="sign a token for somebody and print it")
    _issue_arguments(issue)
    listing = verbs.add_parser("list", help="who holds tokens that have not expired")
    revoke = verbs.add_parser("revoke", help="make a token void at once")
    revoke.add_argument("jti", help="the token's id, as `accord token list` shows it")
    revoke.add_argument("--reason", default="", help="why, for the record")
    revoke.add_argument(
        "--force", action="store_true", help="also an id that this store does not know"
    )
    for verb in (issue, listing, revoke):
        office.arguments(verb)


def run(args: argparse.Namespace) -> int:
    """What the chosen verb does."""
    from accord.cli import office

    verbs = {"issue": _issue, "list": _list, "revoke": _revoke}
    makes = args.verb != "list"  # a token is made void also where the store was lost
    return office.run(args, lambda place: verbs[args.verb](place, args), makes=makes)


def _issue_arguments(parser: argparse.ArgumentParser) -> None:
    from accord.core.kernel.actor import DEFAULT_WORKSPACE
    from accord.core.kernel.authority import Capability, Kind, Role
    from accord.core.people.standing import Standing

    roles, rights = ",".join(Role), ",".join(Capability)
    kinds = (Kind.HUMAN.value, Kind.AGENT.value)
    standings = [standing.value for standing in Standing]
    add = parser.add_argument
    add("--id", required=True, help="who it is, for example alice")
    add("--type", required=True, choices=kinds, help="what it is")
    add("--roles", type=Some(Role), metavar="A,B", help=f"some of {roles} (default: its seat's)")
    foreign = "take an id as another system has it, though it is no slug"
    add("--foreign", action="store_true", help=foreign)
    add("--workspace", default=DEFAULT_WORKSPACE, help="default: %(default)s")
    add("--ttl", type=duration, default="12h", help="how long it lives (default: %(default)s)")
    add("--labels", type=words, default=(), metavar="A,B", help="labels that a quorum can name")
    capabilities = Some(Capability)
    add("--capabilities", type=capabilities, default=(), metavar="A,B", help=f"some of {rights}")
    add("--name", default="", help='how to show it, for example "Alice"')
    add("--role", choices=standings, help="its role in threads (default: as its roles imply)")


def words(text: str) -> tuple[str, ...]:
    """`a,b` in parts."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def duration(text: str) -> int:
    """`12h` in seconds; complains as argparse wants it."""
    try:
        return seconds(text)
    except ValueError as no:
        raise argparse.ArgumentTypeError(str(no)) from None


async def _issue(office: "Office", args: argparse.Namespace) -> None:
    from accord.show.output import tell

    issued = await office.issue(_wish(args))
    for warning in (*issued.warnings, *_spaces(args.id)):
        print(f"accord: warning: {warning}", file=sys.stderr)
    if args.json:
        tell(issued)
    else:
        print(_summary(issued), file=sys.stderr)
        print(issued.token)


def _spaces(id: str) -> list[str]:
    return [f"{id!r} has a space; quote it wherever you type it"] if " " in id else []


def _wish(args: argparse.Namespace) -> "Wish":
    import msgspec

    from accord.core.kernel.refusal import Refused, Why
    from accord.desk import Wish

    if not args.foreign:
        _new_id(args.id)
    names = ("id", "type", "roles", "workspace", "labels", "capabilities", "name", "role")
    said = {"ttl_s": args.ttl} | {name: getattr(args, name) for name in names}
    if args.roles is None:
        roles, rights = _of_seat(args.id, args.type)
        said |= {"roles": roles, "capabilities": rights | frozenset(args.capabilities)}
    try:
        return msgspec.convert(said, Wish)
    except msgspec.ValidationError as no:
        raise Refused(Why.MALFORMED, f"No such token can be made: {no}") from None


def _new_id(id: str) -> None:
    """UNI-3: somebody new gets an id that sessions, Pact and trailers write alike."""
    from accord.core.kernel.ids import slug
    from accord.core.kernel.refusal import Refused, Why

    if slug(id) != id:
        advice = f"try {slug(id)}" if slug(id) else "use a-z, 0-9 and -"
        known = "for somebody whom another system calls so, add --foreign"
        raise Refused(Why.MALFORMED, f"{id!r} is no id for somebody new: {advice}; {known}")


def _of_seat(id: str, kind: str) -> "tuple[Roles, Capabilities]":
    """UNI-13: the roles that fit a seat of the pact in this directory."""
    from accord.core.kernel.authority import Kind
    from accord.core.kernel.ids import slug
    from accord.core.kernel.refusal import Refused, Why
    from accord.core.people.standing import derived
    from accord.pact.desk import desk

    work = desk(Path.cwd(), os.environ.get("PACT_DIR", ""), slug(id)).load().work
    seat = None if work.too_new else work.seat(slug(id))
    roles, rights = derived(Kind(kind), seat.roles if seat else ())
    if not roles:
        detail = f"Say --roles: {id!r} has no seat in a pact here that they could follow from"
        raise Refused(Why.MALFORMED, detail)
    return roles, rights


def _summary(issued: "Issued") -> str:
    from accord.core.kernel.times import iso

    claims = issued.claims
    who = f"{claims.agent_id}, {claims.kind}, {', '.join(sorted(claims.roles)) or 'no roles'}"
    return f"{who}; until {iso(claims.exp * 1000)}; jti {claims.jti}"


async def _list(office: "Office", args: argparse.Namespace) -> None:
    from accord.core.kernel.times import iso
    from accord.show.output import table, tell

    tokens = await office.tokens()
    if args.json:
        tell({"tokens": tokens})
        return
    rows = (
        (
            *(token.jti, token.id, token.kind, ",".join(sorted(token.roles))),
            *(",".join(sorted(token.labels)), token.workspace),
            *(iso(token.expires_at)[:16] + "Z", "revoked" if token.revoked else ""),
        )
        for token in tokens
    )
    heads = ("JTI", "ID", "TYPE", "ROLES", "LABELS", "WORKSPACE", "EXPIRES", "STATE")
    table(heads, rows)


async def _revoke(office: "Office", args: argparse.Namespace) -> None:
    from accord.show.output import tell

    await office.revoke(args.jti, args.reason, force=args.force)
    if args.json:
        tell({"jti": args.jti, "revoked": True})
    else:
        print(f"{args.jti} is void now")
