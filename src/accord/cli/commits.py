"""Commits and what led to them: how many say it, as a tree, found again, of one session."""

import argparse
import sys
from typing import TYPE_CHECKING

from accord.cli.messages import shown
from accord.show import paint
from accord.show.text import count, line, listed

if TYPE_CHECKING:
    from accord.git.repository import Repository

BELOW = 5
SHORT = 10


def coverage(repo: "Repository", args: argparse.Namespace) -> int:
    """How many say how they were decided."""
    from accord.git import naming
    from accord.git.coverage import measure
    from accord.show.output import tell

    found = measure(repo, naming.commits(repo, args.range), records=args.records)
    if args.json:
        told = {"commits": found.commits, "covered": found.covered, "recorded": found.recorded}
        tell(told | {"percent": found.percent, "without": [each.sha for each in found.without]})
    elif not found.commits:
        print("There are no commits to look at")
    else:
        part = f"{found.covered} of {count(found.commits, 'commit')}"
        by = "PVP trailers or a record" if args.records else "PVP trailers"
        print(f"{found.percent:.0f} %  {part} with {by}; {found.recorded} with a record")
        for each in found.without[:SHORT]:
            print(f"  {paint.yellow(each.sha[:SHORT])} {line(each.subject)}")
        if len(found.without) > SHORT:
            print(f"  … and {len(found.without) - SHORT} more")
    return 0 if found.percent >= args.threshold else BELOW


def tree(repo: "Repository", args: argparse.Namespace) -> int:
    """Sessions, forks and merges as commits."""
    from accord.cli.limbs import drawn, told
    from accord.git.sharing import unfetched
    from accord.git.tree import grow
    from accord.show.output import tell

    found = grow(repo, args.session)
    if args.json:
        tell({"sessions": [told(each) for each in found]})
        return 0
    for each in found:
        print("\n".join(drawn(each)))
    if found:
        print(paint.dim("As git's records say; `accord why COMMIT` asks your server, too"))
    else:
        print("; ".join(filter(None, ("No session has left a commit here yet", unfetched(repo)))))
    return 0


def heal(repo: "Repository", args: argparse.Namespace) -> int:
    """Find decisions again."""
    from accord.git import branches, naming, trunk
    from accord.git.healing import heal as mend
    from accord.git.why import SIGNS
    from accord.show.output import tell

    found = mend(repo, naming.commits(repo, args.range))
    if head := repo.resolve("HEAD"):
        branches.remember(repo, head, trunk.of(repo))
    if args.json:
        told = [{"commit": e.commit.sha, "decisions": sorted(e.ids), "by": e.by} for e in found]
        tell({"healed": told})
        return 0
    for each in found:
        head = f"{paint.yellow(each.commit.sha[:SHORT])} {line(each.commit.subject)}"
        print(f"{head}\n  {listed(sorted(each.ids))}, by {SIGNS[each.by]}")
    print(f"{count(len(found), 'commit')} tied to decisions again")
    return 0


def log(repo: "Repository", args: argparse.Namespace) -> int:
    """Commits that come of sessions: the newest, those of one, or a participant's."""
    from accord.git import finding
    from accord.show.output import tell

    if args.session:
        found, whose = finding.of_session(repo, args.session), f"of {args.session}"
    elif args.by:
        found, whose = finding.by_participant(repo, args.by), f"that {args.by} decided"
    else:
        found, whose = finding.newest(repo), "that comes of a session"
    if args.json:
        tell({"commits": [{"sha": e.sha, "subject": shown(e.subject), "at": e.at} for e in found]})
        return 0
    for each in found:
        print(f"{paint.yellow(each.sha[:SHORT])} {line(shown(each.subject))}")
    if not found:
        print(f"accord: there is no commit here {line(whose)}", file=sys.stderr)
    return 0


def branch(repo: "Repository", args: argparse.Namespace) -> int:
    """A branch for a fork."""
    from accord.git.tree import make_branch
    from accord.show.output import tell

    name = make_branch(repo, args.fork, args.start)
    if args.json:
        tell({"branch": name})
    else:
        print(name)
    return 0
