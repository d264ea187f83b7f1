"""Prove that nobody has changed the log.

Every record seals its own bytes together with all before it, and the server signs the newest one
from time to time. So an edited, dropped, reordered, inserted or cut-off record is found, on the
files alone: no server is asked, and one that runs is not disturbed. Records that came after the
newest signature are reported as not yet signed. Signatures count each other, so that one cannot be
taken away unless all later ones are. What somebody with the file put there before the server signed
it cannot be told from the server's own afterwards.

The line VERSION:HASH of a stream stands for everything up to there. Keep it somewhere else, and
--expect will tell whether history is still the same.

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
from typing import TYPE_CHECKING

from accord.home import KEYS, place
from accord.show import paint
from accord.show.text import count, line, wrapped

if TYPE_CHECKING:
    from accord.verify import Finding, Mark, Signatures

BROKEN = 5
UNCOUNTED = (
    "All signatures are from an earlier version of Accord, which did not count them, so a missing "
    "one would not show. The server counts them from its next start on."
)
HOLDS = "The log holds."
HOLDS_NOT = "The log does not hold."
WHAT_NOW = "Whatever follows a bad record proves nothing; compare with a backup."


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which stream, on which store, against which earlier head."""
    add = parser.add_argument
    add("session", nargs="?", metavar="SESSION", help="one session (default: every stream)")
    add("--expect", type=mark, metavar="VERSION:HASH", help="a head noted earlier")
    add("--data-dir", type=Path, metavar="DIR", help="database and keys (default: ACCORD_HOME)")
    add("--store", metavar="URL", help="where the log is (default: sqlite: in the data directory)")
    add("--json", action="store_true", help="print JSON")


def mark(text: str) -> "Mark":
    """`142:9f2c…`, the hash in full."""
    from accord.verify import Mark

    if not (found := re.fullmatch(r"([1-9][0-9]{0,17}):([0-9a-fA-F]{64})", text.strip())):
        raise argparse.ArgumentTypeError(f"{text!r} is no VERSION:HASH of `accord verify`")
    return Mark(int(found[1]), found[2].lower())


def run(args: argparse.Namespace) -> int:
    """Check, report, and exit with 5 where something does not hold."""
    import asyncio

    if args.expect and not args.session:
        from accord.core.kernel.refusal import Refused, Why

        raise Refused(Why.MALFORMED, "--expect is about one stream; name the SESSION too")
    damage, signatures, findings = asyncio.run(check(args))
    if args.json:
        report_json(damage, signatures, findings)
    else:
        print("\n".join(report(damage, signatures, findings)))
    return 0 if not damage and all(each.holds for each in findings) else BROKEN


async def check(
    args: argparse.Namespace,
) -> tuple[list[str], "Signatures", list["Finding"]]:
    """What is wrong with the whole, what its signatures say, and how far each stream holds."""
    from accord import verify
    from accord.reading import opened
    from accord.settings import Settings

    home = Settings.here(home=args.data_dir).home
    async with opened(place(home, args.store)) as events:
        damage = await verify.check_store(events)
        keys = await verify.gather(events, home / KEYS)
        signatures = await verify.check_signatures(events, keys)
        damage += [signatures.problem] if signatures.problem else []
        if not args.session:
            found = [each async for each in verify.check_each(events, keys)]
        else:
            stream = named(args.session, await events.streams(), args.store or home)
            found = [await verify.check_stream(events, stream, keys, args.expect)]
        return damage, signatures, found


def named(word: str, streams: dict[str, int], log: str | Path) -> str:
    """The stream of that session, or of that very name."""
    from accord.core.kernel.refusal import Refused, Why

    if word in streams:
        return word
    if f"room/{word}" in streams:
        return f"room/{word}"
    where = f"in the log of {log}; --data-dir names another"
    raise Refused(Why.NO_ROOM, f"There is no session {word} {where}")


def report(damage: list[str], signatures: "Signatures", findings: list["Finding"]) -> Iterator[str]:
    """For people: each stream, then what it all means."""
    yield from (f"{paint.red('damaged')}  {line(each)}" for each in damage)
    for finding in findings:
        yield from shown(finding)
    broken = len(damage) + sum(not each.holds for each in findings)
    if broken:
        yield ""
        yield from concluded(HOLDS_NOT, WHAT_NOW, lambda text: paint.red(paint.bold(text)))
    elif findings:
        yield ""
        yield from concluded(HOLDS, meaning(findings), paint.green)
        yield from wrapped(UNCOUNTED) if signatures.uncounted else ()
    else:
        yield "The log is empty."


def concluded(verdict: str, rest: str, colour: paint.Paint) -> Iterator[str]:
    """What it all means, in lines that fit."""
    first, *more = wrapped(f"{verdict} {rest}")
    yield first.replace(verdict, colour(verdict))
    yield from more


def shown(finding: "Finding") -> Iterator[str]:
    """One stream."""
    name = line(finding.stream)
    if finding.problem:
        where = f"record {finding.bad_version} {line(finding.problem)}"
        yield f"{paint.red('broken')}   {paint.bold(name)}"
        yield f"         {where}"
        yield paint.dim(f"         good up to {finding.version}:{finding.hash}")
        return
    yield f"{paint.green('holds')}    {paint.bold(name)}  {coverage(finding)}"
    if finding.removed:
        yield f"         {removal(finding)}"
    yield paint.dim(f"         {finding.version}:{finding.hash}")


def removal(finding: "Finding") -> str:
    """What is no longer there, and on whose word."""
    from accord.core.kernel.times import iso

    what = "record 1 was" if finding.removed == 1 else f"records 1 to {finding.removed} were"
    who, why = line(finding.removed_by or ""), line(finding.removed_why or "")
    return f"{what} removed on {iso(finding.removed_at or 0)[:10]} by {who} ({why}), signed"


def coverage(finding: "Finding") -> str:
    """How many records there are, and how many of them are signed."""
    records = count(finding.version, "record")
    if finding.signed == 0:
        return f"{records}, not yet signed"
    if finding.unsigned == 0:
        return f"{records}, all signed"
    return f"{records}, the last {finding.unsigned} not yet signed"


def meaning(findings: list["Finding"]) -> str:
    """What was proven, and by whose word."""
    signed = [each for each in findings if each.signed or each.removed]
    if not signed:
        return (
            "Every record follows from the one before; no signature covers them yet. A server "
            "signs a second after it starts: if one ran on this log, its signatures were removed."
        )
    if all(each.vouched for each in signed):
        return "What is signed is as the server wrote it, as surely as its key is its own."
    return (
        "Some signatures are by keys that only the log itself names: they prove as much as your "
        "trust in where this log is from. Give the key files in --data-dir for more."
    )


def report_json(damage: list[str], signatures: "Signatures", findings: list["Finding"]) -> None:
    """For programs."""
    import msgspec

    from accord.show.output import tell

    streams = [
        {**msgspec.structs.asdict(each), "holds": each.holds, "unsigned": each.unsigned}
        for each in findings
    ]
    holds = not damage and all(each.holds for each in findings)
    counted = signatures.counted
    tell({"holds": holds, "damage": damage, "counted": counted, "streams": streams})
