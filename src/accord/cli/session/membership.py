"""`accord session join`, `leave`, `remove` and `readmit`."""

import argparse
from collections.abc import Iterator

from accord.cli import connection
from accord.cli.parsing import SubsetOf
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.show.text import join_words, one_line, wrap

JOINED = (
    "You stay a member when this shell closes, until you leave, are removed or the session ends. "
    "A shell receives nothing by itself: `accord gates` shows what waits for your approval, "
    "`accord session log --follow` what is said."
)
LEFT = (
    "What was said until now stays readable for you. Approvals that you gave in open gates still "
    "count, and what you asked approval for yourself was withdrawn. "
)
REMOVED = (
    "Their approvals in open gates no longer count, and what they asked approval for themselves "
    "was withdrawn. They can join again only after `accord session readmit`."
)
READMITTED = "They are not a member yet: `accord session join {session}` makes them one."


def join_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--roles",
        type=lambda text: tuple(filter(None, text.split(","))),
        metavar="A,B",
        help="roles to ask for (default: those of your token)",
    )


def leave_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", help="why, for the other members")


def remove_arguments(parser: argparse.ArgumentParser) -> None:
    """Add who is removed, and --reason."""
    parser.add_argument("who", metavar="WHO", help="the member's id")
    parser.add_argument("--reason", help="why, for the other members")


def readmit_arguments(parser: argparse.ArgumentParser) -> None:
    """Add who may come back, --roles and --reason."""
    parser.add_argument("who", metavar="WHO", help="the removed member's id")
    parser.add_argument(
        "--roles",
        required=True,
        type=SubsetOf(Role),
        metavar="A,B",
        help=f"the roles they get: some of {', '.join(Role)}",
    )
    parser.add_argument("--reason", help="why, for the other members")


async def join(args: argparse.Namespace) -> None:
    """Become a member of the session, and say what that means for a shell."""
    from accord.show.output import print_json

    session = connection.session_of(args)
    async with connection.client_for(args) as client:
        await client.join(session, roles=args.roles, listen=False)
        detail = await client.session(session)
        roles = next((member.roles for member in detail.members if member.id == client.id), ())
    if args.json:
        print_json({"id": session, "name": detail.name, "standing": "member", "roles": roles})
    else:
        print("\n".join(joined_lines(detail.name or session, [str(role) for role in roles])))


def joined_lines(name: str, roles: list[str]) -> Iterator[str]:
    """What joining from a shell means."""
    yield f"You are a member of {one_line(name)} now, as {join_words(map(one_line, roles))}."
    yield from wrap(JOINED)


async def leave(args: argparse.Namespace) -> None:
    """End the caller's membership with a single message."""
    from accord.core.room.membership.leaving import SessionLeave
    from accord.show.output import print_json

    session = connection.session_of(args)
    client = connection.client_for(args)
    name = (await client.session(session)).name or session
    await client.post(session, SessionLeave(reason=args.reason))
    if args.json:
        print_json({"id": session, "standing": "former"})
    else:
        print(f"You have left {one_line(name)}.")
        print("\n".join(wrap(f"{LEFT}To come back: `accord session join {one_line(session)}`.")))


async def remove(args: argparse.Namespace) -> None:
    """End the membership of someone else: a role change that leaves no roles."""
    from accord.core.room.membership.role_assignment import ParticipantRoleChange
    from accord.show.output import print_json

    session, who = connection.session_of(args), args.who
    client = connection.client_for(args)
    detail = await client.session(session)
    roles = next((member.roles for member in detail.members if member.id == who), ())
    change = ParticipantRoleChange(who, tuple(roles), (), client.id, args.reason)
    await client.post(session, change)
    if args.json:
        print_json({"session": session, "id": who, "standing": "removed"})
    else:
        print(f"{one_line(who)} is no longer a member of {one_line(detail.name or session)}.")
        print("\n".join(wrap(REMOVED)))


async def readmit(args: argparse.Namespace) -> None:
    """Let someone who was removed join again: a role change from no roles."""
    from accord.core.room.membership.role_assignment import ParticipantRoleChange
    from accord.show.output import print_json

    session, who = connection.session_of(args), args.who
    client = await connection.member_client(args, session)
    detail = await client.session(session)
    name = detail.name or session
    if any(member.id == who for member in detail.members):
        raise Refused(Reason.WRONG_STATE, f"{who} is a member of {name}; there is nothing to do")
    roles = tuple(Role(role) for role in args.roles)
    change = ParticipantRoleChange(who, (), roles, client.id, args.reason)
    await client.post(session, change)
    if args.json:
        print_json({"session": session, "id": who, "standing": "former", "roles": roles})
    else:
        print(f"{one_line(who)} may join {one_line(name)} again, as {join_words(roles)}.")
        print("\n".join(wrap(READMITTED.format(session=one_line(session)))))
