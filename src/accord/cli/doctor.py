"""Check this machine and say how to mend what is wrong.

Looks at Python, git, the server's settings and where each unusual one came from, how many files the
system lets it open, the data directory and its keys, the store, the server and its certificate, the
token and the clock. It changes nothing. Exits with 5 when something would keep Accord from working.

Examples:
  accord doctor
  accord doctor --data-dir ./data --json
"""

import argparse
from pathlib import Path

from accord.show import paint
from accord.show.text import safe

WRONG_STATE = 5


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

        tell({"healthy": healthy, "checks": found})
    else:
        for each in found:
            print(f"{COLOURS[each.state](each.state.ljust(4))}  {each.about:9}  {safe(each.says)}")
            if each.cure:
                print(f"{'→':>16} {safe(each.cure)}")
        print("\n" + conclusion([each.state for each in found]))
    return 0 if healthy else WRONG_STATE


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
