"""Decide by rule what to do now, later or never, and the next step.

The input is a text with a batch of items and judgements on them, by people or models. Every item
gets a verdict, at most five steps and one next step: the rules limit judgements by their evidence,
postpone what has to wait, and discard what cannot be shown. The output is a snapshot; use it as
input again, together with what has happened since, to continue from there.

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

from accord.cli.decide.decision_output import (
    diagnostic_for_json,
    outcome_for_json,
    print_comparison,
    print_diagnostics,
    render_outcome,
)
from accord.show import style
from accord.show.text import escape_controls, one_line

if TYPE_CHECKING:
    from accord.core.dialects.papvp import TextResponse
    from accord.core.docket import KernelConfig
    from accord.core.docket.diagnostics import Diagnostic

USUAL_VERB = "run"
EXIT_INVALID = 2
EXIT_DENIED = 3
MAX_INPUT_BYTES = 16 * 1024 * 1024
PROMPT_FILE = "decide.prompt.md"
FILE_HELP = "a file, or - for standard input"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their flags."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    run_it = verbs.add_parser("run", help="decide a batch (the default verb)")
    run_it.add_argument("file", metavar="FILE", help=FILE_HELP)
    run_it.add_argument("--prev", type=Path, metavar="FILE", help="the snapshot of the last run")
    run_it.add_argument(
        "--text", action="store_true", help="print the snapshot, also on a terminal"
    )
    run_it.add_argument(
        "--recovery", action="store_true", help="append the batch as input for another run"
    )
    _add_run_flags(run_it)
    report = verbs.add_parser("report", help="print a snapshot as plain text")
    report.add_argument("file", metavar="FILE", help=FILE_HELP)
    report.add_argument("--lite", action="store_true", help="only what matters now")
    compare = verbs.add_parser("compare", help="compare two or more snapshots")
    compare.add_argument("files", nargs="+", metavar="FILE", help=FILE_HELP)
    _add_policy_flag(compare)
    check = verbs.add_parser("check", help="find errors in a snapshot, batch or judgement")
    check.add_argument("file", metavar="FILE", help=FILE_HELP)
    check.add_argument(
        "--expected", default="", metavar="IDS", help="the items that it must contain"
    )
    check.add_argument(
        "--repair", action="store_true", help="print a version corrected by the rules"
    )
    allow = verbs.add_parser("allow", help="check whether a step may run now: exits with 0 or 3")
    allow.add_argument("file", metavar="FILE", help=FILE_HELP)
    allow.add_argument("id", metavar="ID", help="the item")
    allow.add_argument("token", metavar="TOKEN", help="the output of its next step")
    _add_policy_flag(allow)
    schema = verbs.add_parser("schema", help="print the JSON Schema of a judgement")
    prompt = verbs.add_parser("prompt", help="print the prompt that asks a model for a judgement")
    for verb in (run_it, report, compare, check, allow):
        verb.add_argument("--json", action="store_true", help="print JSON")
    schema.set_defaults(json=True)
    prompt.set_defaults(json=False)


def _add_policy_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        choices=["upstream", "guarded"],
        default="upstream",
        help="guarded denies in doubt, where the protocol allows (default: upstream)",
    )


def _add_run_flags(parser: argparse.ArgumentParser) -> None:
    _add_policy_flag(parser)
    add = parser.add_argument
    add(
        "--now",
        type=day_type,
        metavar="DATE",
        help="the current date, or today; without it nothing expires",
    )
    add("--ask", action="store_true", help="allow one question to the user")
    add(
        "--manual",
        action="store_true",
        help="ask for the goal of an incomplete plan instead of guessing it",
    )


def day_type(text: str) -> date:
    """An argument type for dates: `2026-03-01` or `today`."""
    if text == "today":
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a date; use for example 2026-03-01, or today"
        ) from None


def run(args: argparse.Namespace) -> int:
    return VERBS[args.verb](args)


def read_text(name: str | Path) -> str:
    """The text of a file or of standard input, with a size limit."""
    from accord.core.kernel.refusal import Reason, Refused

    if str(name) == "-":
        data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
    else:
        try:
            with Path(name).open("rb") as file:
                data = file.read(MAX_INPUT_BYTES + 1)
        except IsADirectoryError:
            raise Refused(
                Reason.MALFORMED, f"{name} is a directory; give the name of a file"
            ) from None
    if len(data) > MAX_INPUT_BYTES:
        raise Refused(Reason.TOO_LARGE, f"{name} is larger than {MAX_INPUT_BYTES >> 20} MiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        at = data.count(b"\n", 0, error.start) + 1
        raise Refused(Reason.MALFORMED, f"{name}:{at}: this is not UTF-8 text") from None


def config_from_flags(args: argparse.Namespace) -> "KernelConfig":
    """The kernel's configuration from the flags."""
    from accord.core.docket import KernelConfig, KernelPolicy

    return KernelConfig(
        now=args.now,
        ask_user=args.ask,
        manual=args.manual,
        policy=KernelPolicy[args.policy.upper()],
        recovery=args.recovery,
    )


def decide(args: argparse.Namespace) -> int:
    """Decide a batch."""
    from accord.core import docket
    from accord.core.dialects import papvp
    from accord.show.output import print_json

    settings = config_from_flags(args)
    text = read_text(args.file)
    head = f"{read_text(args.prev).rstrip()}\n" if args.prev else ""
    if papvp.is_command(text):
        return _print_message(papvp.respond(head + text, settings), args)
    outcome = docket.run(docket.parse_batch(head + text), settings)
    if args.json:
        print_json(outcome_for_json(outcome))
        return 0 if outcome.is_valid else EXIT_INVALID
    print_diagnostics(outcome.diagnostics, args.file, text, skip=head.count("\n"))
    if outcome.is_valid and sys.stdout.isatty() and not args.text:
        print("\n".join(render_outcome(outcome)))
    else:
        print(escape_controls(papvp.render_outcome(outcome)), end="")
    return 0 if outcome.is_valid else EXIT_INVALID


def _print_message(message: "TextResponse", args: argparse.Namespace) -> int:
    """Print the response to a text command."""
    from accord.show.output import print_json

    if args.json:
        print_json({"valid": message.is_valid, "text": message.text})
    else:
        print(escape_controls(message.text), end="")
    return 0 if message.is_valid else EXIT_INVALID


def report(args: argparse.Namespace) -> int:
    """Print a snapshot as plain text."""
    from accord.core.dialects import papvp

    return _print_message(papvp.report(read_text(args.file), lite=args.lite), args)


def compare(args: argparse.Namespace) -> int:
    """Print how far snapshots agree."""
    from accord.core.dialects import papvp
    from accord.core.docket import KernelPolicy, convergence
    from accord.core.kernel.refusal import Reason, Refused
    from accord.show.output import print_json

    texts = [read_text(file) for file in args.files]
    peers, hosts = papvp.compare(texts, KernelPolicy[args.policy.upper()])
    if hosts < 2:
        detail = (
            f"compare needs at least two snapshots, but found {hosts}. "
            "`accord decide BATCH > SNAPSHOT` makes a snapshot of a batch"
        )
        raise Refused(Reason.MALFORMED, detail)
    if args.json:
        print_json({"hosts": hosts, "items": [peer._asdict() for peer in peers]})
    elif sys.stdout.isatty():
        print_comparison(peers)
    else:
        print(escape_controls("\n".join(convergence.render_convergence(peers, hosts))))
    return 0


def check(args: argparse.Namespace) -> int:
    """Print the errors in a snapshot, batch or judgement."""
    from accord.core import docket
    from accord.core.dialects import papvp
    from accord.core.docket.rendering import snapshot_writer
    from accord.core.docket.text_values import parse_ids
    from accord.show.output import print_json

    text = read_text(args.file)
    if not papvp.snapshots_in(text) and ("<<<I" in text or text.lstrip().startswith("{")):
        batch = "<<<I" in text
        diags = docket.parse_batch(text).diagnostics if batch else papvp.judgement_errors(text)
        return _print_flaws(diags, text, args)
    found = papvp.check_snapshot(text, parse_ids(args.expected)[0], mend=args.repair)
    checked = found.checked
    if args.json:
        findings = [diagnostic_for_json(flaw) for flaw in checked.flaws]
        repaired = snapshot_writer.render_fenced(found.repaired) if found.repaired else None
        print_json({"result": checked.summary, "findings": findings, "repaired": repaired})
    else:
        print(escape_controls("\n".join(checked.render())))
        if found.repaired:
            print(escape_controls(snapshot_writer.render_fenced(found.repaired)), end="")
    return 0 if checked.summary == "VALID" else EXIT_INVALID


def _print_flaws(diags: list["Diagnostic"], text: str, args: argparse.Namespace) -> int:
    from accord.show.output import print_json

    if args.json:
        print_json(
            {
                "result": "REPAIRABLE" if diags else "VALID",
                "findings": [diagnostic_for_json(d) for d in diags],
            }
        )
    else:
        print_diagnostics(diags, args.file, text)
        print(f"RESULT: {'REPAIRABLE' if diags else 'VALID'}")
    return EXIT_INVALID if diags else 0


def allow(args: argparse.Namespace) -> int:
    """Print whether a step may run now."""
    from accord.core.dialects import papvp
    from accord.core.docket import KernelPolicy, executor_contract
    from accord.core.kernel.refusal import Reason, Refused
    from accord.show.output import print_json

    snap = papvp.snapshot_in(read_text(args.file))
    if snap is None:
        raise Refused(
            Reason.MALFORMED, f"{args.file} contains no valid snapshot, so nothing may run"
        )
    permission = executor_contract.allow_step(
        snap, args.id, args.token, KernelPolicy[args.policy.upper()]
    )
    if args.json:
        print_json({"allowed": permission.allowed, "reason": permission.reason})
    else:
        word = style.green("ALLOW") if permission.allowed else style.red("DENY")
        print(f"{word}  {one_line(permission.reason)}")
    return 0 if permission.allowed else EXIT_DENIED


def schema(args: argparse.Namespace) -> int:
    """Print the JSON Schema of a judgement."""
    import json

    from accord.core.docket.judgement import judgement_schema

    print(json.dumps(judgement_schema(), indent=2))
    return 0


def prompt(args: argparse.Namespace) -> int:
    """Print the prompt that asks a model for a judgement."""
    print(Path(__file__).with_name(PROMPT_FILE).read_text("utf-8"), end="")
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
