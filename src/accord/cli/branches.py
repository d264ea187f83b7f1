"""Going separate ways and coming back: `accord session fork`, `forks` and `merge`."""

import argparse
from typing import TYPE_CHECKING, Any

from accord.cli import where
from accord.core.kernel.refusal import Refused, Why
from accord.show import paint
from accord.show.text import line, listed

if TYPE_CHECKING:
    from accord.client import Client

STRATEGIES = ("append", "interleave", "replace", "manual")
MAIN = "main"


def fork_arguments(parser: argparse.ArgumentParser) -> None:
    """Its name, who comes along, and where it leaves."""
    add = parser.add_argument
    add("name", metavar="NAME", help="what it is about")
    add("--with", dest="company", default="", metavar="A,B", help="who comes along besides you")
    add("--from", dest="point", metavar="ID", help="the message it leaves at (default: the last)")
    add("--in", dest="fork", metavar="FORK", help="fork off this fork (default: the trunk)")
    add("--no-context", action="store_true", help="leave the context behind")
    add("--reason", default="", help="why")


def merge_arguments(parser: argparse.ArgumentParser) -> None:
    """Which fork, where to, how, and an answer to each conflict."""
    add = parser.add_argument
    add("fork", metavar="FORK", help="the fork that comes back")
    add("--into", metavar="FORK", help="default: the trunk")
    add("--strategy", choices=STRATEGIES, default="append", help="default: append")
    add("--summary", default="", help="what came of it")
    add("--use-source", action="append", default=[], metavar="KEY", help="settle a conflict")
    add("--use-target", action="append", default=[], metavar="KEY", help="the other way")


async def fork(args: argparse.Namespace) -> None:
    """Open one; its id goes to standard output."""
    from accord.cli.steer import inside
    from accord.core.room.forks import ForkCreate
    from accord.show.output import tell

    names = tuple(name.strip() for name in args.company.split(",") if name.strip())
    async with where.client(args) as client:
        await inside(client, args.session)
        body = ForkCreate(
            args.name,
            args.point or await last(client, args.session, args.fork),
            args.reason,
            names,
            not args.no_context,
        )
        said = await client.post(args.session, body, fork=args.fork)
    id = said.echo.fork if said.echo else None
    if args.json:
        tell({"id": id, "message": said.id})
    else:
        print(id)


async def last(client: "Client", session: str, fork: str | None) -> str:
    """The last message of that fork; of the trunk where nothing was said in it."""
    found = {said.fork: said.id async for said in client.history(session)}
    return found.get(fork) or found[None]


async def forks(args: argparse.Namespace) -> None:
    """All of them, as a tree."""
    from accord.show.output import tell

    async with where.reading(args) as source:
        found = (await source.detail(where.session_of(args)))["forks"]
    if args.json:
        tell({"forks": found})
    else:
        print("\n".join([MAIN, *tree(found)]))


def tree(forks: list[dict[str, Any]], parent: str | None = None, depth: int = 1) -> list[str]:
    """The forks of a fork, each with its own below it."""
    lines: list[str] = []
    for each in forks:
        if each["parent"] == parent:
            end = f"merged into {line(each['into'] or MAIN)}" if each["merged"] else "open"
            who = listed(map(line, each["members"]))
            name = "" if each["name"] == each["id"] else f" {line(each['name'])}"
            what = f"{paint.bold(line(each['id']))}{name} {paint.dim(f'({who}; {end})')}"
            lines += [f"{'  ' * depth}{what}", *tree(forks, each["id"], depth + 1)]
    return lines


async def merge(args: argparse.Namespace) -> None:
    """Bring it back, or go on with a merge that had to wait."""
    from accord.cli.steer import inside
    from accord.client.branching import resolutions
    from accord.core.room.merges import MergeExecute
    from accord.show.output import tell

    async with where.client(args) as client:
        await inside(client, args.session)
        proposal, gated = await proposed(client, args)
        if not gated:
            answers = resolutions(args.use_source, args.use_target, {})
            await client.post(args.session, MergeExecute(proposal, answers or None), ref=proposal)
    if args.json:
        tell({"id": proposal, "state": "waits" if gated else "merged"})
    elif gated:
        print(f"{args.fork} comes back once its gate is passed: `accord gates`, then merge again")
    else:
        print(f"{args.fork} was merged into {args.into or MAIN}")


async def proposed(client: "Client", args: argparse.Namespace) -> tuple[str, bool]:
    """The merge of that fork that waits, or a new one; and whether it needs approval first."""
    from accord.core.room.merges import MergePropose
    from accord.core.room.state import Strategy

    if found := await waiting(client, args):
        return found
    strategy = Strategy(args.strategy)
    body = MergePropose(args.fork, args.into or MAIN, strategy, args.summary)
    await client.post(args.session, body)
    if found := await waiting(client, args):
        return found
    raise Refused(Why.WRONG_STATE, f"The merge of {args.fork} is over already")


async def waiting(client: "Client", args: argparse.Namespace) -> tuple[str, bool] | None:
    """The merge of that fork that is still to be done."""
    merges = (await client.session(args.session)).merges
    return next(((each.id, each.gated) for each in merges if each.source == args.fork), None)
