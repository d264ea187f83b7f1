"""Why a line of code is there: the decision, who agreed, what was considered.

Ask about a line, a few lines, a file or a commit. A commit that was squashed or rebased is
followed to the decisions that it came from. What git holds is enough; where a server of this
machine answers, what it knows is added, and of work in a pact, which task it was and who accepted
it.

Examples:
  accord why src/auth.py:42
  accord why src/auth.py:40-60
  accord why src/auth.py
  accord why HEAD~3
  accord why src/auth.py:42 --json
"""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from accord.cli.reasons import INDENT, answer, plain
from accord.show import paint

if TYPE_CHECKING:
    from accord.cli.reasons import Accepted
    from accord.git.repository import Repository
    from accord.git.why import Reason

NOT_FOUND = 4
SLOW_S = 2.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to ask about."""
    parser.add_argument("target", metavar="PATH[:LINE]|COMMIT", help="a line, a file or a commit")
    parser.add_argument("--whole", action="store_true", help="all of the conversation")
    parser.add_argument("--offline", action="store_true", help="only what git holds")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Find out and tell; exit code 4 where nothing is on record."""
    import time

    from accord.git import naming, why
    from accord.git.process import GitError
    from accord.git.repository import Repository
    from accord.git.sharing import unfetched
    from accord.show.output import tell

    repo, began = Repository(), time.monotonic()
    try:
        naming.repository(repo)
        target = why.target(repo, args.target)
        reasons = why.why(repo, target)
    except GitError as no:
        raise naming.spoken(no) from None
    took = time.monotonic() - began
    if not args.offline:
        reasons = why.ask_server(repo, why.mended(repo, reasons))
    accepted = by_the_pact(repo, [each.commit.sha for each in reasons])
    if args.json:
        told_all = [told(each, accepted) for each in reasons]
        tell({"target": plain(args.target), "reasons": told_all})
    else:
        print("\n".join(answer(reasons, accepted, whole=args.whole)))
        if not args.offline and len(reasons) == 1:
            remembered(reasons[0], whole=args.whole)
    known = bool(accepted) or any(each.known for each in reasons)
    if not known and (brings := unfetched(repo)):
        print(f"accord: there are no records here; {brings}", file=sys.stderr)
    if why.cut_off(repo, reasons):
        said = "this clone is shallow, so older lines look like its first commit's"
        print(f"accord: {said}; `git fetch --unshallow` brings the rest", file=sys.stderr)
    if name := why.unfiltered(repo, target, reasons):
        said = f"{plain(target.path)} goes through the filter {plain(name)}, which is not run"
        print(f"accord: {said}, so lines that it changes look new", file=sys.stderr)
    if not args.json and took > SLOW_S:
        hint = "git commit-graph write --reachable --changed-paths"
        print(f"accord: `{hint}` makes this quicker", file=sys.stderr)
    return 0 if known else NOT_FOUND


def remembered(reason: "Reason", *, whole: bool) -> None:
    """What the server named by ACCORD_URL remembers, where the record has no conversation."""
    from accord.core.provenance.record import thread_of

    if not reason.known or thread_of(reason.record).messages:
        return
    from accord.cli.recalled import recalled
    from accord.show.prose import conversation as turned

    if turns := recalled(reason.record):
        print(
            "\n".join(["", f"{INDENT}{paint.bold('What was said')}", *turned(turns, whole=whole)])
        )


def by_the_pact(repo: "Repository", shas: list[str]) -> "Accepted":
    """What the pact that lies here says of commits; nothing where there is none, or it is odd."""
    import os

    from accord.core.kernel.refusal import Refused
    from accord.git.process import GitError

    if repo.bare or not (repo.root / os.environ.get("PACT_DIR", ".pact") / "log.jsonl").is_file():
        return {}
    from accord.cli.pact import desk_of
    from accord.pact import accepted

    try:
        return accepted.of(desk_of(""), repo, shas)
    except (Refused, GitError, OSError):
        return {}


def told(reason: "Reason", accepted: "Accepted") -> dict[str, Any]:
    """One commit for programs: the record as it is stored."""
    from accord.core.provenance.message import metadata

    commit = reason.commit
    return {
        "commit": commit.sha,
        "subject": plain(commit.subject),
        "author": plain(commit.author),
        "at": commit.at,
        "found_by": reason.by or None,
        "lines": [
            {"path": plain(each.path), "number": each.number, "text": plain(each.text)}
            for each in reason.lines
        ],
        "message": metadata(reason.message),
        "vouched": dict(reason.vouched),
        "reviews": [each._asdict() for each in reason.reviews],
        "accepted": [each._asdict() for each in accepted.get(commit.sha, ())],
        "record": reason.record,
    }
