"""What a pact says of a commit: which task it was, whose, and who accepted it.

An acceptance names the commit that was looked at, and covers what that has and the base branch had
not. Of a task that was done on the base branch itself, it covers that one commit alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from accord.core.dialects import pact
from accord.core.work.signed import seals
from accord.core.work.state import Task, Work
from accord.core.work.words import Kind, Status, is_branch
from accord.git.lineage import Lineage
from accord.git.repository import Repository, is_object
from accord.pact.desk import Desk

MOST_TASKS = 2000
BRANCH = "refs/heads/"


class Acceptance(NamedTuple):
    """A task that was accepted with a commit; `signed` with the key that the roster has."""

    task: str
    feature: str
    owner: str
    by: str
    at: str
    commit: str
    evidence: str
    signed: bool


def of(desk: Desk, repository: Repository, shas: list[str]) -> dict[str, list[Acceptance]]:
    """The tasks that each of these commits was accepted with, as the log has them here."""
    work = desk.view().work
    done = {task.id: task for task in _accepted(work)}
    if not done or not shas:
        return {}
    held = dict(_covering(repository, work, done.values(), shas))
    wanted = {task for tasks in held.values() for task in tasks}
    told = _told(desk, work, {id: done[id] for id in wanted}) if wanted else {}
    return {sha: [told[id] for id in tasks if id in told] for sha, tasks in held.items()}


def _accepted(work: Work) -> list[Task]:
    """The latest ones, each with a commit."""
    tasks = work.tasks.values()
    found = [each for each in tasks if each.status is Status.ACCEPTED and is_object(each.commit)]
    return found[-MOST_TASKS:]


def _covering(
    repository: Repository, work: Work, tasks: Iterable[Task], shas: list[str]
) -> Iterator[tuple[str, list[str]]]:
    at: dict[str, list[str]] = {}
    for task in tasks:
        at.setdefault(task.commit, []).append(task.id)
    name = work.base_branch
    base = repository.resolve(f"{BRANCH}{name}") if is_branch(name) else None
    lineage = Lineage.of(repository, filter(None, [*at, base]), shas)
    for sha in shas:
        covering = _commits(lineage, base, sha) if base else {sha}
        if found := [id for commit, ids in at.items() if commit in covering for id in ids]:
            yield sha, found


def _commits(lineage: Lineage, base: str, sha: str) -> set[str]:
    """Those whose acceptance covers this one: they have it, and not by way of the base branch."""
    holding = lineage.holding(sha)
    first = lineage.brought(base, holding)
    if not first:
        return holding
    return {sha} if first == sha else holding - lineage.holding(first)


def _told(desk: Desk, work: Work, tasks: Mapping[str, Task]) -> dict[str, Acceptance]:
    """The event of each that said so."""
    found: dict[str, Acceptance] = {}
    data, _ = desk.ledger.read()
    lines = (raw for raw in data.splitlines() if b"accept" in raw)
    for _, event in pact.objects(b"".join(raw + b"\n" for raw in lines)):
        task = tasks.get(str(event.get("task_id")))
        if task and _says_so(event, task):
            found[task.id] = _acceptance(event, task, work)
    return found


def _says_so(event: Mapping[str, Any], task: Task) -> bool:
    payload = event.get("payload")
    by_reviewer = event.get("agent_id") == task.reviewer
    is_accept = event.get("event_type") == Kind.ACCEPT
    return (
        is_accept
        and by_reviewer
        and isinstance(payload, dict)
        and payload.get("commit") == task.commit
    )


def _acceptance(event: Mapping[str, Any], task: Task, work: Work) -> Acceptance:
    from accord.pact.seal import verify

    return Acceptance(
        task=task.id,
        feature=task.feature,
        owner=task.owner,
        by=task.reviewer,
        at=f"{pact.instant(str(event.get('ts')))}Z",
        commit=task.commit,
        evidence=task.evidence,
        signed=seals(event, work, verify),
    )
