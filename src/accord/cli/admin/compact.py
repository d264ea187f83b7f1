"""Permanently delete the messages of ended sessions.

Choose how long to keep ended sessions, or one session. All its messages before the end are deleted;
that it existed, its members and how it ended are kept. A signed statement takes the place of the
deleted records, so `accord verify` can still prove the rest and reports what was removed, when and
by whom. To keep a copy, run `accord session export` first.

The server may be running. The file only shrinks when no server uses it; until then the free space
inside it is reused.

Examples:
  accord compact --keep-ended 90d --dry-run
  accord compact --keep-ended 90d --reason "Our rule: three months"
  accord compact --session 01JZ0Q6Y5W3V8T2N4M6K8H0F2D
"""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from accord.show.text import one_line, plural

if TYPE_CHECKING:
    from accord.operations.retention import EndedSession, PrunedSession, Retention

MAX_REASON_LENGTH = 500
MIB = 1 << 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to delete, why, and where the log is."""
    add = parser.add_argument
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--keep-ended",
        type=age_type,
        metavar="90d",
        help="keep sessions that ended within this time",
    )
    which.add_argument(
        "--session",
        metavar="SESSION",
        help="delete the messages of this session, which must have ended",
    )
    add("--reason", type=reason_type, default="retention", help="stored in the signed statement")
    add("--dry-run", action="store_true", help="only show what would be removed")
    add(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="directory of the database and keys (default: ACCORD_HOME)",
    )
    add(
        "--store",
        metavar="URL",
        help="URL of the log (default: the SQLite file in the data directory)",
    )
    add("--json", action="store_true", help="print JSON")


def age_type(text: str) -> int:
    """A duration in milliseconds."""
    from accord.cli.durations import parse_duration

    try:
        return parse_duration(text) * 1000
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def reason_type(text: str) -> str:
    """An argument type that refuses a reason that is too long."""
    if len(text) > MAX_REASON_LENGTH:
        raise argparse.ArgumentTypeError(f"a reason has at most {MAX_REASON_LENGTH} characters")
    return text


def run(args: argparse.Namespace) -> int:
    """Remove, then shrink the file if no server uses it."""
    from accord.data_dir import store_url_of
    from accord.settings.client import Settings

    home = Settings.for_process(home=args.data_dir).home.absolute()
    url = store_url_of(home, args.store)
    pruned = asyncio.run(prune_sessions(args, home, url))
    shrunk, free = (0, 0) if args.dry_run else shrink_file(home, url)
    if args.json:
        from msgspec.structs import asdict

        from accord.cli.json_values import instant_for_json
        from accord.show.output import print_json

        removed = [
            {**asdict(session), "ended_at": instant_for_json(session.ended_at)}
            for session in pruned
        ]
        print_json(
            {"removed": removed, "dry_run": args.dry_run, "bytes_freed": shrunk, "bytes_free": free}
        )
    else:
        print("\n".join(render_report(pruned, shrunk, free, dry=args.dry_run)))
    return 0


async def prune_sessions(args: argparse.Namespace, home: Path, url: str) -> list["PrunedSession"]:
    """Delete the messages of the selected sessions; only list them with --dry-run."""
    from accord.operations.retention import PrunedSession, open_offline
    from accord.server.options import operator_id

    async with open_offline(home, url, operator_id(), args.reason) as retention:
        ends = await select_endings(retention, args)
        if args.dry_run:
            return [PrunedSession(end.stream, end.version - 1, end.at) for end in ends]
        await retention.store.finish_pruning()
        return [await retention.prune(end) for end in ends]


async def select_endings(retention: "Retention", args: argparse.Namespace) -> list["EndedSession"]:
    """The ends of the sessions that the flags select."""
    from accord.core.kernel.refusal import Reason, Refused
    from accord.operations.local_log import ROOM_PREFIX

    if args.session is None:
        return await retention.due_sessions(args.keep_ended)
    stream = f"{ROOM_PREFIX}{args.session}"
    newest = (await retention.events.streams(stream)).get(stream, 0)
    if not newest:
        raise Refused(Reason.NO_ROOM, f"There is no session {args.session} in this log")
    if await retention.store.cut(stream):
        raise Refused(Reason.WRONG_STATE, f"The messages of {args.session} were already removed")
    ending = await retention.find_end(stream, newest)
    if ending is None:
        raise Refused(Reason.WRONG_STATE, f"{args.session} has not ended; nothing was removed")
    return [ending]


def shrink_file(home: Path, url: str) -> tuple[int, int]:
    """Bytes returned to the disk, and bytes still free inside the file."""
    from accord.cli.data_dir_lock import lock_data_dir
    from accord.core.kernel.refusal import Refused
    from accord.operations.retention import free_store_bytes, shrink_store

    try:
        with lock_data_dir(home):
            return shrink_store(url), 0
    except Refused:  # a running server would have to wait
        return 0, free_store_bytes(url)


def render_report(pruned: list["PrunedSession"], shrunk: int, free: int, *, dry: bool) -> list[str]:
    from accord.core.kernel.timestamps import to_iso

    if not pruned:
        return ["Nothing to remove."]
    verb = "Would remove" if dry else "Removed"
    lines = [
        f"{one_line(session.stream)}  {plural(session.records, 'record')}, "
        f"ended {to_iso(session.ended_at)[:10]}"
        for session in pruned
    ]
    total = sum(session.records for session in pruned)
    lines.append(f"{verb} {plural(total, 'record')} of {plural(len(pruned), 'session')}.")
    if shrunk >= MIB:
        lines.append(f"The file is {shrunk // MIB} MiB smaller.")
    if free >= MIB:
        lines.append(
            f"{free // MIB} MiB are free inside the file; run this without a server to shrink it."
        )
    return lines
