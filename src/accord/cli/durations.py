"""Durations on the command line: `90s`, `30m`, `12h`, `7d`."""

import argparse
import re
from collections.abc import Callable

MAX_GATE_SECONDS = 31_536_000
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)


def parse_duration(text: str) -> int:
    """The duration in seconds; raises ValueError with an example if it is malformed."""
    if not (found := _DURATION.fullmatch(text.strip().lower())):
        raise ValueError(f"{text!r} is not a duration; use for example 90s, 30m, 12h or 7d")
    return int(found[1]) * UNIT_SECONDS[found[2]]


def duration_type(least: int, most: int) -> Callable[[str], int]:
    """Parses a duration of so many seconds; raises the error that argparse expects."""

    def parse(text: str) -> int:
        try:
            seconds = parse_duration(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if not least <= seconds <= most:
            raise argparse.ArgumentTypeError(f"choose {least} to {most} seconds")
        return seconds

    return parse


def gate_timeout_type(text: str) -> int:
    """Parse `8h`, or `never`, which is 0 seconds; raises the error that argparse expects."""
    if text.strip().lower() == "never":
        return 0
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}, or never") from None
    if not 0 < seconds <= MAX_GATE_SECONDS:
        raise argparse.ArgumentTypeError("a gate stays open for 1s to 365d, or never")
    return seconds
