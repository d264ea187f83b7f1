"""Which task a commit belongs to, who owned it, and who accepted it.

An acceptance names the reviewed commit and covers that commit's history as far as it was not yet on
the base branch. For a task done on the base branch itself, it covers that one commit only.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from accord.core.work.format import log_lines
from accord.core.work.signatures import is_signed_by_reviewer
from accord.core.work.state import Task, Work
from accord.core.work.vocabulary import EventKind, TaskStatus, is_branch_name
from accord.git.ancestry import Ancestry
from accord.git.repository import Repository, is_object_id
from accord.pact.workspace import Workspace

MAX_TASKS = 2000
BRANCH_PREFIX = "refs/heads/"


class Acceptance(NamedTuple):
    """An accepted task; `signed` means that the reviewer's key in the roster verifies it."""

    task: str
    feature: str
    owner: str
    by: str
    at: str
    commit: str
    evidence: str
    signed: bool


def acceptances_of(
    workspace: Workspace, repository: Repository, shas: list[str]
) -> dict[str, list[Acceptance]]:
    """The acceptances that cover each of these commits, according to the local log."""
    work = workspace.load_checked().work
    done = {task.id: task for task in _accepted_tasks(work)}
    if not done or not shas:
        return {}
    tasks_by_sha = dict(_tasks_covering(repository, work, done.values(), shas))
    wanted = {task for tasks in tasks_by_sha.values() for task in tasks}
    acceptances = (
        _read_acceptances(workspace, work, {id: done[id] for id in wanted}) if wanted else {}
    )
    return {
        sha: [acceptances[id] for id in tasks if id in acceptances]
        for sha, tasks in tasks_by_sha.items()
    }


def _accepted_tasks(work: Work) -> list[Task]:
    """The latest accepted tasks that name a commit."""
    tasks = work.tasks.values()
    accepted = [
        task for task in tasks if task.status is TaskStatus.ACCEPTED and is_object_id(task.commit)
    ]
    return accepted[-MAX_TASKS:]


def _tasks_covering(
    repository: Repository, work: Work, tasks: Iterable[Task], shas: list[str]
) -> Iterator[tuple[str, list[str]]]:
    tasks_at: dict[str, list[str]] = {}
    for task in tasks:
        tasks_at.setdefault(task.commit, []).append(task.id)
    name = work.base_branch
    base = repository.resolve(f"{BRANCH_PREFIX}{name}") if is_branch_name(name) else None
    lineage = Ancestry.read(repository, filter(None, [*tasks_at, base]), shas)
    for sha in shas:
        covering = _covering_commits(lineage, base, sha) if base else {sha}
        if covered := [id for commit, ids in tasks_at.items() if commit in covering for id in ids]:
            yield sha, covered


def _covering_commits(lineage: Ancestry, base: str, sha: str) -> set[str]:
    """Commits whose acceptance covers `sha`: they contain it, and not through the base branch."""
    holding = lineage.descendants_of(sha)
    first = lineage.first_on_branch(base, holding)
    if not first:
        return holding
    return {sha} if first == sha else holding - lineage.descendants_of(first)


def _read_acceptances(
    workspace: Workspace, work: Work, tasks: Mapping[str, Task]
) -> dict[str, Acceptance]:
    """The acceptance event of each task, from the log."""
    acceptances: dict[str, Acceptance] = {}
    data, _ = workspace.ledger.read()
    lines = (raw for raw in data.splitlines() if b"accept" in raw)
    for _, event in log_lines.parse_objects(b"".join(raw + b"\n" for raw in lines)):
        task = tasks.get(str(event.get("task_id")))
        if task and _is_acceptance_of(event, task):
            acceptances[task.id] = _acceptance(event, task, work)
    return acceptances


def _is_acceptance_of(event: Mapping[str, Any], task: Task) -> bool:
    payload = event.get("payload")
    by_reviewer = event.get("agent_id") == task.reviewer
    is_accept = event.get("event_type") == EventKind.ACCEPT
    return (
        is_accept
        and by_reviewer
        and isinstance(payload, dict)
        and payload.get("commit") == task.commit
    )


def _acceptance(event: Mapping[str, Any], task: Task, work: Work) -> Acceptance:
    from accord.pact.seat_keys import verify_signature

    return Acceptance(
        task=task.id,
        feature=task.feature,
        owner=task.owner,
        by=task.reviewer,
        at=f"{log_lines.parse_instant(str(event.get('ts')))}Z",
        commit=task.commit,
        evidence=task.evidence,
        signed=is_signed_by_reviewer(event, work, verify_signature),
    )
