"""What to do now, later or never, and what to do next: by rule, from judgements.

A batch of items in a text goes in; every item comes out with a verdict, at most five steps and
one next step. People or models give the judgements; the rules cap them by the evidence, park what
waits, and refuse what nobody can show. The answer is a snapshot: paste it back, with what has
happened since, and it goes on from there.

`accord decide FILE` is short for `accord decide run FILE`; `-` reads standard input.

Examples:
  accord decide batch.txt
  accord decide run batch.txt --prev snapshot.txt --now 2026-03-01 > next.txt
  accord decide report --lite snapshot.txt
  accord decide compare mine.txt yours.txt
  accord decide check answer-of-a-model.txt
  accord decide check --repair answer-of-a-model.txt
  accord decide allow snapshot.txt DEPLOY deployed=YES/NO && ./deploy
  accord decide schema > judgement.schema.json
  accord decide prompt
"""

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli.remarks import remark, remarks
from accord.cli.verdicts import as_data, compared, shown
from accord.show import paint
from accord.show.text import line, safe

if TYPE_CHECKING:
    from accord.core.dialects.papvp import Message
    from accord.core.docket import Config
    from accord.core.docket.diags import Diag

USUAL_VERB = "run"
INVALID = 2
DENIED = 3
LARGEST = 16 * 1024 * 1024
PROMPT = "decide.prompt.md"
FILE_HELP = "a file, or - for standard input"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The verbs and their flags."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    run_it = verbs.add_parser("run", help="decide a batch (this is what happens without a verb)")
    run_it.add_argument("file", metavar="FILE", help=FILE_HELP)
    run_it.add_argument("--prev", type=Path, metavar="FILE", help="the snapshot of the last run")
    run_it.add_argument("--text", action="store_true", help="print the snapshot on a screen too")
    run_it.add_argument("--recovery", action="store_true", help="add the batch as input again")
    _settings(run_it)
    report = verbs.add_parser("report", help="a snapshot in plain lines")
    report.add_argument("file", metavar="FILE", help=FILE_HELP)
    report.add_argument("--lite", action="store_true", help="what matters now, and no details")
    compare = verbs.add_parser("compare", help="how far two or more snapshots agree")
    compare.add_argument("files", nargs="+", metavar="FILE", help=FILE_HELP)
    _policy(compare)
    check = verbs.add_parser("check", help="what is wrong with a snapshot, batch or judgement")
    check.add_argument("file", metavar="FILE", help=FILE_HELP)
    check.add_argument("--expected", default="", metavar="IDS", help="the items it should have")
    check.add_argument("--repair", action="store_true", help="print it made right by the rules")
    allow = verbs.add_parser("allow", help="whether a step may be run now: exit 0 yes, 3 no")
    allow.add_argument("file", metavar="FILE", help=FILE_HELP)
    allow.add_argument("id", metavar="ID", help="the item")
    allow.add_argument("token", metavar="TOKEN", help="the output of its next step")
    _policy(allow)
    schema = verbs.add_parser("schema", help="the JSON Schema of a judgement")
    prompt = verbs.add_parser("prompt", help="how a model is asked for a judgement")
    for each in (run_it, report, compare, check, allow):
        each.add_argument("--json", action="store_true", help="print JSON")
    schema.set_defaults(json=True)
    prompt.set_defaults(json=False)


def _policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        choices=["upstream", "guarded"],
        default="upstream",
        help="guarded fails closed where the protocol does not (default: upstream)",
    )


def _settings(parser: argparse.ArgumentParser) -> None:
    _policy(parser)
    add = parser.add_argument
    add("--now", type=day, metavar="DATE", help="today, or a day: without it nothing expires")
    add("--ask", action="store_true", help="let it ask one question")
    add("--manual", action="store_true", help="ask for a thin plan's goal instead of guessing it")


def day(text: str) -> date:
    """A day as `2026-03-01`, or `today`."""
    if text == "today":
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write 2026-03-01 or today") from None


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    return VERBS[args.verb](args)


def read(name: str | Path) -> str:
    """A text of the size that people write."""
    from accord.core.kernel.refusal import Refused, Why

    if str(name) == "-":
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        try:
            with Path(name).open("rb") as file:
                data = file.read(LARGEST + 1)
        except IsADirectoryError:
            raise Refused(Why.MALFORMED, f"{name} is a directory; name a file") from None
    if len(data) > LARGEST:
        raise Refused(Why.TOO_LARGE, f"{name} is larger than {LARGEST >> 20} MiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        at = data.count(b"\n", 0, error.start) + 1
        raise Refused(Why.MALFORMED, f"{name}:{at}: this is no UTF-8 text") from None


def config(args: argparse.Namespace) -> "Config":
    """The settings of a run."""
    from accord.core.docket import Config, Policy

    return Config(
        now=args.now,
        ask_user=args.ask,
        manual=args.manual,
        policy=Policy[args.policy.upper()],
        recovery=args.recovery,
    )


def decide(args: argparse.Namespace) -> int:
    """Decide a batch."""
    from accord.core import docket
    from accord.core.dialects import papvp
    from accord.show.output import tell

    settings = config(args)
    text = read(args.file)
    head = f"{read(args.prev).rstrip()}\n" if args.prev else ""
    if papvp.routed(text):
        return _routed(papvp.answer(head + text, settings), args)
    outcome = docket.run(docket.parse(head + text, settings), settings)
    if args.json:
        tell(as_data(outcome))
        return 0 if outcome.valid else INVALID
    remarks(outcome.diags, args.file, text, skip=head.count("\n"))
    if outcome.valid and sys.stdout.isatty() and not args.text:
        print("\n".join(shown(outcome)))
    else:
        print(safe(papvp.message(outcome)), end="")
    return 0 if outcome.valid else INVALID


def _routed(message: "Message", args: argparse.Namespace) -> int:
    """A text whose first line asks for something else than a decision."""
    from accord.show.output import tell

    if args.json:
        tell({"valid": message.good, "text": message.text})
    else:
        print(safe(message.text), end="")
    return 0 if message.good else INVALID


def report(args: argparse.Namespace) -> int:
    """A snapshot in plain lines."""
    from accord.core.dialects import papvp

    return _routed(papvp.report(read(args.file), lite=args.lite), args)


def compare(args: argparse.Namespace) -> int:
    """How far snapshots agree."""
    from accord.core.dialects import papvp
    from accord.core.docket import Policy, convergence
    from accord.core.kernel.refusal import Refused, Why
    from accord.show.output import tell

    texts = [read(each) for each in args.files]
    peers, hosts = papvp.compare(texts, Policy[args.policy.upper()])
    if hosts < 2:
        detail = (
            f"compare needs two snapshots; here is {hosts or 'none'}. "
            "`accord decide BATCH > SNAPSHOT` makes one of a batch"
        )
        raise Refused(Why.MALFORMED, detail)
    if args.json:
        tell({"hosts": hosts, "items": [each._asdict() for each in peers]})
    elif sys.stdout.isatty():
        compared(peers)
    else:
        print(safe("\n".join(convergence.shown(peers, hosts))))
    return 0


def check(args: argparse.Namespace) -> int:
    """What is wrong with what somebody wrote."""
    from accord.core import docket
    from accord.core.dialects import papvp
    from accord.core.docket import emit
    from accord.core.docket.text import ids
    from accord.show.output import tell

    text = read(args.file)
    if not papvp.snapshots_in(text) and ("<<<I" in text or text.lstrip().startswith("{")):
        batch = "<<<I" in text
        diags = docket.parse(text).diags if batch else papvp.judgement_flaws(text)
        return _flaws(diags, text, args)
    found = papvp.checked(text, ids(args.expected)[0], mend=args.repair)
    checked = found.checked
    if args.json:
        flaws = [{**each._asdict(), "hint": each.hint} for each in checked.flaws]
        mended = emit.fenced(found.repaired) if found.repaired else None
        tell({"result": checked.result, "flaws": flaws, "repaired": mended})
    else:
        print(safe("\n".join(checked.lines())))
        if found.repaired:
            print(safe(emit.fenced(found.repaired)), end="")
    return 0 if checked.result == "VALID" else INVALID


def _flaws(diags: list["Diag"], text: str, args: argparse.Namespace) -> int:
    from accord.show.output import tell

    if args.json:
        tell({"result": "REPAIRABLE" if diags else "VALID", "flaws": [remark(d) for d in diags]})
    else:
        remarks(diags, args.file, text)
        print(f"RESULT: {'REPAIRABLE' if diags else 'VALID'}")
    return INVALID if diags else 0


def allow(args: argparse.Namespace) -> int:
    """Whether a step may be run now."""
    from accord.core.dialects import papvp
    from accord.core.docket import Policy, executor
    from accord.core.kernel.refusal import Refused, Why
    from accord.show.output import tell

    snap = papvp.snapshot_in(read(args.file))
    if snap is None:
        raise Refused(Why.MALFORMED, f"{args.file} holds no valid snapshot, so nothing may be run")
    said = executor.allow(snap, args.id, args.token, Policy[args.policy.upper()])
    if args.json:
        tell({"allowed": said.allowed, "why": said.why})
    else:
        word = paint.green("ALLOW") if said.allowed else paint.red("DENY")
        print(f"{word}  {line(said.why)}")
    return 0 if said.allowed else DENIED


def schema(args: argparse.Namespace) -> int:
    """The JSON Schema of a judgement."""
    import json

    from accord.core.docket.judge import schema as made

    print(json.dumps(made(), indent=2))
    return 0


def prompt(args: argparse.Namespace) -> int:
    """How a model is asked for a judgement."""
    print(Path(__file__).with_name(PROMPT).read_text("utf-8"), end="")
    return 0


VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "run": decide,
    "report": report,
    "compare": compare,
    "check": check,
    "allow": allow,
    "schema": schema,
    "prompt": prompt,
}
