"""`accord policy grant`, `list` and `revoke`: votes given beforehand."""

import argparse
import asyncio
from typing import Any

from accord.cli import connection
from accord.core.kernel.refusal import Reason, Refused
from accord.show.text import format_duration, local_time, one_line

MIN_PREFIX_LENGTH = 8


def grant(args: argparse.Namespace) -> int:
    return asyncio.run(_grant(args))


async def _grant(args: argparse.Namespace) -> int:
    from accord.api.policies import StandingGrantRequest
    from accord.show.output import print_json

    if not args.run and not args.write:
        raise Refused(Reason.MALFORMED, "Say what for: --run 'pytest **' or --write 'src/**'")
    session = connection.session_of(args)
    client = await connection.member_client(args, session)
    wanted = StandingGrantRequest(
        agent=args.agent,
        count=args.count,
        seconds=args.seconds,
        run=tuple(args.run),
        write=tuple(args.write),
        comment=args.comment,
    )
    receipt = await client.give_standing_grant(session, wanted)
    if args.json:
        print_json({"id": receipt.id, "session": session})
        return 0
    patterns = ", ".join([*args.run, *(f"write {path}" for path in args.write)])
    what = f"{args.agent} may do {args.count} calls like {patterns}"
    print(one_line(f"{what} in the next {format_duration(args.seconds)} with your yes"))
    print(f"{receipt.id}; `accord policy revoke` ends it")
    return 0


def list_grants(args: argparse.Namespace) -> int:
    """List the standing grants of all sessions of the caller."""
    return asyncio.run(_list(args))


async def _list(args: argparse.Namespace) -> int:
    from accord.show.output import print_json, print_table

    grants = await _grants(args)
    if args.json:
        print_json({"standing_grants": grants})
        return 0
    rows = (
        (
            *(each["id"], each["grantor"], each["agent"], patterns_of(each)),
            *(f"{each['used']} of {each['count']}", f"{local_time(each['expires_at']):%H:%M}"),
            each["session_name"] or each["session"],
        )
        for each in grants
    )
    print_table(("GRANT", "BY", "AGENT", "FOR", "USED", "UNTIL", "SESSION"), rows)
    return 0


def patterns_of(entry: dict[str, Any]) -> str:
    """The patterns of a grant in one line."""
    return one_line(", ".join([*entry["run"], *(f"write {path}" for path in entry["write"])]))


async def _grants(args: argparse.Namespace) -> list[dict[str, Any]]:
    import msgspec

    home = await connection.client_for(args).home()
    found: list[dict[str, Any]] = msgspec.to_builtins(home)["standing_grants"]
    return found


def revoke(args: argparse.Namespace) -> int:
    return asyncio.run(_revoke(args))


async def _revoke(args: argparse.Namespace) -> int:
    from accord.show.output import print_json

    matching = [
        each
        for each in await _grants(args)
        if each["id"].startswith(args.grant) and len(args.grant) >= MIN_PREFIX_LENGTH
    ]
    if len(matching) != 1:
        detail = f"There is no single standing grant {one_line(args.grant)}"
        raise Refused(Reason.NOT_FOUND, f"{detail}; `accord policy list` shows them")
    found = matching[0]
    client = connection.client_for(args)
    await client.end_standing_grant(found["session"], found["id"], args.reason or "")
    if args.json:
        print_json({"id": found["id"], "ended": True})
    else:
        print(one_line(f"Ended: {patterns_of(found)} of {found['agent']} needs a vote again"))
    return 0
