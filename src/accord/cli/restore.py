"""Put a backup in the place of the log.

Stop the server first. The backup is checked before anything is touched, and a log that is there
already is replaced only with --force: it is moved aside under a name with the time, never deleted.
Keys that can sign here stay as they are; where there are none, those of the backup are used. What
was said after the backup was made is not in it, and neither are revocations: a token that was
revoked since is good again.

Examples:
  accord restore accord-monday.backup
  accord restore --force --data-dir ./data accord.backup
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from accord.show.text import line, moment

if TYPE_CHECKING:
    from accord.backup import Restored

KEYS = {
    "kept": "The keys here can sign and stay as they are; tokens signed with them stay good.",
    "restored": "The keys came from the backup: tokens stay good, the same key goes on signing.",
    "public": (
        "The backup holds no private key. Tokens and signatures from before can still be checked;\n"
        "the server makes a new key when it starts, and signs with that."
    ),
    "none": (
        "The backup holds no keys, and none are here. The server makes a new one; tokens from\n"
        "before are worth nothing, and old signatures as much as the log's own word for their key."
    ),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """What, and where to."""
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="a backup")
    add("--force", action="store_true", help="also where there is a log; it is moved aside")
    add("--data-dir", type=Path, metavar="DIR", help="database and keys (default: ACCORD_HOME)")
    add("--store", metavar="URL", help="where the log is (default: sqlite: in the data directory)")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Hold the directory, so that no server can start, and put the copy in its place."""
    from datetime import UTC, datetime

    from accord import backup
    from accord.cli.lock import locked
    from accord.cli.meter import progress
    from accord.settings import Settings

    backup.ensure_backup(args.file)  # before a directory is made for it
    home = Settings.here(home=args.data_dir).home.absolute()
    instant = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z"
    with locked(home):
        ensure_free(home, args)
        done = backup.restore(home, args.store, args.file, instant=instant, progress=progress)
    if args.json:
        report(done)
    else:
        print("\n".join(told(done)))
    return 0


def ensure_free(home: Path, args: argparse.Namespace) -> None:
    """A log that is there gives way only to --force."""
    from accord.backup import path_of
    from accord.core.kernel.refusal import Refused, Why
    from accord.home import place

    target = path_of(place(home, args.store))
    if target.exists() and not args.force:
        detail = f"There is a log at {target}; --force moves it aside and restores the backup"
        raise Refused(Why.WRONG_STATE, detail)


def report(done: "Restored") -> None:
    """For programs."""
    from accord.cli.backup import described
    from accord.show.output import tell

    before = str(done.before) if done.before else None
    tell({**described(done.holding), "moved_aside": before, "keys_now": done.keys})


def told(done: "Restored") -> list[str]:
    """For people: what is there now, what became of the old log, and what to see to."""
    from accord.cli.backup import described, sentence

    holding = done.holding
    lines = [f"Restored {sentence(holding)}"]
    if holding.made_at is not None:
        made = moment(str(described(holding)["made_at"]))
        lines.append(
            f"It was made {made:%Y-%m-%d %H:%M}. What was said since is not in it, and tokens\n"
            "revoked since are good again: revoke them once more."
        )
    if done.before:
        lines.append(f"The log that was here is now {line(str(done.before))}")
    return [*lines, KEYS[done.keys]]
