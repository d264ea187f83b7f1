"""Which commit a checkpoint shows, and so which one its acceptance covers."""

from accord.core.work.state import Work
from accord.git.repository import Repository
from accord.pact.place import Place

BRANCH = "refs/heads/"
MOST_COMMITS = 1000


def head(place: Place, work: Work, id: str, *, here: bool) -> str:
    """Where the task's branch stands, or what is checked out `here`; empty without git."""
    branch = _branch(work, id)
    if not place.repository or not branch:
        return ""
    return place.repository.resolve("HEAD" if here else f"{BRANCH}{branch}") or ""


def commit(place: Place, work: Work, id: str) -> str:
    """What the last checkpoint of a task showed, with the commit that it was made in."""
    task, branch = work.tasks.get(id), _branch(work, id)
    if not task or not place.repository:
        return ""
    mine = _own(place, place.repository, branch, task.commit, task.own) if task.own else ""
    return mine or task.commit


def _branch(work: Work, id: str) -> str:
    task = work.tasks.get(id)
    return work.features[task.feature].branch if task else ""


def _own(place: Place, repository: Repository, branch: str, before: str, event: str) -> str:
    """The one commit after `before` that brought this very event; empty where that is unclear."""
    span = (f"{BRANCH}{branch}", f"^{before}")
    listed = repository.maybe("rev-list", "--parents", f"--max-count={MOST_COMMITS}", *span, "--")
    rows = [line.split() for line in (listed or "").splitlines()]
    children = [row[0] for row in rows if row[1:2] == [before]]
    name = place.name(place.log)
    mine = [sha for sha in children if event.encode() in (repository.show(sha, name) or b"")]
    return mine[0] if len(mine) == 1 else ""
