"""The tree of sessions, forks and commits, as text and JSON."""

from collections.abc import Iterator
from typing import Any

from accord.core.provenance.commit_message.trailer_values import branch_of
from accord.git.decision_tree import ForkCommits, SessionTree, TreeCommit
from accord.show import style
from accord.show.text import join_words, one_line, replace_surrogates

SHORT_SHA_LENGTH = 10


def render_tree(tree: SessionTree) -> Iterator[str]:
    """The lines of one session."""
    yield f"{style.bold(one_line(tree.session) or 'no session')}  {one_line(tree.name)}".rstrip()
    for number, fork in enumerate(tree.forks, 1):
        last = number == len(tree.forks)
        yield f"{'└─' if last else '├─'} {_title(fork)}"
        for entry in fork.entries:
            yield f"{' ' if last else '│'}  {_entry(entry)}"


def _title(fork: ForkCommits) -> str:
    on = f" ↔ {join_words(map(one_line, fork.branches))}" if fork.branches else ""
    if not fork.fork:
        return f"trunk{on}"
    merged = (
        f"  merged by {style.yellow(fork.merged_by[:SHORT_SHA_LENGTH])}" if fork.merged_by else ""
    )
    return f"fork {one_line(fork.fork)}{on or f' ↔ {branch_of(fork.fork)}'}{merged}"


def _entry(entry: TreeCommit) -> str:
    commit = entry.commit
    subject = one_line(replace_surrogates(commit.subject))
    mark = "◆" if len(commit.parents) > 1 else "●"
    deciders = join_words(
        one_line(name) for name in sorted({n for d in entry.decisions for n in d.decided_by})
    )
    approvers = join_words(
        one_line(name)
        for name in sorted(
            # Of a rewritten commit only `accord why` checks what its approvals cover.
            {n for d in entry.decisions if d.git_sha == commit.sha for n in d.approved_by}
        )
    )
    parts = (
        f"{mark} {style.yellow(commit.sha[:SHORT_SHA_LENGTH])} {subject}",
        style.dim(deciders),
        f"✓ {approvers}" if approvers else "",
        f"← fork {one_line(entry.merges)}" if entry.merges else "",
    )
    return "  ".join(part for part in parts if part)


def tree_for_json(tree: SessionTree) -> dict[str, Any]:
    return {
        "session": tree.session,
        "name": tree.name,
        "forks": [
            {
                "fork": fork.fork or None,
                "branches": list(fork.branches),
                "merged_by": fork.merged_by,
                "commits": [_entry_for_json(entry) for entry in fork.entries],
            }
            for fork in tree.forks
        ],
    }


def _entry_for_json(entry: TreeCommit) -> dict[str, Any]:
    return {
        "commit": entry.commit.sha,
        "subject": replace_surrogates(entry.commit.subject),
        "parents": list(entry.commit.parents),
        "decisions": [decision.id for decision in entry.decisions],
        "merges": entry.merges,
    }
