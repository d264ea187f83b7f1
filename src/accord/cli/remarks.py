"""What was noticed in a text: where, what, and how to do better."""

import sys
from typing import TYPE_CHECKING, Any

from accord.show import paint
from accord.show.text import line

if TYPE_CHECKING:
    from accord.core.docket.diags import Diag


def remarks(diags: list["Diag"], name: str, text: str, skip: int = 0) -> None:
    """What was noticed: where, the line itself, and how to do better."""
    lines = text.split("\n")
    for each in diags:
        at = _place(each, lines, each.line - skip)
        where = f"{line(name)}:{at}" if at > 0 else line(name)
        about = f" {each.item}" if each.item != "-" else ""
        colon = ":" if about and each.detail else ""
        what = f"{each.code}{about}{colon} {line(each.detail)}".rstrip()
        print(f"{paint_err(where)}: {what}", file=sys.stderr)
        if 0 < at <= len(lines) and lines[at - 1].strip():
            print(f"    {at} | {line(lines[at - 1])[:100]}", file=sys.stderr)
        print(f"    {each.hint}", file=sys.stderr)


def _place(each: "Diag", lines: list[str], at: int) -> int:
    """The line to quote: of a step the one that holds it, below the head of its item."""
    if not each.code.startswith("STEP_") or at < 1:
        return at
    said = each.detail.partition(": ")[2]
    below = (n for n in range(at, len(lines) + 1) if said and said in lines[n - 1])
    return next(below, at)


def paint_err(text: str) -> str:
    """Bold, where a person reads standard error."""
    return f"\x1b[1m{text}\x1b[0m" if paint.in_colour(sys.stderr) else text


def remark(each: "Diag") -> dict[str, Any]:
    """For programs."""
    return {
        "code": each.code,
        "item": each.item,
        "line": each.line,
        "detail": each.detail,
        "hint": each.hint,
    }
