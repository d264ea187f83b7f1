"""The decision tree in a terminal: a session, its forks, their commits, what came together."""

from collections.abc import Iterator
from typing import Any

from accord.core.provenance.refs import branch_of
from accord.git.tree import Entry, Limb, Tree
from accord.show import paint
from accord.show.text import line, listed

SHORT = 10


def drawn(tree: Tree) -> Iterator[str]:
    """The lines of one session."""
    yield f"{paint.bold(line(tree.session) or 'no session')}  {line(tree.name)}".rstrip()
    for number, limb in enumerate(tree.limbs, 1):
        last = number == len(tree.limbs)
        yield f"{'└─' if last else '├─'} {_title(limb)}"
        for entry in limb.entries:
            yield f"{' ' if last else '│'}  {_entry(entry)}"


def _title(limb: Limb) -> str:
    on = f" ↔ {listed(map(line, limb.branches))}" if limb.branches else ""
    if not limb.fork:
        return f"trunk{on}"
    came = f"  merged by {paint.yellow(limb.merged_by[:SHORT])}" if limb.merged_by else ""
    return f"fork {line(limb.fork)}{on or f' ↔ {branch_of(limb.fork)}'}{came}"


def _entry(entry: Entry) -> str:
    commit = entry.commit
    mark = "◆" if len(commit.parents) > 1 else "●"
    by = listed(line(each) for each in sorted({n for d in entry.decisions for n in d.decided_by}))
    yes = listed(line(each) for each in sorted({n for d in entry.decisions for n in d.approved_by}))
    parts = (
        f"{mark} {paint.yellow(commit.sha[:SHORT])} {line(plain(commit.subject))}",
        paint.dim(by),
        f"✓ {yes}" if yes else "",
        f"← fork {line(entry.merges)}" if entry.merges else "",
    )
    return "  ".join(part for part in parts if part)


def plain(text: str) -> str:
    """Words of git that may be no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def told(tree: Tree) -> dict[str, Any]:
    """The same for programs."""
    return {
        "session": tree.session,
        "name": tree.name,
        "forks": [
            {
                "fork": limb.fork or None,
                "branches": list(limb.branches),
                "merged_by": limb.merged_by,
                "commits": [_told(entry) for entry in limb.entries],
            }
            for limb in tree.limbs
        ],
    }


def _told(entry: Entry) -> dict[str, Any]:
    return {
        "sha": entry.commit.sha,
        "subject": plain(entry.commit.subject),
        "parents": list(entry.commit.parents),
        "decisions": [each.id for each in entry.decisions],
        "merges": entry.merges,
    }
