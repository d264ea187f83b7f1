"""Resolve names given by users to commits, ranges and remotes, or refuse with an explanation."""

from accord.core.kernel.refusal import Reason, Refused
from accord.git.process import GitError
from accord.git.records.decisions_ref import escape_invalid_utf8
from accord.git.repository import Repository, error_from_result

HEAD = "HEAD"
NO_REPOSITORY_NOTICE = "This directory is not in a git repository; run `git init` to create one"
NO_COMMIT_NOTICE = "This repository has no commits yet"


def require_repository(repo: Repository) -> Repository:
    """Check that the repository exists and that git trusts its owner; refuse otherwise."""
    done = repo.run("rev-parse", "--git-dir")
    if done.code and "not a git repository" in done.err:
        raise Refused(Reason.NOT_FOUND, NO_REPOSITORY_NOTICE)
    if done.code:
        raise error_from_result(done)
    return repo


def has_no_commits(repo: Repository) -> bool:
    """Whether the checked-out branch has no commits."""
    return repo.resolve(HEAD) is None


def resolve_commit(repo: Repository, name: str) -> str:
    """The full id of a commit; refused if the name does not resolve to one."""
    if sha := repo.resolve(name):
        return sha
    detail = (
        NO_COMMIT_NOTICE
        if name == HEAD
        else f"{escape_invalid_utf8(name)} is not a commit in this repository"
    )
    raise Refused(Reason.NOT_FOUND, detail)


def resolve_range(repo: Repository, which: str) -> list[str]:
    """Arguments for `git log` that select a range; empty before the first commit."""
    if which == HEAD and has_no_commits(repo):
        return []
    words = ["--end-of-options", which]
    if not repo.succeeds("rev-list", "--max-count=1", *words, "--"):
        detail = (
            f"{escape_invalid_utf8(which)} does not name commits in this repository; write a range "
            "as OLD..NEW, and see `git branch --all` for branch names"
        )
        raise Refused(Reason.NOT_FOUND, detail)
    return words


def resolve_remote(repo: Repository, name: str) -> str:
    """Check a remote's name; a URL or path is returned as it is."""
    is_address = any(character in name for character in "/:.")
    if not is_address and name not in repo.run_text("remote").split("\n"):
        detail = (
            f"This repository has no remote {escape_invalid_utf8(name)}; "
            "`git remote` lists its remotes"
        )
        raise Refused(Reason.NOT_FOUND, detail)
    return name


def refusal_from_git(error: GitError) -> Refused:
    """A refusal with the first line of git's error message."""
    summary = str(error).removeprefix("fatal: ").partition("\n")[0]
    return Refused(Reason.WRONG_STATE, f"git: {escape_invalid_utf8(summary)}")
