"""Which approvals of a session cover a commit: the rule applied to the calls that ran."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec.structs import replace

from accord.core.kernel.redaction import Redactor, redact_json
from accord.core.provenance.call_digest import call_digest
from accord.core.provenance.coverage.coverage_extent import Coverage
from accord.core.provenance.coverage.coverage_rule import (
    ApprovedRun,
    CommitContent,
    FileOperation,
    cover_commit,
    file_operations,
    is_file_call,
    named_paths,
    relative_path,
    shown_tree,
)
from accord.core.provenance.coverage.recorded_run import RecordedRun
from accord.core.provenance.coverage.text_changes import CallDoesNotFitError
from accord.core.provenance.decision_commit import (
    Approval,
    DecisionCommit,
    FileChange,
    ForkMerge,
    PathCoverage,
    ToolExecution,
)
from accord.core.provenance.waiting_runs import ENTIRE_CALL
from accord.core.views.commit_decision.decision_builder import ToolRun, shortened_call
from accord.core.views.commit_decision.draft_decision import DecisionDraft


def approved_runs(draft: DecisionDraft, root: str) -> tuple[ApprovedRun, ...]:
    """The runs that may cover content, in the order in which they ended.

    The effect of a commit call is the commit itself, so it counts while it runs, too.
    """
    tools = (_approved_run(run, root) for run in draft.runs if run.approvers)
    merges = (_approved_merge(merge, draft.decision) for merge in draft.decision.merges)
    return tuple(run for run in (*tools, *merges) if run is not None)


def _approved_run(run: ToolRun, root: str) -> ApprovedRun | None:
    operations = file_operations(run.tool_name, run.arguments, root) if run.succeeded else ()
    tree = shown_tree(run.arguments) if run.succeeded or not run.ended else ""
    recorded = run.recorded if run.succeeded else None
    if recorded and operations:
        recorded = _record_of_file_call(recorded, operations)
    if not (operations or tree or recorded):
        return None
    return ApprovedRun(run.proposal, run.approvers, operations, tree, recorded=recorded)


def _record_of_file_call(
    recorded: RecordedRun, operations: Sequence[FileOperation]
) -> RecordedRun | None:
    """Its trees; what it did to files is computed from the call. None if others changed as well."""
    named = {path for each in operations for path in (each.path, each.starts_from)}
    only_named = all(change.path in named for change in recorded.changes)
    return recorded._replace(changes=()) if only_named else None


def _approved_merge(merge: ForkMerge, decision: DecisionCommit) -> ApprovedRun | None:
    approvers = tuple(sorted({vote.by for vote in decision.votes if vote.action == merge.id}))
    if not (merge.done and merge.head and approvers):
        return None
    return ApprovedRun(merge.id, approvers, head=merge.head)


def covered_commit(draft: DecisionDraft, commit: CommitContent, root: str) -> DecisionCommit:
    """The decision with what its approvals cover of the commit."""
    coverage = cover_commit(approved_runs(draft, root), commit)
    uncommitted = uncommitted_parts(draft.runs, commit, coverage, root)
    decision = without_runs_elsewhere(draft, commit, uncommitted, root)
    return replace(
        decision,
        tree=commit.tree,
        changes=tuple(
            FileChange(
                path=file.path,
                before=file.before,
                after=file.after,
                old_mode=file.old_mode,
                mode=file.mode,
            )
            for file in commit.files
        ),
        covers=coverage.covers,
        coverage=tuple(_path_coverage(coverage)),
        context=tuple(_context(decision, coverage, commit, root)),
        approvals=tuple(_whole_approvals(decision, coverage)),
        tool_executions=tuple(_with_paths(draft, decision, uncommitted, root)),
    )


def without_runs_elsewhere(
    draft: DecisionDraft,
    commit: CommitContent,
    uncommitted: Mapping[str, tuple[str, ...]],
    root: str,
) -> DecisionCommit:
    """The decision without those who only decided on runs that the commit does not contain.

    A call that changes files is contained if it changes one of the commit, and not all that it
    does was left out. What any other call changed is unknown, so the first commit after it
    contains it.
    """
    changed = {file.path for file in commit.files}
    elsewhere = {
        run.proposal
        for run in draft.runs
        if _is_elsewhere(run, changed - {*uncommitted[run.proposal]}, root)
    }
    here = [run for run in draft.runs if run.proposal not in elsewhere]
    there = [run for run in draft.runs if run.proposal in elsewhere]
    decision = draft.decision
    merged_by = (merge.by for merge in decision.merges)
    kept = frozenset().union(*(run.decided_by for run in here), *merged_by)
    dropped = frozenset().union(*(run.decided_by for run in there)) - kept
    return replace(
        decision,
        decided_by=tuple(person for person in decision.decided_by if person not in dropped),
        assisted_by=tuple(sorted({run.assistant for run in here})),
        tool_executions=tuple(
            replace(tool, elsewhere=tool.id in elsewhere) for tool in decision.tool_executions
        ),
    )


def _is_elsewhere(run: ToolRun, changed: set[str], root: str) -> bool:
    if not is_file_call(run.tool_name, run.arguments):
        return False
    operations = file_operations(run.tool_name, run.arguments, root)
    return changed.isdisjoint(operation.path for operation in operations)


def contained_runs(decision: DecisionCommit) -> tuple[str, ...]:
    """The runs that belong to this commit, and so to no other clone's.

    Not a commit call that showed another tree: its own commit may be about to be reported. Not a
    call that changes files either, if it is not known which ones the commit changes.
    """
    return tuple(
        tool.id
        for tool in decision.tool_executions
        if not tool.elsewhere
        and shown_tree(tool.arguments) in ("", decision.tree)
        and (decision.changes or not is_file_call(tool.name, tool.arguments))
    )


def _path_coverage(coverage: Coverage) -> Iterator[PathCoverage]:
    for entry in coverage.entries:
        yield PathCoverage(
            approver=entry.approver,
            proposal=entry.proposal,
            paths=entry.paths,
            together=entry.together,
        )


def _context(
    decision: DecisionCommit, coverage: Coverage, commit: CommitContent, root: str
) -> Iterator[PathCoverage]:
    """Approved runs that cover nothing, with the changed paths that only the agent names."""
    covering = {(entry.approver, entry.proposal) for entry in coverage.entries}
    changed = {file.path for file in commit.files}
    for tool in decision.tool_executions:
        named = set(_inside((*tool.reported, *named_paths(tool.arguments)), root))
        for approver in tool.approved_by:
            if (approver, tool.id) not in covering:
                paths = tuple(sorted(changed & named))
                yield PathCoverage(approver=approver, proposal=tool.id, paths=paths)


def _inside(paths: Iterable[str], root: str) -> Iterator[str]:
    for path in paths:
        with suppress(CallDoesNotFitError):
            yield relative_path(path, root)


def with_recorded_calls(draft: DecisionDraft, clean: Redactor) -> DecisionDraft:
    """The draft with its calls as a record has them: redacted, then cut, with a digest if cut.

    A secret that is cut first would not be recognised.
    """
    runs = {run.proposal: run for run in draft.runs}
    executions = (_recorded(tool, runs[tool.id], clean) for tool in draft.decision.tool_executions)
    return draft._replace(decision=replace(draft.decision, tool_executions=tuple(executions)))


def _recorded(tool: ToolExecution, run: ToolRun, clean: Redactor) -> ToolExecution:
    whole: Any = redact_json(dict(run.arguments), clean)
    cut = shortened_call(whole, run.max_text)
    digest = call_digest(run.tool_name, whole) if cut != whole else ""
    return replace(tool, arguments=cut, call_digest=digest)


def _whole_approvals(decision: DecisionCommit, coverage: Coverage) -> Iterator[Approval]:
    """The votes by which those who approved all of the commit did so."""
    covering = {(entry.approver, entry.proposal) for entry in coverage.entries}
    for vote in decision.votes:
        if vote.by in coverage.approvers and (vote.by, vote.action) in covering:
            yield vote


def _with_paths(
    draft: DecisionDraft,
    decision: DecisionCommit,
    uncommitted: Mapping[str, tuple[str, ...]],
    root: str,
) -> Iterator[ToolExecution]:
    """The executions with the files that each call changes, and what of it is not committed."""
    paths = {run.proposal: set(_paths_of(run, root)) for run in draft.runs}
    for tool in decision.tool_executions:
        yield replace(
            tool,
            paths=tuple(sorted(paths.get(tool.id, ()))),
            uncommitted=uncommitted.get(tool.id, ()),
        )


def _paths_of(run: ToolRun, root: str) -> Iterator[str]:
    yield from (each.path for each in file_operations(run.tool_name, run.arguments, root))
    yield from (each.path for each in (run.recorded.changes if run.recorded else ()))


class CoverageNeeds(NamedTuple):
    """What the rule needs of git, so that nothing else of a repository is sent.

    `contents` are the paths whose content before the commit matters, `line_endings` those where it
    matters whether git converts them. Without `is_possible` no run could cover anything.
    """

    is_possible: bool
    contents: tuple[str, ...]
    line_endings: tuple[str, ...]


def coverage_needs(draft: DecisionDraft, root: str) -> CoverageNeeds:
    """What the rule needs of git for the runs of this decision."""
    runs = approved_runs(draft, root)
    operations = [operation for run in runs for operation in run.operations]
    contents = {each.starts_from for each in operations if not each.change.is_complete}
    line_endings = {
        each.path for each in operations if each.change.with_line_feeds() != each.change
    }
    return CoverageNeeds(bool(runs), tuple(sorted(contents)), tuple(sorted(line_endings)))


def depends_on_content(draft: DecisionDraft, root: str) -> bool:
    """Whether it matters for the trailers what is committed."""
    is_narrowed = any(is_file_call(run.tool_name, run.arguments) for run in draft.runs)
    return is_narrowed or coverage_needs(draft, root).is_possible


# What is left to later commits (`carried_runs`)


def uncommitted_parts(
    runs: Sequence[ToolRun], commit: CommitContent, coverage: Coverage, root: str
) -> dict[str, tuple[str, ...]]:
    """What each run does that this commit does not contain."""
    changes = {run.proposal: file_operations(run.tool_name, run.arguments, root) for run in runs}
    kept = {file.path: _contained_in_path(file.path, coverage, changes) for file in commit.files}
    return {run.proposal: _uncommitted(run, commit.tree, changes, kept) for run in runs}


_Operations = Mapping[str, tuple[FileOperation, ...]]


def _contained_in_path(path: str, coverage: Coverage, changes: _Operations) -> frozenset[str]:
    """The runs that a commit contains which changes this path: all of them, if it is not known.

    Runs led to the content that is committed. What came before a whole content is replaced by it.
    Between the others, `git add -p` may have left out an edit; of what came later nothing is in it.
    """
    covering = {entry.proposal for entry in coverage.entries_of(path)}
    order = [
        (run, operation.change.is_complete)
        for run, operations in changes.items()
        for operation in operations
        if operation.path == path
    ]
    if not covering or not covering <= {run for run, _ in order}:
        return frozenset(changes)
    wholes = [at for at, (run, is_whole) in enumerate(order) if is_whole and run in covering]
    replaced = {run for run, _ in order[: max(wholes, default=0)]}
    return frozenset(covering | replaced)


def _uncommitted(
    run: ToolRun,
    tree: str,
    changes: _Operations,
    contained: Mapping[str, frozenset[str]],
) -> tuple[str, ...]:
    if run.ended and not run.succeeded:
        return ()
    if shown := shown_tree(run.arguments):
        return () if shown == tree else (ENTIRE_CALL,)
    if not is_file_call(run.tool_name, run.arguments):
        return ()
    if not (operations := changes[run.proposal]):
        return (ENTIRE_CALL,)
    paths = {each.path for each in operations}
    return tuple(sorted(path for path in paths if run.proposal not in contained.get(path, ())))
