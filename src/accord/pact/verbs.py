"""The verbs with their effects on events, files and git, ordered to be safe in a crash.

Git acts before an event is recorded, and files derived from the log are written after it. A crash
can thus leave a file that is out of date, which is rebuilt, but never an event for something that
did not happen. The event of a merge or of a committed checkpoint is part of git's commit.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import quote

import msgspec

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work import verbs
from accord.core.work.event import EventDraft
from accord.core.work.format.state_and_task_files import check_no_markers
from accord.core.work.roster import parse_roster
from accord.core.work.state import Work
from accord.core.work.verbs import ActingSeat, Assignment
from accord.core.work.vocabulary import EventKind, TaskStatus, is_branch_name
from accord.git.repository import Repository
from accord.pact import checkpoint_commit, feature_merge, scaffold
from accord.pact.feature_merge import switch_branch
from accord.pact.ledger import BASE_LOCK_TIMEOUT_S, file_lock
from accord.pact.other_branches import remote_branches_of
from accord.pact.workspace import Workspace, decide_on_log

MAX_PATHS_NAMED = 3


class VerbResult(msgspec.Struct):
    """What a verb did; `notes` are for the user, `commit` is the one accepted, or the merge."""

    events: list[str]
    notes: list[str] = []
    commit: str = ""


def result_of(
    workspace: Workspace, caller: ActingSeat, kind: EventKind, events: list[str], *notes: str
) -> VerbResult:
    """The result, with warnings such as a role that the roster does not list (OPEN-99)."""
    seat = workspace.work.seat(caller.id)
    warnings = (
        [role_warning(verbs.role_mismatch(seat, kind))]
        if seat and kind is not EventKind.JOIN
        else []
    )
    if workspace.render_error:
        warnings.append(
            f"{workspace.render_error}; the event was recorded, "
            "and `accord pact log --replay` rebuilds the file"
        )
    if workspace.signature_missing:
        warnings.append(
            f"the key of {caller.id} is not on this machine, so the event was not signed"
        )
    return VerbResult(events, [*notes, *(warning for warning in warnings if warning)])


def role_warning(mismatch: str) -> str:
    """The warning for a role mismatch that is not enforced."""
    return (
        f"{mismatch}; the event was recorded anyway, --strict-roles would refuse it"
        if mismatch
        else ""
    )


def init(
    workspace: Workspace,
    caller: ActingSeat,
    project: str,
    seats: Sequence[str],
    base: str,
    keys: Sequence[str] = (),
) -> VerbResult:
    """Start a pact, or refresh the files of an existing one; the log is never rewritten."""
    place = workspace.location
    verbs.init(Work(), caller, project, seats, base, keys)
    check_no_markers(project)
    scaffold.check_paths_inside(place, parse_roster(seats))
    current_branch = place.repository.current_branch() if place.repository else ""
    with workspace.ledger.locked():
        workspace.branch_switch.recover()

        def decide(work: Work) -> list[EventDraft]:
            branch = base if work.started else base or current_branch
            return verbs.init(work, caller, project, seats, branch, keys)

        events = workspace.record_locked(decide)
        scaffold.write_scaffold(place, workspace.work)
        workspace.write_state_file(workspace.work)
    return VerbResult(events)


def join(workspace: Workspace, caller: ActingSeat, roles: str, id: str, *, git: bool) -> VerbResult:
    """Take one's seat and switch to the branch of one's work."""
    notes = list[str]()

    def decide(work: Work) -> list[EventDraft]:
        return verbs.join(work, caller, id, roles)

    with workspace.ledger.locked():
        workspace.branch_switch.recover()
        state = workspace.load_for_decision()
        decide_on_log(state, decide)
        repository = workspace.location.repository
        branch = branch_of_seat(state.work, caller.id, repository) if repository and git else ""
        if repository and branch:
            notes += go_to_branch(workspace, repository, branch)
        if seat := state.work.seat(caller.id):
            notes.append(role_warning(verbs.join_roles_mismatch(seat, roles.split(","))))
        return result_of(
            workspace, caller, EventKind.JOIN, workspace.record_locked(decide), *filter(None, notes)
        )


def go_to_branch(workspace: Workspace, repository: Repository, branch: str) -> list[str]:
    """Switch to the branch, or a note why not; a name from a log is checked first."""
    if not is_branch_name(branch):
        return [f"{branch!r}, the branch of your task in the log, is not a valid branch name"]
    if repository.has_branch(branch):
        return switch_branch(workspace, repository, branch)
    if repository.current_branch() == branch:
        return []
    match remote_branches_of(repository, branch):
        case []:
            command = f"git switch -c {quote(branch)}"
            return [f"branch {branch} does not exist yet; `{command}` creates it"]
        case [remote_branch]:
            return _create_from_remote(workspace, repository, branch, remote_branch)
        case several:
            # Not `git switch`, which refuses to overwrite the ledger with its new event.
            command = f"git branch --track {quote(branch)} {quote(several[0])}"
            names = ", ".join(several)
            return [f"{branch} exists as {names}; `{command}` creates it here, then join again"]


def _create_from_remote(
    workspace: Workspace, repository: Repository, branch: str, remote_branch: str
) -> list[str]:
    """Create the local branch, as `git switch` would, and switch to it."""
    repository.run_with_hooks("branch", "--quiet", "--track", branch, remote_branch)
    try:
        workspace.branch_switch.switch(repository, branch)
    except Refused:
        repository.run("branch", "--quiet", "-D", branch)
        raise
    return [f"created branch {branch} from {remote_branch} and switched to it"]


def branch_of_seat(work: Work, seat: str, repository: Repository) -> str:
    """The branch of the seat's work: the current one if it fits, else its first open task's."""
    own_tasks = [task for task in work.tasks.values() if task.owner == seat]
    open_own_tasks = [task for task in own_tasks if task.status is not TaskStatus.ACCEPTED]
    branches = [work.features[task.feature].branch for task in open_own_tasks or own_tasks]
    here = repository.current_branch()
    return here if here in branches else next(iter(branches), "")


def assign(workspace: Workspace, caller: ActingSeat, assignment: Assignment) -> VerbResult:
    """Assign a task and create its file if missing."""
    spec = assignment.spec or workspace.location.relative_path(
        workspace.location.directory / "tasks" / f"{assignment.task}.md"
    )
    with_spec = msgspec.structs.replace(assignment, spec=spec)

    def decide(work: Work) -> list[EventDraft]:
        drafts = verbs.assign(work, caller, with_spec)
        scaffold.check_within(
            workspace.location.directory,
            workspace.location.directory / "tasks" / f"{assignment.task}.md",
        )
        return drafts

    events = workspace.write(decide)
    try:
        scaffold.create_task_file(workspace.location, workspace.work.tasks[assignment.task])
    except OSError as error:
        note = f"the file of {assignment.task} could not be created: {error.strerror}"
        return result_of(workspace, caller, EventKind.ASSIGN, events, note)
    return result_of(workspace, caller, EventKind.ASSIGN, events)


def checkpoint(
    workspace: Workspace, caller: ActingSeat, id: str, evidence: str, *, commit: bool
) -> VerbResult:
    """Submit work for review; with `commit`, commit tracked files and the ledger first."""
    place, repository = workspace.location, workspace.location.repository

    def decide(work: Work, files: str = "") -> list[EventDraft]:
        head = checkpoint_commit.commit_to_show(place, work, id, here=commit)
        return verbs.checkpoint(work, caller, id, evidence, head, files)

    if not commit:
        return result_of(workspace, caller, EventKind.CHECKPOINT, workspace.write(decide))
    if not repository:
        raise Refused(Reason.WRONG_STATE, "--commit needs a git repository, and there is none here")
    with workspace.ledger.locked():
        workspace.branch_switch.recover()
        state = workspace.load_for_decision()
        decide_on_log(state, decide)
        feature = state.work.features[state.work.tasks[id].feature]
        if not repository.current_branch():
            detail = (
                f"HEAD is detached, so a commit could get lost; "
                f"run `git switch {feature.branch}` first"
            )
            raise Refused(Reason.WRONG_STATE, detail)
        if repository.current_branch() == state.work.base_branch != feature.branch:
            detail = (
                f"{id} belongs on branch {feature.branch}, but the base branch is checked out; "
                f"run `git switch {feature.branch}` first"
            )
            raise Refused(Reason.WRONG_STATE, detail)
        events, staged = list[str](), ""

        def write(tree: str) -> bytes:
            nonlocal staged
            staged = checkpoint_commit.files_digest(place, repository, tree)
            ids, lines = workspace.encode_drafts(decide(state.work, staged), state.at)
            events.extend(ids)
            return lines

        workspace.branch_switch.commit_with_events(
            repository, write, f"pact {id}: checkpoint by {caller.id}"
        )
        if checkpoint_commit.files_digest(place, repository, "HEAD") != staged:
            # A git hook changed what was committed; record the commit as it is.
            events += workspace.record_locked(decide)
    return result_of(
        workspace, caller, EventKind.CHECKPOINT, events, *_untracked_notes(workspace, repository)
    )


def _untracked_notes(workspace: Workspace, repository: Repository) -> Iterator[str]:
    """A note on untracked files, which are never committed automatically but may be the work."""
    if paths := [
        path
        for path in repository.untracked_paths()
        if not checkpoint_commit.is_ledger_path(workspace.location, path)
    ]:
        more = f" and {len(paths) - MAX_PATHS_NAMED} more" if len(paths) > MAX_PATHS_NAMED else ""
        names = f"{', '.join(paths[:MAX_PATHS_NAMED])}{more}"
        yield f"not committed, because untracked: {names}; use `git add` to include them"


def accept(workspace: Workspace, caller: ActingSeat, id: str, commit: str = "") -> VerbResult:
    """Accept a task: the commit that was shown, or the one that `commit` names."""
    covered = ""

    def decide(work: Work) -> list[EventDraft]:
        nonlocal covered
        verbs.accept(work, caller, id)
        covered = checkpoint_commit.commit_to_accept(workspace.location, work, id, commit)
        return verbs.accept(work, caller, id, covered)

    events = workspace.write(decide)
    return msgspec.structs.replace(
        result_of(workspace, caller, EventKind.ACCEPT, events), commit=covered
    )


def changes(workspace: Workspace, caller: ActingSeat, id: str, reason: str) -> VerbResult:
    """Request changes to a task."""
    events = workspace.write(lambda work: verbs.changes(work, caller, id, reason))
    return result_of(workspace, caller, EventKind.CHANGES, events)


def merge(
    workspace: Workspace, caller: ActingSeat, id: str, *, git: bool, strict: bool = False
) -> VerbResult:
    """Ship a feature: Rule 2, then git's merge with the event (UNI-21).

    `strict` requires signatures.
    """

    def decide(work: Work) -> list[EventDraft]:
        return verbs.merge(work, caller, id)

    with _base_lock(workspace), workspace.ledger.locked():
        workspace.branch_switch.recover()
        state = workspace.load_for_decision()
        decide_on_log(state, decide)
        data, _ = workspace.ledger.read()
        feature_merge.check_no_conflicting_ids(data)
        if strict:
            feature_merge.check_proven(workspace.unproven_findings(state.work, data))
        feature, repository = state.work.features[id], workspace.location.repository
        events, notes = list[str](), list[str]()

        def write() -> bytes:
            merged = workspace.load_for_decision()
            ids, lines = workspace.encode_drafts(decide_on_log(merged, decide), merged.at)
            events.extend(ids)
            return lines

        if repository and git:
            notes += feature_merge.merge_feature(workspace, repository, state.work, feature, write)
        merge_commit = repository.resolve("HEAD") if repository and events else None
        if not events:
            events = workspace.record_locked(decide)
        done = result_of(workspace, caller, EventKind.MERGE, events, *notes)
        return msgspec.structs.replace(done, commit=merge_commit or "")


@contextmanager
def _base_lock(workspace: Workspace) -> Iterator[None]:
    if not workspace.location.repository:
        yield
        return
    with file_lock(workspace.location.base_lock_path, BASE_LOCK_TIMEOUT_S, workspace.ports.sleep):
        yield
