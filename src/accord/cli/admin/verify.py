"""Prove that the log has not been changed.

Each record's hash covers all records before it, and the server regularly signs the newest hash. An
edited, missing, reordered, inserted or truncated record is therefore found by reading the files; a
running server is neither needed nor disturbed. Records after the newest signature are reported as
not yet signed. Signatures are numbered, so that one can only be removed together with all later
ones. Changes made to the file before the server signed it cannot be detected.

The VERSION:HASH of a stream stands for its whole history up to that version. Store it somewhere
else, and --expect tells whether the history is still the same.

Examples:
  accord verify
  accord verify ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord verify ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D --expect VERSION:HASH
  accord verify --data-dir ./copy-of-the-data --json
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.data_dir import KEYS_DIR_NAME, store_url_of
from accord.show import style
from accord.show.text import one_line, plural, wrap

if TYPE_CHECKING:
    from accord.operations.verify import NotedHead, SignatureReport, StreamReport

EXIT_BROKEN = 5
UNCOUNTED_SENTENCE = (
    "All signatures are from an earlier version of Accord that did not number them, so a missing "
    "one cannot be detected. The server numbers them from its next start on."
)
LOG_HOLDS = "The log is intact."
LOG_BROKEN = "The log is broken."
NO_STREAMS = "the list of streams or of signatures cannot be read, so no stream was checked"
BROKEN_ADVICE = "Records after a bad record prove nothing; compare with a backup."


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the session, --expect and where the log is."""
    add = parser.add_argument
    add("session", nargs="?", metavar="SESSION", help="one session (default: every stream)")
    add(
        "--expect",
        type=mark_type,
        metavar="VERSION:HASH",
        help="check against a VERSION:HASH stored earlier",
    )
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


def mark_type(text: str) -> "NotedHead":
    """Parse `142:9f2c…`; the hash must be complete."""
    from accord.operations.verify import NotedHead

    if not (found := re.fullmatch(r"([1-9][0-9]{0,17}):([0-9a-fA-F]{64})", text.strip())):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a VERSION:HASH as `accord verify` prints it"
        )
    return NotedHead(int(found[1]), found[2].lower())


def run(args: argparse.Namespace) -> int:
    """Verify and report; the exit code is 5 if anything is broken."""
    import asyncio

    if args.expect and not args.session:
        from accord.core.kernel.refusal import Reason, Refused

        raise Refused(Reason.MALFORMED, "--expect applies to one session; give the SESSION too")
    damage, signatures, findings = asyncio.run(check_log(args))
    if args.json:
        print_report_json(damage, signatures, findings)
    else:
        print("\n".join(render_report(damage, signatures, findings)))
    return 0 if not damage and all(each.holds for each in findings) else EXIT_BROKEN


async def check_log(
    args: argparse.Namespace,
) -> tuple[list[str], "SignatureReport", list["StreamReport"]]:
    """Damage to the store, the state of the signatures, and a report for each stream."""
    from accord.engine.ports import DamagedError
    from accord.operations import verify
    from accord.operations.local_log import open_existing_log
    from accord.settings.client import Settings

    home = Settings.for_process(home=args.data_dir).home
    async with open_existing_log(store_url_of(home, args.store)) as events:
        damage = await verify.check_store(events)
        try:
            keys = await verify.load_keys(events, home / KEYS_DIR_NAME)
            signatures = await verify.check_signatures(events, keys)
            damage += [signatures.problem] if signatures.problem else []
            if not args.session:
                found = [each async for each in verify.check_all_streams(events, keys)]
            else:
                stream = find_stream(args.session, await events.streams(), args.store or home)
                found = [await verify.check_stream(events, stream, keys, args.expect)]
        except DamagedError:  # its own advice is to run this command
            return [*damage, NO_STREAMS], verify.SignatureReport(0), []
        return damage, signatures, found


def find_stream(word: str, streams: dict[str, int], log: str | Path) -> str:
    """The stream of that session, or with exactly that name."""
    from accord.core.kernel.refusal import Reason, Refused

    if word in streams:
        return word
    if f"room/{word}" in streams:
        return f"room/{word}"
    where = f"in the log of {log}; --data-dir selects another log"
    raise Refused(Reason.NO_ROOM, f"There is no session {word} {where}")


def render_report(
    damage: list[str], signatures: "SignatureReport", findings: list["StreamReport"]
) -> Iterator[str]:
    """The report for people: each stream, then a conclusion."""
    yield from (f"{style.red('damaged')}  {one_line(each)}" for each in damage)
    for finding in findings:
        yield from render_finding(finding)
    broken = len(damage) + sum(not each.holds for each in findings)
    if broken:
        yield ""
        yield from render_conclusion(
            LOG_BROKEN, BROKEN_ADVICE, lambda text: style.red(style.bold(text))
        )
    elif findings:
        yield ""
        yield from render_conclusion(LOG_HOLDS, describe_proof(findings), style.green)
        yield from wrap(UNCOUNTED_SENTENCE) if signatures.uncounted else ()
    else:
        yield "The log is empty."


def render_conclusion(verdict: str, rest: str, colour: style.Style) -> Iterator[str]:
    """The verdict and its explanation, wrapped."""
    first, *more = wrap(f"{verdict} {rest}")
    yield first.replace(verdict, colour(verdict))
    yield from more


def render_finding(finding: "StreamReport") -> Iterator[str]:
    """The lines about one stream."""
    name = one_line(finding.stream)
    if finding.problem:
        where = f"record {finding.bad_version} {one_line(finding.problem)}"
        yield f"{style.red('broken')}   {style.bold(name)}"
        yield f"         {where}"
        yield style.dim(f"         good up to {finding.version}:{finding.hash}")
        return
    yield f"{style.green('holds')}    {style.bold(name)}  {describe_coverage(finding)}"
    if finding.removed:
        yield f"         {describe_removal(finding)}"
    yield style.dim(f"         {finding.version}:{finding.hash}")


def describe_removal(finding: "StreamReport") -> str:
    """Which records were removed, when, by whom and why."""
    from accord.core.kernel.timestamps import to_iso

    what = "record 1 was" if finding.removed == 1 else f"records 1 to {finding.removed} were"
    who, why = one_line(finding.removed_by or ""), one_line(finding.removed_why or "")
    return f"{what} removed on {to_iso(finding.removed_at or 0)[:10]} by {who} ({why}), signed"


def describe_coverage(finding: "StreamReport") -> str:
    """The number of records, and how many of them are signed."""
    records = plural(finding.version, "record")
    if finding.signed == 0:
        return f"{records}, not yet signed"
    if finding.unsigned == 0:
        return f"{records}, all signed"
    return f"{records}, the last {finding.unsigned} not yet signed"


def describe_proof(findings: list["StreamReport"]) -> str:
    """What the check proves, and which trust it depends on."""
    signed = [each for each in findings if each.signed or each.removed]
    if not signed:
        return (
            "The hash chain is intact, but no signature covers it yet. A server signs one second "
            "after it starts: if one has used this log, its signatures were removed."
        )
    if all(each.vouched for each in signed):
        return "Signed records are as the server wrote them, provided that its key is secret."
    return (
        "Some signatures were made with keys that only the log itself contains, so they prove no "
        "more than its origin does. For full proof, put the key files into --data-dir."
    )


def stream_for_json(finding: "StreamReport") -> dict[str, Any]:
    """The report on one stream, for programs."""
    from msgspec.structs import asdict

    from accord.cli.json_values import instant_for_json

    fields = asdict(finding)
    reason = fields.pop("removed_why")
    return fields | {
        "holds": finding.holds,
        "unsigned": finding.unsigned,
        "signed_at": instant_for_json(finding.signed_at),
        "removed_at": instant_for_json(finding.removed_at),
        "removed_reason": reason,
    }


def print_report_json(
    damage: list[str], signatures: "SignatureReport", findings: list["StreamReport"]
) -> None:
    from accord.show.output import print_json

    streams = [stream_for_json(each) for each in findings]
    holds = not damage and all(each.holds for each in findings)
    counted = signatures.counted
    print_json({"holds": holds, "damage": damage, "counted": counted, "streams": streams})
