"""Copy the log into one file, even while the server runs.

The copy is a consistent snapshot; the server does not wait for it. It is verified as by `accord
verify` before FILE appears, so a FILE that exists is complete. It contains all messages and the
public keys. With --with-keys it also contains the private keys, which can sign tokens for anyone:
protect such a file like a password.

Examples:
  accord backup accord-monday.backup
  accord backup --with-keys /safe/place/accord.backup
  accord backup --force --json accord.backup
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from accord.show.text import one_line, plural

if TYPE_CHECKING:
    from accord.operations.backup import BackupSummary


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file, its contents and where the log is."""
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="the file to write")
    add("--with-keys", action="store_true", help="include the private keys")
    add("--force", action="store_true", help="replace FILE if it exists")
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


def run(args: argparse.Namespace) -> int:
    """Copy and verify; FILE appears only after that."""
    import os
    import time

    from accord.cli.progress import print_progress
    from accord.operations import backup
    from accord.settings.client import Settings

    if not args.force and os.path.lexists(args.file):
        raise backup.exists_refusal(args.file)
    home, at = Settings.for_process(home=args.data_dir).home, time.time_ns() // 1_000_000
    draft = backup.make_backup(
        home, args.store, args.file, at=at, private=args.with_keys, progress=print_progress
    )
    try:
        draft.move_into_place(force=args.force)
    finally:
        draft.discard()
    if args.json:
        from accord.show.output import print_json

        print_json({"file": str(args.file), **holding_for_json(draft.summary)})
    else:
        print(f"Wrote {one_line(str(args.file))}: {describe_holding(draft.summary)}")
        print(secrecy_warning(draft.summary))
    return 0


def holding_for_json(holding: "BackupSummary") -> dict[str, object]:
    """The contents of a backup as JSON."""
    from msgspec.structs import asdict

    from accord.core.kernel.timestamps import to_iso

    made = None if holding.made_at is None else to_iso(holding.made_at)
    return {**asdict(holding), "made_at": made}


def describe_holding(holding: "BackupSummary") -> str:
    """The contents of a backup in one line."""
    sessions, records = plural(holding.sessions, "session"), plural(holding.records, "record")
    newest = f", the last {holding.unsigned} not yet signed" if holding.unsigned else ""
    return f"{sessions}, {records}{newest}; verified, head {holding.head}"


def secrecy_warning(holding: "BackupSummary") -> str:
    """How confidential the file is."""
    if holding.can_sign:
        return "It contains all messages AND THE PRIVATE KEYS: protect it like a password."
    return "It contains all messages and the public keys, but no private key."
