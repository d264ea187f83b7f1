"""The verbs of `accord pact` that read the ledger."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.core.work.ledger_validation import ValidationFinding
    from accord.core.work.seat_inbox import InboxItem
    from accord.core.work.state import Work
    from accord.core.work.verbs import ActingSeat
    from accord.pact.workspace import Workspace


EXIT_BAD_INPUT, EXIT_TIMED_OUT = 2, 6
# Evidence may be a megabyte; `--json` and the log have all of it.
MAX_TEXT_LENGTH = 300


def status(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    from accord.show.text import one_line

    work, text, problems = desk.check_state_file()
    for problem in problems:
        print(f"accord: warning: {one_line(problem)}", file=sys.stderr)
    if args.json or args.board or args.extended or sys.stdout.isatty():
        return _print_view(desk.work_with_foreign_events() if args.extended else work, args)
    sys.stdout.flush()
    sys.stdout.buffer.write(text)
    return 0


def _print_view(work: "Work", args: argparse.Namespace) -> int:
    from accord.core.views.pact_board import work_view

    shown = work_view(work)
    if args.json:
        from accord.show.output import print_json

        print_json(shown)
        return 0
    from accord.cli.pact.board import render_board

    print("\n".join(render_board(shown)))
    return 0


def log(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    if args.replay:
        desk.rebuild_state_file()
        if not args.json:
            print("Rebuilt STATE.yml from the log.")
        return 0
    desk.load_checked()
    data, _ = desk.ledger.read()
    if args.json:
        from accord.core.work.format import log_lines
        from accord.show.output import print_json

        print_json([found for _, found in log_lines.parse_objects(data)])
    elif sys.stdout.isatty():
        from accord.show.text import escape_controls

        print(escape_controls(data.decode("utf-8", "replace")), end="")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    return 0


def validate(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    from accord.show.text import one_line, plural

    found = desk.validate(strict=args.strict)
    errors = [finding for finding in found if not finding.warning]
    if args.json:
        from accord.show.output import print_json

        print_json({"valid": not errors, "findings": [ledger_finding_for_json(f) for f in found]})
    else:
        for finding in found:
            where = f"line {finding.line}: " if finding.line else ""
            kind = "warning" if finding.warning else "error"
            print(f"{kind} ({finding.check}) {where}{one_line(finding.sentence)}")
        print(plural(len(errors), "error") if errors else "The log and its files are valid.")
    return EXIT_BAD_INPUT if errors else 0


def ledger_finding_for_json(found: "ValidationFinding") -> dict[str, object]:
    """A problem of the log or its files, for programs."""
    from accord.cli.json_values import finding_for_json

    severity = "warning" if found.warning else "error"
    return finding_for_json(
        found.sentence, severity=severity, line=found.line or None, code=found.check
    )


def watch(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    from accord.pact.watch import watch_inbox

    def print_items(items: "Sequence[InboxItem]") -> None:
        from accord.show.output import print_json
        from accord.show.text import clip, one_line

        for item in items:
            if args.json:
                print_json(
                    {"do": item.do, "about": item.about, "reason": item.why, "spec": item.spec}
                )
            else:
                spec = f"  ({one_line(item.spec)})" if item.spec else ""
                why = clip(one_line(item.why), MAX_TEXT_LENGTH)
                print(f"{item.do:7} {one_line(item.about):12} {why}{spec}")
        sys.stdout.flush()

    done = watch_inbox(
        desk, print_items, interval=args.interval, timeout_s=args.timeout, stop_at_first=args.first
    )
    return 0 if done else EXIT_TIMED_OUT


def key(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    public = desk.create_key()
    if args.json:
        from accord.show.output import print_json

        print_json({"seat": caller.id, "public_key": public})
    else:
        print(public)
    return 0
