"""Find events that the local ledger lacks on other branches, local or remote."""

from shlex import quote
from typing import NamedTuple

from accord.core.work.format import log_lines
from accord.git.repository import Repository
from accord.pact.location import PactLocation

BRANCH_PREFIX, REMOTE_PREFIX = "refs/heads/", "refs/remotes/"
# Only the branches with the most recent commits are searched.
MAX_BRANCHES = 20


class NewerLedger(NamedTuple):
    """A branch whose ledger has events that are missing here, and how many."""

    branch: str
    events: int
    is_remote: bool


def find_newer_ledger(place: PactLocation, data: bytes, about: str) -> NewerLedger | None:
    """The branch with the most events about a task or feature that are missing in `data`."""
    repository = place.repository
    if not repository:
        return None
    refs = _recent_refs(repository)
    name = place.relative_path(place.log_path)
    objects = repository.read_objects(f"{ref}:{name}" for ref in refs)
    candidates = (
        NewerLedger(
            _short_ref(ref),
            _count_missing_events(data, objects[f"{ref}:{name}"].content, about),
            ref.startswith(REMOTE_PREFIX),
        )
        for ref in refs
        if f"{ref}:{name}" in objects
    )
    best = max(candidates, key=lambda candidate: candidate.events, default=None)
    return best if best and best.events else None


def _recent_refs(repository: Repository) -> list[str]:
    words = ("for-each-ref", "--sort=-committerdate", f"--count={MAX_BRANCHES}")
    return repository.run_text(*words, "--format=%(refname)", BRANCH_PREFIX, REMOTE_PREFIX).split()


def _short_ref(ref: str) -> str:
    return ref.removeprefix(BRANCH_PREFIX).removeprefix(REMOTE_PREFIX)


def _count_missing_events(here: bytes, there: bytes, about: str) -> int:
    more = log_lines.parse_log(log_lines.missing_lines(here, there)).entries
    return sum(about in (entry.event.task_id, entry.event.feature) for entry in more)


def commands_to_update(place: PactLocation, newer: NewerLedger) -> str:
    """Shell commands that bring the missing events here, committing the ledger first if needed."""
    repository = place.repository
    here = repository.current_branch() if repository else ""
    folder = f"{place.relative_path(place.directory)}/"
    changed = repository.changed_paths() if repository else []
    own = newer.branch.partition("/")[2] if newer.is_remote else newer.branch
    must_commit = any(path.startswith(folder) for path in changed)
    steps = [f"git commit -qm ledger {quote(folder)}"] if must_commit else []
    steps += [f"git switch {quote(own)}"] if own != here else []
    steps += [f"git merge {quote(newer.branch)}"] if newer.is_remote else []
    return " && ".join(steps)


def remote_branches_of(repository: Repository, branch: str) -> list[str]:
    """The remote-tracking branches of this name, one for each remote that has it."""
    words = ("for-each-ref", "--format=%(refname)", f"{REMOTE_PREFIX}*/{branch}")
    return [_short_ref(ref) for ref in repository.run_text(*words).split()]
