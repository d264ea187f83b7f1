"""How long, as people type it: `90s`, `30m`, `12h`, `7d`."""

import re

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)


def seconds(text: str) -> int:
    """The duration in seconds; ValueError with an example when it is none."""
    if not (found := _DURATION.fullmatch(text.strip().lower())):
        raise ValueError(f"{text!r} is no duration; write for example 90s, 30m, 12h or 7d")
    return int(found[1]) * UNITS[found[2]]
