"""Which commit a checkpoint shows, and so which one its acceptance covers.

A checkpoint without a commit of its own names the one that its branch stood at. One that is part of
its commit cannot name it; it names the one before and a digest of the files, by which the commit
is known again. Files of the ledger are not counted: every event changes them.
"""

from hashlib import sha256

from accord.core.kernel.refusal import Refused, Why
from accord.core.work.state import Task, Work
from accord.core.work.words import is_branch
from accord.git.repository import Repository
from accord.pact.place import Place

BRANCH = "refs/heads/"
MOST_COMMITS = 1000
MOST_LOOKED = 100
MOST_NAMED = 3


def head(place: Place, work: Work, id: str, *, here: bool) -> str:
    """Where the task's branch stands, or what is checked out `here`; empty without git."""
    task = work.tasks.get(id)
    if not place.repository or not task or not (branch := branch_of(work, task)):
        return ""
    return place.repository.resolve("HEAD" if here else f"{BRANCH}{branch}") or ""


def branch_of(work: Work, task: Task) -> str:
    """The branch of a task's feature; empty for a name that git would not take."""
    branch = work.features[task.feature].branch
    return branch if is_branch(branch) else ""


def files(place: Place, repository: Repository, tree: str) -> str:
    """A digest of all files in a commit or a tree but those of the ledger."""
    made = sha256()
    for row in repository.raw("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0"):
        path = row.partition(b"\t")[2].decode("utf-8", "surrogateescape")
        if row and not is_ledger(place, path):
            made.update(row + b"\0")
    return made.hexdigest()


def is_ledger(place: Place, path: str) -> bool:
    """Whether a file is of the pact's records; what somebody may run is work like any other."""
    ours = f"{place.name(place.directory)}/"
    return path.startswith(ours) and not path.startswith(f"{ours}bin/")


def after(place: Place, repository: Repository, tip: str, seen: list[str]) -> list[str]:
    """The commits of `tip` that are in none of `seen` and change more than the ledger."""
    limits = (f"--max-count={MOST_COMMITS}", tip, *(f"^{each}" for each in seen))
    found = repository.ask("rev-list", *limits, "--").split()
    looked = [sha for sha in found[:MOST_LOOKED] if not _kept(place, repository.files(sha))]
    return [*looked, *found[MOST_LOOKED:]]


def _kept(place: Place, paths: tuple[str, ...]) -> bool:
    return all(is_ledger(place, path) for path in paths)


def some(commits: list[str]) -> str:
    """A few of them, for people."""
    more = f" and {len(commits) - MOST_NAMED} more" if len(commits) > MOST_NAMED else ""
    return ", ".join(sha[:10] for sha in commits[:MOST_NAMED]) + more


def covered(place: Place, work: Work, id: str, wanted: str = "") -> str:
    """The commit that an acceptance covers: what was shown, if the branch is still at that.

    `wanted` is what the reviewer looked at; without it, that is the branch as it is.
    """
    task, repository = work.tasks[id], place.repository
    branch = branch_of(work, task)
    tip = repository.resolve(f"{BRANCH}{branch}") if repository and branch else None
    if repository is None or tip is None:
        if wanted:
            detail = f"There is no branch {branch} here, so nothing on it can be accepted by name"
            raise Refused(Why.WRONG_STATE, detail)
        return task.commit if repository else ""
    looked = _named(repository, branch, tip, wanted) if wanted else tip
    if not task.commit:  # shown by a tool that names none; then only the reviewer can
        return looked if wanted else ""
    seen = _seen(place, repository, task, tip)
    if not seen:
        detail = (
            f"What {task.owner} showed of {id} is not on {branch}: it was amended or rebased since,"
            f" or never came there. `accord pact checkpoint {id}` by {task.owner} shows it as it is"
        )
        raise Refused(Why.WRONG_STATE, detail)
    _same(place, work, task, looked, seen)
    return looked if wanted else seen


def _named(repository: Repository, branch: str, tip: str, wanted: str) -> str:
    """The commit of that name, on the branch."""
    found = repository.resolve(wanted)
    if found is None:
        raise Refused(Why.UNKNOWN, f"There is no commit {wanted!r} here")
    if not repository.contains(tip, found):
        raise Refused(Why.WRONG_STATE, f"{found[:10]} is no commit of {branch}")
    return found


def _seen(place: Place, repository: Repository, task: Task, tip: str) -> str:
    """What the last checkpoint showed, as it is on the branch; empty where it is there no more."""
    if not repository.contains(tip, task.commit):
        return ""
    if not task.files or files(place, repository, task.commit) == task.files:
        return task.commit
    span = (f"--max-count={MOST_COMMITS}", tip, f"^{task.commit}")
    listed = repository.ask("rev-list", "--parents", *span, "--")
    rows = [line.split() for line in listed.splitlines()]
    next_ones = [row[0] for row in rows if row[1:2] == [task.commit]]
    mine = [sha for sha in next_ones if files(place, repository, sha) == task.files]
    return mine[0] if len(mine) == 1 else ""


def _same(place: Place, work: Work, task: Task, looked: str, seen: str) -> None:
    """Refuse unless the one is the other, the ledger aside."""
    repository, branch, id = place.repository, branch_of(work, task), task.id
    assert repository is not None  # noqa: S101 - there is a branch
    if not repository.contains(looked, seen):
        detail = f"{task.owner} showed {id} at {seen[:10]}, which {looked[:10]} does not hold"
        raise Refused(Why.WRONG_STATE, f"{detail}; look at that, and accept it")
    base = work.base_branch
    known = [f"{BRANCH}{base}"] if base != branch and repository.has_branch(base) else []
    if late := after(place, repository, looked, [seen, *known]):
        detail = (
            f"{some(late)} came after what {task.owner} showed of {id}, which is {seen[:10]}."
            f" `accord pact accept {id} --commit {seen[:10]}` accepts that and no more;"
            f" `accord pact checkpoint {id}` by {task.owner} shows all of it"
        )
        raise Refused(Why.WRONG_STATE, detail)
