"""Messages of commits: what is wrong with one, and what one says."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.show.text import line

if TYPE_CHECKING:
    from accord.git.repository import Repository

BAD_MESSAGE = 2


def check_message(repo: "Repository", args: argparse.Namespace) -> int:
    """What is wrong with a message."""
    from accord.core.provenance.check import check, cleaned
    from accord.show.output import tell

    raw = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    found = check(cleaned(raw.decode("utf-8", "replace")))
    if args.json:
        tell({"findings": [each._asdict() for each in found]})
    else:
        for each in found:
            print(f"{line(str(each))}. {line(each.mend)}")
    return BAD_MESSAGE if any(each.error for each in found) else 0


def parse(repo: "Repository", args: argparse.Namespace) -> int:
    """What a commit's message says."""
    from accord.core.provenance.message import metadata
    from accord.core.provenance.message import parse as read
    from accord.git import naming
    from accord.show.output import tell

    told = metadata(read(shown(repo.commit(naming.commit(repo, args.rev)).message)))
    if args.json:
        tell(told)
        return 0
    for name, value in told.items():
        print(f"{name:12}  {line(spoken(value))}")
    return 0


def spoken(value: Any) -> str:
    """A value on one line."""
    match value:
        case list():
            return ", ".join(map(spoken, value))
        case {"type": kind, "identifier": name}:
            return f"{kind}:{name}"
        case _:
            return str(value)


def shown(text: str) -> str:
    """Words of git that may be no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
