"""`accord git coverage`, `tree`, `heal`, `log` and `branch`."""

import argparse
import sys
from typing import TYPE_CHECKING

from accord.cli.json_values import git_time_for_json
from accord.show import style
from accord.show.text import join_words, one_line, plural, replace_surrogates

if TYPE_CHECKING:
    from accord.git.repository import Repository

EXIT_BELOW_THRESHOLD = 5
SHORT_LENGTH = 10


def coverage(repo: "Repository", args: argparse.Namespace) -> int:
    """Print the share of commits that have a decision."""
    from accord.git import user_arguments
    from accord.git.decision_share import measure_coverage
    from accord.show.output import print_json

    found = measure_coverage(
        repo, user_arguments.resolve_range(repo, args.range), count_records=args.records
    )
    if args.json:
        counts = {"commits": found.commits, "covered": found.covered, "recorded": found.recorded}
        print_json(
            counts
            | {"percent": found.percent, "without": [commit.sha for commit in found.uncovered]}
        )
    elif not found.commits:
        print("There are no commits in this range")
    else:
        part = f"{found.covered} of {plural(found.commits, 'commit')}"
        evidence = "PVP trailers or a record" if args.records else "PVP trailers"
        print(f"{found.percent:.0f} %  {part} with {evidence}; {found.recorded} with a record")
        for commit in found.uncovered[:SHORT_LENGTH]:
            subject = one_line(replace_surrogates(commit.subject))
            print(f"  {style.yellow(commit.sha[:SHORT_LENGTH])} {subject}")
        if len(found.uncovered) > SHORT_LENGTH:
            print(f"  … and {len(found.uncovered) - SHORT_LENGTH} more")
    return 0 if found.percent >= args.threshold else EXIT_BELOW_THRESHOLD


def tree(repo: "Repository", args: argparse.Namespace) -> int:
    """Print sessions, forks and merges as a tree of commits."""
    from accord.cli.git.tree_text import render_tree, tree_for_json
    from accord.git.decision_tree import session_trees
    from accord.git.records.remotes import fetch_hint
    from accord.show.output import print_json

    found = session_trees(repo, args.session)
    if args.json:
        print_json({"sessions": [tree_for_json(session) for session in found]})
        return 0
    for session in found:
        print("\n".join(render_tree(session)))
    if found:
        print(style.dim("From the records in git; `accord why COMMIT` also asks your server"))
    else:
        print(
            "; ".join(filter(None, ("No commit here belongs to a session yet", fetch_hint(repo))))
        )
    return 0


def heal(repo: "Repository", args: argparse.Namespace) -> int:
    """Link commits to their decisions again after a rebase, amend or squash."""
    from accord.git import ancestry, user_arguments
    from accord.git.hooks import marker_files
    from accord.git.records import pending_commits, squash_merges
    from accord.git.records.relink import relink_missing
    from accord.git.why import LINK_LABELS
    from accord.show.output import print_json

    waiting = marker_files.has_pending(repo)
    recorded = (
        pending_commits.record_pending(repo) if waiting else pending_commits.RecordedCommits({})
    )
    found = relink_missing(repo, user_arguments.resolve_range(repo, args.range))
    if head := repo.resolve("HEAD"):
        squash_merges.record_branch_patch(repo, head, ancestry.trunk_commit(repo))
    if args.json:
        healed = [
            {"commit": e.commit.sha, "decisions": sorted(e.ids), "found_by": e.by} for e in found
        ]
        made = [
            {"commit": sha, "decisions": sorted(ids)} for sha, ids in recorded.ids_by_sha.items()
        ]
        print_json({"healed": healed, "recorded": made})
        return 0
    for sha, ids in recorded.ids_by_sha.items():
        print(f"{style.yellow(sha[:SHORT_LENGTH])}\n  {join_words(sorted(ids))}, from the server")
    if left := len(marker_files.pending_commits(repo)):
        reason = recorded.reason or "the server knows no session for them"
        print(f"{plural(left, 'commit')} without a record yet: {one_line(reason)}")
    for each in found:
        head = f"{style.yellow(each.commit.sha[:SHORT_LENGTH])} {one_line(each.commit.subject)}"
        print(f"{head}\n  {join_words(sorted(each.ids))}, by {LINK_LABELS[each.by]}")
    print(f"{plural(len(found), 'commit')} linked to decisions again")
    return 0


def log(repo: "Repository", args: argparse.Namespace) -> int:
    """Print commits that belong to sessions: the newest, those of one session, or of one person."""
    from accord.git import commit_search
    from accord.show.output import print_json

    if args.session:
        found, whose = commit_search.commits_of_session(repo, args.session), f"of {args.session}"
    elif args.by:
        found, whose = (
            commit_search.commits_by_participant(repo, args.by),
            f"that {args.by} decided",
        )
    else:
        found, whose = commit_search.newest_session_commits(repo), "that belongs to a session"
    if args.json:
        print_json(
            {
                "commits": [
                    {
                        "commit": e.sha,
                        "subject": replace_surrogates(e.subject),
                        "committed_at": git_time_for_json(e.at),
                    }
                    for e in found
                ]
            }
        )
        return 0
    for each in found:
        print(
            f"{style.yellow(each.sha[:SHORT_LENGTH])} {one_line(replace_surrogates(each.subject))}"
        )
    if not found:
        print(f"accord: there is no commit here {one_line(whose)}", file=sys.stderr)
    return 0


def branch(repo: "Repository", args: argparse.Namespace) -> int:
    """Create a git branch for a fork and print its name."""
    from accord.git.decision_tree import create_fork_branch
    from accord.show.output import print_json

    name = create_fork_branch(repo, args.fork, args.start)
    if args.json:
        print_json({"branch": name})
    else:
        print(name)
    return 0
