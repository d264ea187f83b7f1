"""Ship a feature with git: check Rule 2 on all branches' logs, find the reviewers, merge."""

from collections.abc import Callable, Sequence
from shlex import quote

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.fold import fold
from accord.core.work.format import log_lines
from accord.core.work.ledger_validation import ValidationFinding, conflicting_event_id
from accord.core.work.review_and_merge_rules import feature_to_ship
from accord.core.work.state import Feature, Work
from accord.core.work.vocabulary import is_branch_name
from accord.git.repository import Repository
from accord.pact.branch_switch import BranchMerge, check_clean
from accord.pact.other_branches import remote_branches_of
from accord.pact.workspace import Workspace


def switch_branch(workspace: Workspace, repository: Repository, branch: str) -> list[str]:
    """Switch to the branch; a note to the user if that changed anything."""
    before = repository.current_branch()
    workspace.branch_switch.switch(repository, branch)
    return [] if before == branch else [f"switched to branch {branch}"]


def merge_feature(
    workspace: Workspace,
    repository: Repository,
    work: Work,
    feature: Feature,
    write: Callable[[], bytes],
) -> list[str]:
    """Merge a feature's branch into the base unless git already has; notes for the user.

    `write` makes the lines of the ledger that the merge commit records.
    """
    from accord.pact import reviewed_by  # slow to import, and only needed to merge

    base, branch = work.base_branch, feature.branch
    if base == branch:
        return []
    if not is_branch_name(branch) or not repository.has_branch(branch):
        return [_check_missing_branch(repository, branch)]
    if not is_branch_name(base) or not repository.has_branch(base):
        raise Refused(
            Reason.WRONG_STATE,
            f"The base branch {base} does not exist here; use --no-git to ship without merging",
        )
    check_clean(repository, workspace.location)
    _check_rule_two_on_branches(workspace, repository, base, feature)
    start = repository.current_branch()
    merged = repository.contains(f"refs/heads/{base}", f"refs/heads/{branch}")
    merge_commit = find_merge_commit(repository, base, branch) if merged else ""
    if merged and not merge_commit:
        detail = (
            f"{branch} has no commits that {base} lacks; "
            f"use --no-git to ship {feature.id} without merging"
        )
        raise Refused(Reason.WRONG_STATE, detail)
    notes = switch_branch(workspace, repository, base)
    tip = repository.run_text("rev-parse", f"refs/heads/{branch}")
    merge_range = reviewed_by.MergeRange(
        tip, f"{merge_commit}^1" if merge_commit else f"refs/heads/{base}"
    )
    coverage = reviewed_by.find_reviews(workspace.location, repository, work, feature, merge_range)
    by = reviewed_by.reviewer_names(coverage, workspace.notify_server().get("names") or {})
    if merge_commit:
        notes.append(f"git had already merged {branch}; only the event was missing")
        return [*notes, *reviewed_by.record_reviewers(repository, merge_range, coverage, by)]
    message = reviewed_by.merge_message(f"Merge {feature.id} ({branch})", coverage, by)
    notes += coverage.gaps

    def record() -> bytes:
        # Before the commit: after it, a crash would leave the names out for good.
        notes.extend(reviewed_by.record_reviewers(repository, merge_range, coverage, by))
        return write()

    try:
        # Merge the commit that was compared with the reviews; the branch may have moved since.
        workspace.branch_switch.merge_with_events(
            repository, BranchMerge(tip, branch, message), record
        )
    except Refused:
        if start:
            workspace.branch_switch.switch(repository, start)
        raise
    return notes


def _check_missing_branch(repository: Repository, branch: str) -> str:
    """The note that there is no such branch to merge; refused if only a remote has it."""
    if not is_branch_name(branch):
        return f"{branch!r} is not a valid branch name, so git merged nothing"
    if remote_branches := remote_branches_of(repository, branch):
        detail = (
            f"{branch} exists only as {remote_branches[0]}; run "
            f"`git branch --track {quote(branch)} {quote(remote_branches[0])}` first, "
            "or use --no-git to ship without merging"
        )
        raise Refused(Reason.WRONG_STATE, detail)
    return f"branch {branch} does not exist here, so git merged nothing; only the event is recorded"


def _check_rule_two_on_branches(
    workspace: Workspace, repository: Repository, base: str, feature: Feature
) -> None:
    """Check Rule 2 including events that only the ledgers on the two branches have."""
    data, _ = workspace.ledger.read()
    all_lines = data = log_lines.append_lines(data, b"")
    name = workspace.location.relative_path(workspace.location.log_path)
    for branch in (feature.branch, base):
        branch_log = repository.read_file_at(f"refs/heads/{branch}", name) or b""
        data += log_lines.missing_lines(data, branch_log)
        all_lines = log_lines.append_lines(all_lines, branch_log)
    check_no_conflicting_ids(all_lines)
    feature_to_ship(fold(log_lines.parse_log(data).entries), feature.id)


def check_no_conflicting_ids(data: bytes) -> None:
    """Refuse if two different events share an id: the hidden one may be a task or a verdict."""
    if id := conflicting_event_id(list(log_lines.parse_objects(data))):
        detail = (
            f"Two different events have the event_id {id}; nothing can ship until one of them is "
            "removed. `accord pact validate` shows the lines"
        )
        raise Refused(Reason.DAMAGED, detail)


def check_proven(findings: Sequence[ValidationFinding]) -> None:
    """Refuse to ship if signatures leave anything unproven."""
    for first in findings[:1]:
        where = f"line {first.line}: " if first.line else ""
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        detail = f"{where}{first.sentence}{more}; `accord pact validate --strict` lists all"
        raise Refused(Reason.FORBIDDEN, detail)


def find_merge_commit(repository: Repository, base: str, branch: str) -> str:
    """The merge commit on the base whose second parent is the branch's tip; empty if none."""
    tip = repository.run_text("rev-parse", f"refs/heads/{branch}")
    merges = repository.run_text("log", "--merges", "--format=%H %P", f"refs/heads/{base}", "--")
    rows = (line.split() for line in merges.splitlines())
    return next((sha for sha, _, *others in rows if tip in others), "")
