"""What people call things here, or a sentence on why that is nothing."""

from accord.core.kernel.refusal import Refused, Why

from .decisions import shown
from .process import GitError
from .repository import Repository, refusal

HEAD = "HEAD"
NOWHERE = "There is no git repository here; `git init` makes one"
NOTHING_YET = "There is no commit here yet"


def repository(repo: Repository) -> Repository:
    """The repository; refused where there is none, or git does not trust whose it is."""
    done = repo.run("rev-parse", "--git-dir")
    if done.code and "not a git repository" in done.err:
        raise Refused(Why.UNKNOWN, NOWHERE)
    if done.code:
        raise refusal(done)
    return repo


def is_empty(repo: Repository) -> bool:
    """Whether nothing was committed on the branch that is checked out."""
    return repo.resolve(HEAD) is None


def commit(repo: Repository, name: str) -> str:
    """The full id of a commit."""
    if found := repo.resolve(name):
        return found
    detail = NOTHING_YET if name == HEAD else f"{shown(name)} is no commit here"
    raise Refused(Why.UNKNOWN, detail)


def commits(repo: Repository, which: str) -> list[str]:
    """A range, as `git log` takes it; none before the first commit."""
    if which == HEAD and is_empty(repo):
        return []
    words = ["--end-of-options", which]
    if not repo.says("rev-list", "--max-count=1", *words, "--"):
        detail = (
            f"{shown(which)} names no commits here; a range is OLD..NEW, and `git branch --all` "
            "lists names for both"
        )
        raise Refused(Why.UNKNOWN, detail)
    return words


def remote(repo: Repository, name: str) -> str:
    """A remote by its name, or an address."""
    is_address = any(mark in name for mark in "/:.")
    if not is_address and name not in repo.ask("remote").split("\n"):
        detail = f"There is no remote {shown(name)} here; `git remote` lists those there are"
        raise Refused(Why.UNKNOWN, detail)
    return name


def spoken(no: GitError) -> Refused:
    """What git itself complains about, in one line."""
    said = str(no).removeprefix("fatal: ").partition("\n")[0]
    return Refused(Why.WRONG_STATE, f"git: {shown(said)}")
