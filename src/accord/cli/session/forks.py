"""`accord session fork`, `forks` and `merge`."""

import argparse
import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from accord.cli import connection
from accord.core.kernel.refusal import Reason, Refused
from accord.show import style
from accord.show.text import join_words, one_line

if TYPE_CHECKING:
    from accord.client import Client

MERGE_STRATEGIES = ("append", "interleave", "replace", "manual")
MAIN_FORK = "main"


def fork_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name, its members and where it branches off."""
    add = parser.add_argument
    add("name", metavar="NAME", help="what the fork is about")
    add("--with", dest="company", default="", metavar="A,B", help="other members of the fork")
    add(
        "--from",
        dest="point",
        metavar="ID",
        help="the message to branch off from (default: the last)",
    )
    add(
        "--in", dest="fork", metavar="FORK", help="the fork to branch off from (default: the trunk)"
    )
    add("--no-context", action="store_true", help="do not copy the context items")
    add("--reason", default="", help="why")


def merge_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the fork, its target, the strategy and how to resolve conflicts."""
    add = parser.add_argument
    add("fork", metavar="FORK", help="the fork to merge")
    add("--into", metavar="FORK", help="the target (default: the trunk)")
    add(
        "--strategy",
        choices=MERGE_STRATEGIES,
        default="append",
        help="how to merge (default: append)",
    )
    add("--summary", default="", help="the result of the fork")
    add(
        "--use-source",
        action="append",
        default=[],
        metavar="KEY",
        help="on a conflict, keep the fork's item",
    )
    add(
        "--use-target",
        action="append",
        default=[],
        metavar="KEY",
        help="on a conflict, keep the target's item",
    )


async def fork(args: argparse.Namespace) -> None:
    """Open a fork and print its id."""
    from accord.core.room.forking.forks import ForkCreate
    from accord.show.output import print_json

    names = tuple(name.strip() for name in args.company.split(",") if name.strip())
    # The echo, which a connection gets, names the fork.
    async with await connection.member_client(args, args.session) as client:
        body = ForkCreate(
            args.name,
            args.point or await last_message(client, args.session, args.fork),
            args.reason,
            names,
            not args.no_context,
        )
        receipt = await client.post(args.session, body, fork=args.fork)
    id = receipt.echo.fork if receipt.echo else None
    if args.json:
        print_json({"id": id, "message": receipt.id, "seq": receipt.seq})
    else:
        print(id)


async def last_message(client: "Client", session: str, fork: str | None) -> str:
    """The last message of the fork, or of the trunk if the fork is empty."""
    newest = {envelope.fork: envelope.id async for envelope in client.history(session)}
    return newest.get(fork) or newest[None]


async def forks(args: argparse.Namespace) -> None:
    """Print all forks as a tree."""
    from accord.show.output import print_json

    async with connection.open_source(args) as source:
        found = (await source.detail(connection.session_of(args)))["forks"]
    if args.json:
        print_json({"forks": found})
    else:
        print("\n".join([MAIN_FORK, *fork_tree(found)]))


def fork_tree(forks: list[dict[str, Any]], parent: str | None = None, depth: int = 1) -> list[str]:
    """The forks that branch off from `parent`, each followed by its own forks."""
    lines: list[str] = []
    for fork in forks:
        if fork["parent"] == parent:
            target = one_line(fork["into"] or MAIN_FORK)
            state = f"merged into {target}" if fork["merged"] else "open"
            members = join_words(map(one_line, fork["members"]))
            name = "" if fork["name"] == fork["id"] else f" {one_line(fork['name'])}"
            details = style.dim(f"({members}; {state})")
            lines.append(f"{'  ' * depth}{style.bold(one_line(fork['id']))}{name} {details}")
            lines += fork_tree(forks, fork["id"], depth + 1)
    return lines


async def merge(args: argparse.Namespace) -> None:
    """Propose and execute a merge, or continue one that waited for approval."""
    from accord.client.session_forks import build_resolutions
    from accord.core.room.forking.merges import MergeExecute
    from accord.show.output import print_json

    client = await connection.member_client(args, args.session)
    proposal, gated = await propose_merge(client, args)
    if not gated:
        resolutions = build_resolutions(args.use_source, args.use_target, {})
        body = MergeExecute(proposal, resolutions or None)
        await client.post(args.session, body, ref=proposal)
    if args.json:
        print_json({"id": proposal, "state": "waits" if gated else "merged"})
    elif gated:
        print(f"{args.fork} can be merged after approval: see `accord gates`, then run this again")
    else:
        print(f"{args.fork} was merged into {args.into or MAIN_FORK}")


async def propose_merge(client: "Client", args: argparse.Namespace) -> tuple[str, bool]:
    """The pending merge of the fork, or a new one, and whether it needs approval first."""
    from accord.core.room.forking.fork_state import MergeStrategy
    from accord.core.room.forking.merge_approval import HEAD_KEY
    from accord.core.room.forking.merges import MergePropose

    if pending := await pending_merge(client, args):
        return pending
    strategy = MergeStrategy(args.strategy)
    head = await asyncio.to_thread(branch_head, args.session, args.fork)
    shown = {HEAD_KEY: head} if head else None
    body = MergePropose(args.fork, args.into or MAIN_FORK, strategy, args.summary, shown)
    await client.post(args.session, body)
    if pending := await pending_merge(client, args):
        return pending
    raise Refused(Reason.WRONG_STATE, f"{args.fork} was already merged")


async def pending_merge(client: "Client", args: argparse.Namespace) -> tuple[str, bool] | None:
    """The fork's proposed merge and whether it waits for approval; None if none stands."""
    merges = (await client.session(args.session)).merges
    found = (each for each in merges if each.source == args.fork and not each.changed)
    return next(((merge.id, merge.gated) for merge in found), None)


def branch_head(session: str, fork: str) -> str:
    """The commit on the fork's branch in the repository here; empty if it is not the session's."""
    from accord.cli.git.bind import is_bound_here
    from accord.core.provenance.commit_message.trailer_values import branch_of
    from accord.git.process import GitError
    from accord.git.repository import Repository

    repo = Repository()
    with suppress(OSError, GitError):
        head = repo.resolve(f"refs/heads/{branch_of(fork)}")
        return head if head and is_bound_here(repo, session) else ""
    return ""
