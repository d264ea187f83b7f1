"""Remove what was said in sessions that ended, for good.

Nothing is removed by itself: say how long to keep ended sessions, or name one. Everything before
the end of such a session goes; that it was there, who was in it and how it ended stays. A signed
statement takes the place of what is gone, so `accord verify` still proves the rest and names what
was removed, when and by whom. Export first what somebody may want: `accord session export`.

A server may run meanwhile. The file itself becomes smaller when none does; until then what is free
in it is used for what comes next.

Examples:
  accord compact --keep-ended 90d --dry-run
  accord compact --keep-ended 90d --reason "Our rule: three months"
  accord compact --session 01JZ0Q6Y5W3V8T2N4M6K8H0F2D
"""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from accord.show.text import count, line

if TYPE_CHECKING:
    from accord.retention import Ending, Pruned, Retention

LONGEST_REASON = 500
MIB = 1 << 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """What, why, and where."""
    add = parser.add_argument
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--keep-ended", type=age, metavar="90d", help="keep what ended since")
    which.add_argument("--session", metavar="SESSION", help="this one, which must have ended")
    add("--reason", type=short, default="retention", help="written into the signed statement")
    add("--dry-run", action="store_true", help="only say what would be removed")
    add("--data-dir", type=Path, metavar="DIR", help="database and keys (default: ACCORD_HOME)")
    add("--store", metavar="URL", help="where the log is (default: sqlite: in the data directory)")
    add("--json", action="store_true", help="print JSON")


def age(text: str) -> int:
    """A duration in milliseconds."""
    from accord.cli.durations import seconds

    try:
        return seconds(text) * 1000
    except ValueError as no:
        raise argparse.ArgumentTypeError(str(no)) from None


def short(text: str) -> str:
    """A reason that fits."""
    if len(text) > LONGEST_REASON:
        raise argparse.ArgumentTypeError(f"a reason has at most {LONGEST_REASON} letters")
    return text


def run(args: argparse.Namespace) -> int:
    """Remove, then make the file smaller if nobody else uses it."""
    from accord.home import place
    from accord.settings import Settings

    home = Settings.here(home=args.data_dir).home.absolute()
    url = place(home, args.store)
    pruned = asyncio.run(remove(args, home, url))
    shrunk, free = (0, 0) if args.dry_run else shrink(home, url)
    if args.json:
        from msgspec.structs import asdict

        from accord.show.output import tell

        told = [asdict(each) for each in pruned]
        tell({"removed": told, "dry_run": args.dry_run, "bytes_freed": shrunk, "bytes_free": free})
    else:
        print("\n".join(report(pruned, shrunk, free, dry=args.dry_run)))
    return 0


async def remove(args: argparse.Namespace, home: Path, url: str) -> list["Pruned"]:
    """Each session that is due."""
    from accord.app import operator_id
    from accord.retention import Pruned, on_files

    async with on_files(home, url, operator_id(), args.reason) as retention:
        found = await chosen(retention, args)
        if args.dry_run:
            return [Pruned(each.stream, each.version - 1, each.at) for each in found]
        await retention.store.finish_pruning()
        return [await retention.prune(each) for each in found]


async def chosen(retention: "Retention", args: argparse.Namespace) -> list["Ending"]:
    """What was asked for."""
    from accord.core.kernel.refusal import Refused, Why
    from accord.reading import PREFIX

    if args.session is None:
        return await retention.due(args.keep_ended)
    stream = f"{PREFIX}{args.session}"
    newest = (await retention.events.streams(stream)).get(stream, 0)
    if not newest:
        raise Refused(Why.NO_ROOM, f"There is no session {args.session} in this log")
    if await retention.store.cut(stream):
        raise Refused(Why.WRONG_STATE, f"What was said in {args.session} is removed already")
    ending = await retention.ending(stream, newest)
    if ending is None:
        raise Refused(Why.WRONG_STATE, f"{args.session} has not ended; nothing was removed")
    return [ending]


def shrink(home: Path, url: str) -> tuple[int, int]:
    """Bytes given back to the disk, and bytes free inside the file."""
    from accord.cli.lock import locked
    from accord.core.kernel.refusal import Refused
    from accord.retention import free_inside, give_back

    try:
        with locked(home):
            return give_back(url), 0
    except Refused:  # a server runs, and would have to wait
        return 0, free_inside(url)


def report(pruned: list["Pruned"], shrunk: int, free: int, *, dry: bool) -> list[str]:
    """For people."""
    from accord.core.kernel.times import iso

    if not pruned:
        return ["There is nothing to remove."]
    verb = "Would remove" if dry else "Removed"
    lines = [
        f"{line(each.stream)}  {count(each.records, 'record')}, ended {iso(each.ended_at)[:10]}"
        for each in pruned
    ]
    total = sum(each.records for each in pruned)
    lines.append(f"{verb} {count(total, 'record')} of {count(len(pruned), 'session')}.")
    if shrunk >= MIB:
        lines.append(f"The file is {shrunk // MIB} MiB smaller.")
    if free >= MIB:
        lines.append(f"{free // MIB} MiB are free in the file; it shrinks when no server runs.")
    return lines
