"""Explain why a line of code is there: decision, approvals, alternatives.

Ask about a line, several lines, a file or a commit. Squashed and rebased commits are traced back to
their decisions. The records in git are enough; if a server of this machine is running, its records
are added, and for work in a pact, the task and who accepted it.

Examples:
  accord why src/auth.py:42
  accord why src/auth.py:40-60
  accord why src/auth.py
  accord why HEAD~3
  accord why src/auth.py:42 --json
"""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from accord.cli.git.why_text import INDENT, render_reasons
from accord.cli.json_values import git_time_for_json, snake_case_keys
from accord.show import style
from accord.show.text import replace_surrogates

if TYPE_CHECKING:
    from accord.cli.git.why_text import AcceptancesByCommit
    from accord.git.repository import Repository
    from accord.git.why import CommitExplanation

EXIT_NOT_FOUND = 4
SLOW_QUERY_S = 2.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the target and the flags."""
    parser.add_argument("target", metavar="PATH[:LINE]|COMMIT", help="a line, a file or a commit")
    parser.add_argument("--whole", action="store_true", help="show the complete conversation")
    parser.add_argument("--offline", action="store_true", help="use only the records in git")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the reasons; exits with 4 if there is no record."""
    import time

    from accord.git import bridge_client, user_arguments, why
    from accord.git.process import GitError
    from accord.git.records.remotes import fetch_hint
    from accord.git.repository import Repository
    from accord.show.output import print_json

    repo, began = Repository(), time.monotonic()
    try:
        user_arguments.require_repository(repo)
        bridge_client.apply_settings_file(repo, os.environ)
        target = why.parse_target(repo, args.target)
        reasons = why.explain(repo, target)
    except GitError as error:
        raise user_arguments.refusal_from_git(error) from None
    took = time.monotonic() - began
    if not args.offline:
        reasons = why.with_server_records(repo, why.with_recovered_records(repo, reasons))
    reasons = why.with_decisions_of_lines(why.with_coverage(repo, reasons))
    accepted = pact_acceptances(repo, [reason.commit.sha for reason in reasons])
    if args.json:
        rendered = [reason_for_json(reason, accepted) for reason in reasons]
        print_json({"target": replace_surrogates(args.target), "reasons": rendered})
    else:
        print("\n".join(render_reasons(reasons, accepted, whole=args.whole)))
        if not args.offline and len(reasons) == 1:
            print_server_transcript(reasons[0], whole=args.whole)
    known = bool(accepted) or any(reason.has_decision for reason in reasons)
    if not known and (brings := fetch_hint(repo)):
        print(f"accord: there are no records here; {brings}", file=sys.stderr)
    if why.shallow_commits(repo, reasons):
        warning = "this clone is shallow, so older lines seem to come from its first commit"
        print(f"accord: {warning}; `git fetch --unshallow` fetches the rest", file=sys.stderr)
    if name := why.filter_hiding_lines(repo, target, reasons):
        path, filter_name = replace_surrogates(target.path), replace_surrogates(name)
        warning = f"{path} has the filter {filter_name}, which is not run"
        print(f"accord: {warning}, so lines that it changes look new", file=sys.stderr)
    if not args.json and took > SLOW_QUERY_S:
        hint = "git commit-graph write --reachable --changed-paths"
        print(f"accord: `{hint}` makes this faster", file=sys.stderr)
    return 0 if known else EXIT_NOT_FOUND


def print_server_transcript(reason: "CommitExplanation", *, whole: bool) -> None:
    """Print the conversation from the server if the record in git has none."""
    from accord.core.provenance.decision_commit import thread_of

    if not reason.has_decision or thread_of(reason.record).messages:
        return
    from accord.cli.git.why_transcript import fetch_transcript
    from accord.show.transcript import render_transcript

    if turns := fetch_transcript(reason.record):
        print(
            "\n".join(
                [
                    "",
                    f"{INDENT}{style.bold('Conversation')}",
                    *render_transcript(turns, whole=whole),
                ]
            )
        )


def pact_acceptances(repo: "Repository", shas: list[str]) -> "AcceptancesByCommit":
    """Acceptances of the commits in the pact here; empty if there is no readable pact."""
    import os

    from accord.core.kernel.refusal import Refused
    from accord.git.process import GitError

    if (
        repo.is_bare
        or not (repo.root / os.environ.get("PACT_DIR", ".pact") / "log.jsonl").is_file()
    ):
        return {}
    from accord.cli.pact.command import open_workspace
    from accord.pact import acceptance

    try:
        return acceptance.acceptances_of(open_workspace(""), repo, shas)
    except (Refused, GitError, OSError):
        return {}


def coverage_for_json(reason: "CommitExplanation") -> dict[str, Any]:
    """What approvals cover of the commit, path by path."""
    from accord.cli.git.coverage_text import path_states

    found = reason.coverage
    return {
        "covers": found.covers,
        "approved_by": list(found.approvers),
        "files": [
            {
                "path": state.path,
                "state": state.state,
                "by": [
                    {"approver": entry.approver, "proposal": entry.proposal}
                    for entry in state.entries
                ],
            }
            for state in path_states(reason)
        ],
    }


def reason_for_json(reason: "CommitExplanation", accepted: "AcceptancesByCommit") -> dict[str, Any]:
    """One commit as JSON, with its record as stored."""
    from accord.core.provenance.commit_message.parser import commit_metadata

    commit = reason.commit
    return {
        "commit": commit.sha,
        "subject": replace_surrogates(commit.subject),
        "author": replace_surrogates(commit.author),
        "committed_at": git_time_for_json(commit.at),
        "found_by": reason.by or None,
        "lines": [
            {
                "path": replace_surrogates(line.path),
                "number": line.number,
                "text": replace_surrogates(line.text),
            }
            for line in reason.lines
        ],
        "message": snake_case_keys(commit_metadata(reason.message)),
        "vouched": dict(reason.vouched),
        "reviews": [review._asdict() for review in reason.reviews],
        "coverage": coverage_for_json(reason),
        "accepted": [acceptance._asdict() for acceptance in accepted.get(commit.sha, ())],
        "record": reason.record,
    }
