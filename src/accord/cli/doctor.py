"""Check this machine and say how to mend what is wrong.

Looks at Python, git, the server's settings and where each unusual one came from, how many files the
system lets it open, the data directory and its keys, the store, the server and its certificate, the
token and the clock. It changes nothing. Exits with 5 when something would keep Accord from working.

Examples:
  accord doctor
  accord doctor --data-dir ./data --json
"""

import argparse
import shutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from accord.show import paint
from accord.show.text import safe

if TYPE_CHECKING:
    from accord.cli.findings import Check

WRONG_STATE = 5
MARGIN = 17
NARROWEST = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which data and which server to look at."""
    add = parser.add_argument
    add("--data-dir", type=Path, metavar="DIR", help="the data to look at (default: ACCORD_HOME)")
    add("--config", metavar="FILE", help="the server's settings (default: accord.toml there)")
    add("--url", help="the server to look at (default: ACCORD_URL, or this machine's)")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Examine everything; each finding has its line."""
    from accord.cli.checkup import examine
    from accord.cli.findings import FAIL

    found = list(examine(args.data_dir, args.url, args.config))
    healthy = all(each.state != FAIL for each in found)
    if args.json:
        from accord.show.output import tell

        tell({"healthy": healthy, "checks": [each._asdict() for each in found]})
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for each in found:
            print("\n".join(told(each, width)))
        print("\n" + conclusion([each.state for each in found]))
    return 0 if healthy else WRONG_STATE


def told(found: "Check", width: int | None) -> Iterator[str]:
    """What was found, in lines no wider than the screen; what to type in one piece."""
    state = COLOURS[found.state](found.state.ljust(4))
    first, *more = folded(safe(found.says), width)
    yield f"{state}  {found.about:9}  {first}"
    yield from (f"{'':{MARGIN}}{line}" for line in more)
    if found.cure:
        yield f"{'→':>{MARGIN - 1}} {safe(found.cure)}"


def folded(text: str, width: int | None) -> list[str]:
    """As many lines as it takes beside the margin."""
    if width is None or MARGIN + len(text) <= width:
        return [text]
    room = max(width - MARGIN, NARROWEST)
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)


COLOURS = {"ok": paint.green, "warn": paint.yellow, "fail": paint.red}


def conclusion(states: list[str]) -> str:
    """The one line to read."""
    if fails := states.count("fail"):
        if fails == 1:
            return paint.red("One thing is wrong; what to do stands below it.")
        return paint.red(f"{fails} things are wrong; what to do stands below each.")
    if warns := states.count("warn"):
        thing = "one remark" if warns == 1 else f"{warns} remarks"
        return f"{paint.green('Accord can work here')}, with {thing}."
    return paint.green("All is well.")
