"""Replace the log with a backup.

Stop the server first. The backup is verified before anything changes. An existing log is replaced
only with --force; it is moved aside under a name with the time, never deleted. Existing private
keys are kept; if there are none, those of the backup are used. Messages and revocations made after
the backup are lost: a token revoked since then is valid again.

Examples:
  accord restore accord-monday.backup
  accord restore --force --data-dir ./data accord.backup
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from accord.show.text import local_time, one_line

if TYPE_CHECKING:
    from accord.operations.backup import RestoreResult

KEY_OUTCOMES = {
    "kept": "The existing keys are kept; tokens signed with them stay valid.",
    "restored": "The keys were restored from the backup; tokens signed with them stay valid.",
    "public": (
        "The backup contains no private key. Earlier tokens and signatures can still be verified;\n"
        "the server makes a new key when it starts, and signs with that."
    ),
    "none": (
        "The backup contains no keys, and there are none here. The server makes a new key when it\n"
        "starts; earlier tokens are invalid, and earlier signatures cannot be fully verified."
    ),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the backup and where to restore it."""
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="a file that `accord backup` wrote")
    add("--force", action="store_true", help="replace an existing log; it is moved aside")
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
    """Lock the directory, so that no server can start, and restore the backup."""
    from datetime import UTC, datetime

    from accord.cli.data_dir_lock import lock_data_dir
    from accord.cli.progress import print_progress
    from accord.operations import backup
    from accord.settings.client import Settings

    backup.ensure_backup_exists(args.file)  # before a directory is created for it
    home = Settings.for_process(home=args.data_dir).home.absolute()
    instant = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z"
    with lock_data_dir(home):
        ensure_replaceable(home, args)
        done = backup.restore(home, args.store, args.file, instant=instant, progress=print_progress)
    if args.json:
        print_report_json(done)
    else:
        print("\n".join(render_report(done)))
    return 0


def ensure_replaceable(home: Path, args: argparse.Namespace) -> None:
    """Refuse to replace an existing log without --force."""
    from accord.core.kernel.refusal import Reason, Refused
    from accord.data_dir import store_url_of
    from accord.operations.backup import store_path

    target = store_path(store_url_of(home, args.store))
    if target.exists() and not args.force:
        detail = f"There is a log at {target}; --force moves it aside and restores the backup"
        raise Refused(Reason.WRONG_STATE, detail)


def print_report_json(done: "RestoreResult") -> None:
    from accord.cli.admin.backup import holding_for_json
    from accord.show.output import print_json

    before = str(done.before) if done.before else None
    print_json({**holding_for_json(done.summary), "moved_aside": before, "keys_now": done.keys})


def render_report(done: "RestoreResult") -> list[str]:
    """The report for people: what was restored, where the old log is, what to do next."""
    from accord.cli.admin.backup import describe_holding, holding_for_json

    holding = done.summary
    lines = [f"Restored {describe_holding(holding)}"]
    if holding.made_at is not None:
        made = local_time(str(holding_for_json(holding)["made_at"]))
        lines.append(
            f"It was made {made:%Y-%m-%d %H:%M}. Later messages are not in it, and tokens\n"
            "revoked since then are valid again: revoke them once more."
        )
    if done.before:
        lines.append(f"The previous log is now {one_line(str(done.before))}")
    return [*lines, KEY_OUTCOMES[done.keys]]
