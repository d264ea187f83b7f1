"""Move the log to another store.

`copy` copies every record, signature and retention cut, in the same order, so that the hash chain
stays intact. Stop the server first. An interrupted copy goes on where it ended when the same
command is run again. Check the result with `accord verify --store TO`, then start the server with
`--store TO` and the same --data-dir, which has its keys.

Examples:
  accord store copy sqlite:data/accord.db postgresql://accord@db.example/accord
  accord store copy postgresql://accord@db.example/accord sqlite:accord.db
"""

import argparse
import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from accord.show.text import plural

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

SQLITE_SCHEME = "sqlite:"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the one verb and its two stores."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    copy = verbs.add_parser("copy", help="copy a log from one store to another")
    copy.add_argument("source", metavar="FROM", help="URL of the log to copy")
    copy.add_argument("target", metavar="TO", help="URL of an empty store, or of a copy begun")
    copy.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Copy, while no server can use the source."""
    from accord.cli.progress import print_record_progress
    from accord.operations.local_log import ensure_log_exists
    from accord.operations.store_copy import copy_store

    ensure_log_exists(args.source)
    ensure_two_stores(args.source, args.target)
    with lock_directory_of(args.source), lock_directory_of(args.target):
        done = asyncio.run(copy_store(args.source, args.target, print_record_progress))
    if args.json:
        import msgspec

        from accord.show.output import print_json

        print_json(msgspec.to_builtins(done))
    else:
        already = done.records - done.copied
        print(f"Copied {plural(done.copied, 'record')} of {plural(done.streams, 'stream')}.")
        if already:
            print(f"{plural(already, 'record')} had been copied before.")
        print("Check the copy with `accord verify --store` and its URL.")
    return 0


def ensure_two_stores(source: str, target: str) -> None:
    """Refuse to copy a log onto itself."""
    from accord.core.kernel.refusal import Reason, Refused

    paths = [
        Path(url.removeprefix(SQLITE_SCHEME)).resolve() if url.startswith(SQLITE_SCHEME) else url
        for url in (source, target)
    ]
    if paths[0] == paths[1]:
        raise Refused(Reason.MALFORMED, "Source and target are the same store; name another one")


def lock_directory_of(url: str) -> "AbstractContextManager[object]":
    """Keeps servers away from the data directory of a SQLite file."""
    from accord.cli.data_dir_lock import LOCK_FILE, lock_data_dir

    directory = Path(url.removeprefix(SQLITE_SCHEME)).absolute().parent
    if url.startswith(SQLITE_SCHEME) and (directory / LOCK_FILE).exists():
        return lock_data_dir(directory)
    return nullcontext()
