"""Issue, list and revoke access tokens.

Uses the server at ACCORD_URL if it answers, with the operator's token in ACCORD_TOKEN; otherwise
the store on this machine. Only the token is printed to standard output, so that a shell can capture
it. Without --roles, the roles follow from the seat that the id has in the pact of this directory:
driver for a seat that works on tasks, navigator for one that reviews them.

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
from typing import TYPE_CHECKING, Any

from accord.cli.durations import parse_duration
from accord.cli.parsing import SubsetOf

if TYPE_CHECKING:
    from accord.api.tokens import IssuedToken, TokenRequest
    from accord.core.kernel.role_permissions import Capabilities, Roles
    from accord.core.people.state import Token
    from accord.identity.token_service import TokenAdmin

FOREIGN_ADVICE = "; if another system uses this id, add --foreign"


def arguments(parser: argparse.ArgumentParser) -> None:
    from accord.cli.admin import admin_api

    verbs = parser.add_subparsers(dest="verb", required=True, metavar="issue|list|revoke")
    issue = verbs.add_parser("issue", help="sign a token and print it")
    _issue_arguments(issue)
    listing = verbs.add_parser("list", help="tokens that have not expired, and their holders")
    revoke = verbs.add_parser("revoke", help="make a token invalid immediately")
    revoke.add_argument("jti", help="the token's id, as `accord token list` shows it")
    revoke.add_argument("--reason", default="", help="why, for the record")
    revoke.add_argument(
        "--force", action="store_true", help="also revoke an id that the store does not know"
    )
    for verb in (issue, listing, revoke):
        admin_api.arguments(verb)


def run(args: argparse.Namespace) -> int:
    from accord.cli.admin import admin_api

    verbs = {"issue": _issue, "list": _list, "revoke": _revoke}
    makes = args.verb != "list"  # a token can be revoked even if its store was lost
    return admin_api.run_admin(args, lambda place: verbs[args.verb](place, args), makes=makes)


def _issue_arguments(parser: argparse.ArgumentParser) -> None:
    from accord.core.kernel.actor import DEFAULT_WORKSPACE
    from accord.core.kernel.role_permissions import Capability, Kind, Role, ThreadRole

    roles, rights = ", ".join(Role), ", ".join(Capability)
    kinds = (Kind.HUMAN.value, Kind.AGENT.value)
    standings = [standing.value for standing in ThreadRole]
    add = parser.add_argument
    add("--id", required=True, help="who the token is for, for example alice")
    add("--type", required=True, choices=kinds, help="a person or an agent")
    add(
        "--roles",
        type=SubsetOf(Role),
        metavar="A,B",
        help=f"some of {roles} (default: from the seat in the pact)",
    )
    foreign = "accept an id of another system that is not made of a-z, 0-9 and -"
    add("--foreign", action="store_true", help=foreign)
    add("--workspace", default=DEFAULT_WORKSPACE, help="default: %(default)s")
    add(
        "--ttl",
        type=duration_type,
        default="12h",
        help="how long it is valid (default: %(default)s)",
    )
    add(
        "--labels",
        type=words_type,
        default=(),
        metavar="A,B",
        help="labels that quorum rules can require",
    )
    capabilities = SubsetOf(Capability)
    add("--capabilities", type=capabilities, default=(), metavar="A,B", help=f"some of {rights}")
    add("--name", default="", help='display name, for example "Alice"')
    add("--role", choices=standings, help="its role in threads (default: from its roles)")


def words_type(text: str) -> tuple[str, ...]:
    """The words of a list with commas, for argparse."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def duration_type(text: str) -> int:
    """Parse `12h` into seconds; raises the error that argparse expects."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


async def _issue(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    from accord.show.output import print_json

    issued = await admin.issue(_token_request(args))
    for warning in (*issued.warnings, *_space_warnings(args.id)):
        print(f"accord: warning: {warning}", file=sys.stderr)
    if args.json:
        print_json(issued_for_json(issued))
    else:
        print(_summary(issued), file=sys.stderr)
        print(issued.token)


def _space_warnings(id: str) -> list[str]:
    return [f"{id!r} contains a space; quote it whenever you type it"] if " " in id else []


def _token_request(args: argparse.Namespace) -> "TokenRequest":
    import msgspec

    from accord.api.tokens import TokenRequest
    from accord.core.kernel.refusal import Reason, Refused

    if not args.foreign:
        check_new_id(args.id)
    names = ("id", "type", "roles", "workspace", "labels", "capabilities", "name", "role")
    fields = {"ttl_s": args.ttl} | {name: getattr(args, name) for name in names}
    if args.roles is None:
        roles, rights = _roles_of_seat(args.id, args.type)
        fields |= {"roles": roles, "capabilities": rights | frozenset(args.capabilities)}
    try:
        return msgspec.convert(fields, TokenRequest)
    except msgspec.ValidationError as error:
        raise Refused(Reason.MALFORMED, f"No such token can be issued: {error}") from None


def check_new_id(id: str, foreign: str = FOREIGN_ADVICE) -> None:
    """UNI-3: a new id must be spelled the same in sessions, pacts and commit trailers."""
    from accord.core.kernel.ids import slug
    from accord.core.kernel.refusal import Reason, Refused

    if slug(id) != id:
        advice = f"try {slug(id)}" if slug(id) else "use a-z, 0-9 and -"
        raise Refused(Reason.MALFORMED, f"{id!r} cannot be a new id: {advice}{foreign}")


def _roles_of_seat(id: str, kind: str) -> "tuple[Roles, Capabilities]":
    """UNI-13: the roles that follow from a seat of the pact in this directory."""
    from accord.core.kernel.ids import slug
    from accord.core.kernel.refusal import Reason, Refused
    from accord.core.kernel.role_permissions import Kind
    from accord.core.people.thread_role import session_rights_of
    from accord.pact.workspace import open_workspace

    work = open_workspace(Path.cwd(), os.environ.get("PACT_DIR", ""), slug(id)).load().work
    seat = None if work.too_new else work.seat(slug(id))
    roles, rights = session_rights_of(Kind(kind), seat.roles if seat else ())
    if not roles:
        detail = f"Add --roles: {id!r} has no seat in a pact here that they could be derived from"
        raise Refused(Reason.MALFORMED, detail)
    return roles, rights


def issued_for_json(issued: "IssuedToken") -> dict[str, Any]:
    """A new token for programs, with the token itself."""
    return {
        "token": issued.token,
        **token_for_json(issued.public_record(), revoked=False),
        "role": issued.claims.role,
        "session": issued.claims.session_id,
        "warnings": issued.warnings,
    }


def token_for_json(token: "Token", *, revoked: bool) -> dict[str, Any]:
    """A token for programs, in the style that every command has."""
    from accord.core.kernel.timestamps import to_iso

    return {
        "jti": token.jti,
        "principal": token.id,
        "type": token.kind,
        "name": token.name,
        "roles": sorted(token.roles),
        "labels": sorted(token.labels),
        "capabilities": sorted(token.capabilities),
        "workspace": token.workspace,
        "device": token.device,
        "key": token.key,
        "issued_at": to_iso(token.issued_at),
        "expires_at": to_iso(token.expires_at),
        "revoked": revoked,
    }


def _summary(issued: "IssuedToken") -> str:
    from accord.core.kernel.timestamps import to_iso

    claims = issued.claims
    who = f"{claims.agent_id}, {claims.kind}, {', '.join(sorted(claims.roles)) or 'no roles'}"
    return f"{who}; until {to_iso(claims.exp * 1000)}; jti {claims.jti}"


async def _list(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    from accord.core.kernel.timestamps import to_iso
    from accord.show.output import print_json, print_table

    tokens = await admin.tokens()
    if args.json:
        print_json({"tokens": [token_for_json(token, revoked=token.revoked) for token in tokens]})
        return
    rows = (
        (
            *(token.jti, token.id, token.kind, ",".join(sorted(token.roles))),
            *(",".join(sorted(token.labels)), token.workspace),
            *(to_iso(token.expires_at)[:16] + "Z", "revoked" if token.revoked else ""),
        )
        for token in tokens
    )
    heads = ("JTI", "ID", "TYPE", "ROLES", "LABELS", "WORKSPACE", "EXPIRES", "STATE")
    print_table(heads, rows)


async def _revoke(admin: "TokenAdmin", args: argparse.Namespace) -> None:
    from accord.show.output import print_json

    await admin.revoke(args.jti, args.reason, force=args.force)
    if args.json:
        print_json({"jti": args.jti, "revoked": True})
    else:
        print(f"{args.jti} is revoked and no longer valid")
