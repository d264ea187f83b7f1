"""The verbs of Pact that look at the ledger, for people and for programs."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.core.work.verbs import Caller
    from accord.core.work.waiting import Waiting
    from accord.pact.desk import Desk


BAD_INPUT, LATER = 2, 6
# Evidence may be a megabyte; whoever wants all of it reads `--json` or the log.
MOST_SAID = 300


def status(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    from accord.show.text import line

    text, wrong = desk.state()
    for said in wrong:
        print(f"accord: warning: {line(said)}", file=sys.stderr)
    if args.json or args.board or args.extended or sys.stdout.isatty():
        return _picture(desk, args)
    sys.stdout.flush()
    sys.stdout.buffer.write(text)
    return 0


def _picture(desk: "Desk", args: argparse.Namespace) -> int:
    from accord.core.views.work import view

    shown = view(desk.extended() if args.extended else desk.view().work)
    if args.json:
        from accord.show.output import tell

        tell(shown)
        return 0
    from accord.cli.board import board

    print("\n".join(board(shown)))
    return 0


def log(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    if args.replay:
        desk.replay()
        return 0
    desk.view()
    data, _ = desk.ledger.read()
    if args.json:
        from accord.core.dialects import pact
        from accord.show.output import tell

        tell([found for _, found in pact.objects(data)])
    elif sys.stdout.isatty():
        from accord.show.text import safe

        print(safe(data.decode("utf-8", "replace")), end="")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    return 0


def validate(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    from accord.show.text import count, line

    found = desk.validate(strict=args.strict)
    wrong = [each for each in found if not each.warning]
    if args.json:
        from accord.show.output import tell

        tell({"valid": not wrong, "findings": found})
    else:
        for each in found:
            where = f"line {each.line}: " if each.line else ""
            kind = "warning" if each.warning else "error"
            print(f"{kind} ({each.check}) {where}{line(each.sentence)}")
        good = "The log and its files are as they should be."
        print(count(len(wrong), "error") if wrong else good)
    return BAD_INPUT if wrong else 0


def watch(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    from accord.pact.watch import watch

    def tell(things: "Sequence[Waiting]") -> None:
        from accord.show.output import tell as tell_programs
        from accord.show.text import clipped, line

        for each in things:
            if args.json:
                tell_programs(each)
            else:
                spec = f"  ({line(each.spec)})" if each.spec else ""
                print(
                    f"{each.do:7} {line(each.about):12} {clipped(line(each.why), MOST_SAID)}{spec}"
                )
        sys.stdout.flush()

    done = watch(desk, tell, interval=args.interval, patience=args.timeout, first=args.first)
    return 0 if done else LATER


def key(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    public = desk.key()
    if args.json:
        from accord.show.output import tell

        tell({"seat": caller.id, "key": public})
    else:
        print(public)
    return 0
