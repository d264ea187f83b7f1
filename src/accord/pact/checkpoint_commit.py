"""Which commit a checkpoint shows, and hence which commit its acceptance covers.

A plain checkpoint names the tip of its branch. A checkpoint that is part of its own commit cannot
contain that commit's id, so it names the parent commit and a digest of the files, by which the
commit is identified later. The digest leaves out the ledger's files, which every event changes.
"""

from hashlib import sha256

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.state import Task, Work
from accord.core.work.vocabulary import is_branch_name
from accord.git.repository import Repository
from accord.pact.location import PactLocation

BRANCH_PREFIX = "refs/heads/"
MAX_COMMITS = 1000
MAX_COMMITS_READ = 100
MAX_COMMITS_NAMED = 3


def commit_to_show(place: PactLocation, work: Work, id: str, *, here: bool) -> str:
    """The tip of the task's branch, or HEAD with `here`; empty without git."""
    task = work.tasks.get(id)
    if not place.repository or not task or not (branch := branch_of(work, task)):
        return ""
    return place.repository.resolve("HEAD" if here else f"{BRANCH_PREFIX}{branch}") or ""


def branch_of(work: Work, task: Task) -> str:
    """The branch of a task's feature; empty if git would not accept the name."""
    branch = work.features[task.feature].branch
    return branch if is_branch_name(branch) else ""


def files_digest(place: PactLocation, repository: Repository, tree: str) -> str:
    """A digest of all files in a commit or tree except the ledger's."""
    digest = sha256()
    for row in repository.run_bytes("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0"):
        path = row.partition(b"\t")[2].decode("utf-8", "surrogateescape")
        if row and not is_ledger_path(place, path):
            digest.update(row + b"\0")
    return digest.hexdigest()


def is_ledger_path(place: PactLocation, path: str) -> bool:
    """Whether a file belongs to the pact's records; scripts under `bin/` count as work."""
    ours = f"{place.relative_path(place.directory)}/"
    return path.startswith(ours) and not path.startswith(f"{ours}bin/")


def commits_after(
    place: PactLocation, repository: Repository, tip: str, seen: list[str]
) -> list[str]:
    """Commits in `tip` but not in any of `seen` that change more than the ledger."""
    limits = (f"--max-count={MAX_COMMITS}", tip, *(f"^{sha}" for sha in seen))
    commits = repository.run_text("rev-list", *limits, "--").split()
    relevant = [
        sha
        for sha in commits[:MAX_COMMITS_READ]
        if not _are_ledger_paths(place, repository.files_changed_by(sha))
    ]
    return [*relevant, *commits[MAX_COMMITS_READ:]]


def _are_ledger_paths(place: PactLocation, paths: tuple[str, ...]) -> bool:
    return all(is_ledger_path(place, path) for path in paths)


def format_commits(commits: list[str]) -> str:
    """The first few commits, abbreviated for messages."""
    more = (
        f" and {len(commits) - MAX_COMMITS_NAMED} more" if len(commits) > MAX_COMMITS_NAMED else ""
    )
    return ", ".join(sha[:10] for sha in commits[:MAX_COMMITS_NAMED]) + more


def commit_to_accept(place: PactLocation, work: Work, id: str, wanted: str = "") -> str:
    """The commit that an acceptance covers; refused if the branch has changed since it was shown.

    `wanted` is the commit that the reviewer looked at; by default the tip of the branch.
    """
    task, repository = work.tasks[id], place.repository
    branch = branch_of(work, task)
    tip = repository.resolve(f"{BRANCH_PREFIX}{branch}") if repository and branch else None
    if repository is None or tip is None:
        if wanted:
            detail = f"There is no branch {branch} here, so --commit cannot name a commit on it"
            raise Refused(Reason.WRONG_STATE, detail)
        return task.commit if repository else ""
    reviewed = _resolve_on_branch(repository, branch, tip, wanted) if wanted else tip
    if not task.commit:  # written by a tool that names no commits; only the reviewer can
        return reviewed if wanted else ""
    shown = _find_shown_commit(place, repository, task, tip)
    if not shown:
        detail = (
            f"The commit that {task.owner} showed for {id} is not on {branch}: it was amended or"
            f" rebased, or was never there. {task.owner} has to run"
            f" `accord pact checkpoint {id}` again"
        )
        raise Refused(Reason.WRONG_STATE, detail)
    _check_same_work(place, work, task, reviewed, shown)
    return reviewed if wanted else shown


def _resolve_on_branch(repository: Repository, branch: str, tip: str, wanted: str) -> str:
    """The commit of that name; refused if it is not on the branch."""
    sha = repository.resolve(wanted)
    if sha is None:
        raise Refused(Reason.NOT_FOUND, f"{wanted!r} is not a commit in this repository")
    if not repository.contains(tip, sha):
        raise Refused(Reason.WRONG_STATE, f"Commit {sha[:10]} is not on branch {branch}")
    return sha


def _find_shown_commit(place: PactLocation, repository: Repository, task: Task, tip: str) -> str:
    """The commit of the last checkpoint on the branch; empty if it is no longer there."""
    if not repository.contains(tip, task.commit):
        return ""
    if not task.files or files_digest(place, repository, task.commit) == task.files:
        return task.commit
    revisions = (f"--max-count={MAX_COMMITS}", tip, f"^{task.commit}")
    listed = repository.run_text("rev-list", "--parents", *revisions, "--")
    rows = [line.split() for line in listed.splitlines()]
    children = [row[0] for row in rows if row[1:2] == [task.commit]]
    matching = [sha for sha in children if files_digest(place, repository, sha) == task.files]
    return matching[0] if len(matching) == 1 else ""


def _check_same_work(
    place: PactLocation, work: Work, task: Task, reviewed: str, shown: str
) -> None:
    """Refuse unless both commits have the same files, apart from the ledger."""
    repository, branch, id = place.repository, branch_of(work, task), task.id
    assert repository is not None  # noqa: S101 - there is a branch
    if not repository.contains(reviewed, shown):
        detail = (
            f"{task.owner} showed {id} at {shown[:10]}, which {reviewed[:10]} does not contain; "
            f"review {shown[:10]} and accept that"
        )
        raise Refused(Reason.WRONG_STATE, detail)
    base = work.base_branch
    known = [f"{BRANCH_PREFIX}{base}"] if base != branch and repository.has_branch(base) else []
    if later := commits_after(place, repository, reviewed, [shown, *known]):
        detail = (
            f"{format_commits(later)} came after the commit that {task.owner} showed for {id}, "
            f"{shown[:10]}. `accord pact accept {id} --commit {shown[:10]}` accepts only that; to "
            f"include the rest, {task.owner} has to run `accord pact checkpoint {id}` again"
        )
        raise Refused(Reason.WRONG_STATE, detail)
