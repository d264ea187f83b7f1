"""Copy the log into one file, also while a server writes.

The copy is as of one moment; writers and readers do not wait for it. It is checked like `accord
verify` does before it takes its name, so what has the name holds. It holds everything that was
said, and the public keys; with --with-keys also the private ones, which can sign tokens for
anybody: keep such a file like a password.

Examples:
  accord backup accord-monday.backup
  accord backup --with-keys /safe/place/accord.backup
  accord backup --force --json accord.backup
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from accord.show.text import count, line

if TYPE_CHECKING:
    from accord.backup import Holding


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where to, from where, and whether with keys."""
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="the file to write")
    add("--with-keys", action="store_true", help="put the private keys in, too")
    add("--force", action="store_true", help="replace FILE if it is there")
    add("--data-dir", type=Path, metavar="DIR", help="database and keys (default: ACCORD_HOME)")
    add("--store", metavar="URL", help="where the log is (default: sqlite: in the data directory)")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Copy, check, and only then give it its name."""
    import os
    import time

    from accord import backup
    from accord.cli.meter import progress
    from accord.settings import Settings

    if not args.force and os.path.lexists(args.file):
        raise backup.there_already(args.file)
    home, at = Settings.here(home=args.data_dir).home, time.time_ns() // 1_000_000
    draft = backup.make(
        home, args.store, args.file, at=at, private=args.with_keys, progress=progress
    )
    try:
        draft.become(force=args.force)
    finally:
        draft.drop()
    if args.json:
        from accord.show.output import tell

        tell({"file": str(args.file), **described(draft.holding)})
    else:
        print(f"Wrote {line(str(args.file))}: {sentence(draft.holding)}")
        print(secrecy(draft.holding))
    return 0


def described(holding: "Holding") -> dict[str, object]:
    """For programs."""
    from msgspec.structs import asdict

    from accord.core.kernel.times import iso

    made = None if holding.made_at is None else iso(holding.made_at)
    return {**asdict(holding), "made_at": made}


def sentence(holding: "Holding") -> str:
    """What it holds."""
    sessions, records = count(holding.sessions, "session"), count(holding.records, "record")
    newest = f", the last {holding.unsigned} not yet signed" if holding.unsigned else ""
    return f"{sessions}, {records}{newest}; checked, head {holding.head}"


def secrecy(holding: "Holding") -> str:
    """Whom it may be shown."""
    if holding.can_sign:
        return "It holds everything that was said AND THE PRIVATE KEYS: keep it like a password."
    return "It holds everything that was said and the public keys; it cannot sign."
