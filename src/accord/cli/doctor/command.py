"""Check this machine and explain how to fix what is wrong.

Checks Python, git, the server's settings (and where each changed one comes from), the limit on open
files, the data directory and its keys, the store, the server and its certificate, the token, the
clock, and every host that you connected. Changes nothing. Exits with 5 if something would keep
Accord from working.

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

from accord.show import style
from accord.show.text import escape_controls

if TYPE_CHECKING:
    from accord.cli.doctor.check_result import CheckResult

EXIT_UNHEALTHY = 5
TEXT_MARGIN = 17
MIN_TEXT_WIDTH = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add --data-dir, --config, --url and --json."""
    add = parser.add_argument
    add(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="the data directory to check (default: ACCORD_HOME)",
    )
    add(
        "--config",
        metavar="FILE",
        help="the server's settings (default: accord.toml in the data directory)",
    )
    add("--url", help="the server to check (default: ACCORD_URL, or the local one)")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run all checks and print the findings."""
    from accord.cli.doctor.health_checks import run_checks

    return print_results(list(run_checks(args.data_dir, args.url, args.config)), as_json=args.json)


def print_results(results: "list[CheckResult]", *, as_json: bool) -> int:
    """Print the findings; the exit code says whether something has to be fixed."""
    from accord.cli.doctor.check_result import FAIL

    healthy = all(result.state != FAIL for result in results)
    if as_json:
        from accord.show.output import print_json

        print_json({"healthy": healthy, "checks": [result._asdict() for result in results]})
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for result in results:
            print("\n".join(render_check(result, width)))
        print("\n" + conclusion([result.state for result in results]))
    return 0 if healthy else EXIT_UNHEALTHY


def render_check(result: "CheckResult", width: int | None) -> Iterator[str]:
    """The finding, wrapped to `width`; the fix stays on one line, so that it can be copied."""
    state = STATE_STYLES[result.state](result.state.ljust(4))
    first, *more = wrap_beside_margin(escape_controls(result.found), width)
    yield f"{state}  {result.about:9}  {first}"
    yield from (f"{'':{TEXT_MARGIN}}{line}" for line in more)
    if result.fix:
        yield f"{'→':>{TEXT_MARGIN - 1}} {escape_controls(result.fix)}"


def wrap_beside_margin(text: str, width: int | None) -> list[str]:
    """Wrap the text to the columns right of the margin."""
    if width is None or TEXT_MARGIN + len(text) <= width:
        return [text]
    columns = max(width - TEXT_MARGIN, MIN_TEXT_WIDTH)
    return textwrap.wrap(text, columns, break_long_words=False, break_on_hyphens=False)


STATE_STYLES = {"ok": style.green, "warn": style.yellow, "fail": style.red}


def conclusion(states: list[str]) -> str:
    """The summary in the last line."""
    if fails := states.count("fail"):
        if fails == 1:
            return style.red("1 problem; how to fix it is shown below it.")
        return style.red(f"{fails} problems; how to fix each is shown below it.")
    if warns := states.count("warn"):
        warnings = "1 warning" if warns == 1 else f"{warns} warnings"
        return f"{style.green('Accord can work here')}, with {warnings}."
    return style.green("No problems found.")
