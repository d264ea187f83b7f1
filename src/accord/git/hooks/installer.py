"""Install the hooks into a repository; uninstalling restores the previous files (OPEN-76)."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.ulid import ulid
from accord.git.hooks import marker_files
from accord.git.hooks.dispatch import HOOK_NAMES
from accord.git.hooks.hook_files import HookFile, read_hook, remove_hook, write_hook
from accord.git.process import GitError
from accord.git.records.record_refs import NOTES_REF
from accord.git.repository import Repository, error_from_result

BARE_REPOSITORY_NOTICE = (
    "Hooks never run in a bare repository, because nothing is committed there; "
    "install them in a clone"
)
GIT_ALIASES = {
    "pvp-log": (
        "log --format='%C(yellow)%h%C(reset) %s%n%C(dim)Session: "
        "%(trailers:key=PVP-Session,valueonly,separator=%x2C)%C(reset)%n%C(dim)Decision: "
        "%(trailers:key=Decision-By,valueonly,separator=%x2C)%C(reset)%n'"
    ),
    "pvp-notes": "notes --ref=pvp show",
    "pvp-session": '!f() { accord git log --session "$1"; }; f',
    "pvp-by": '!f() { accord git log --by "$1"; }; f',
}


class Installation(NamedTuple):
    """Result of an installation; `repo` is the repository's id."""

    repo: str
    folder: Path
    hooks: tuple[HookFile, ...]
    is_shared: bool


def hooks_directory(repo: Repository) -> Path:
    """Where git looks for hooks, respecting `core.hooksPath` and linked work trees."""
    result = repo.run("rev-parse", "--git-path", "hooks", hooks=True)
    if result.code:
        raise error_from_result(result)
    path = os.fsdecode(result.out.removesuffix(b"\n"))
    return (Path(repo.path or "") / Path(path).expanduser()).absolute()


def read_hooks(repo: Repository) -> list[HookFile]:
    """The state of each hook file."""
    directory = hooks_directory(repo)
    tracked = _tracked_names(repo, directory)
    return [read_hook(directory, name, is_tracked=name in tracked) for name in HOOK_NAMES]


def _tracked_names(repo: Repository, directory: Path) -> frozenset[str]:
    """Names of files in the hooks directory that are part of the repository's content."""
    root = repo.root.resolve()
    if repo.is_bare or not directory.resolve().is_relative_to(root):
        return frozenset()
    listed = repo.run("ls-files", "-z", "--", str(directory.resolve()))
    return frozenset(os.fsdecode(path).rpartition("/")[2] for path in listed.out.split(b"\0"))


def ensure_repository_id(repo: Repository) -> str:
    """The repository's id; it gets one if it has none."""
    id = repo.try_text("config", "--local", "accord.repo")
    if not id:
        id = ulid(time.time_ns() // 1_000_000, os.urandom(10))
        repo.run_text("config", "--local", "accord.repo", id)
    return id


def install(repo: Repository, *, aliases: bool = False, rewrite: bool = False) -> Installation:
    """Give the repository an id and install the hooks; idempotent."""
    if repo.is_bare and not any(Path(repo.git_file("worktrees")).glob("*")):
        raise Refused(Reason.WRONG_STATE, BARE_REPOSITORY_NOTICE)
    directory = hooks_directory(repo)
    id = ensure_repository_id(repo)
    directory.mkdir(parents=True, exist_ok=True)
    for hook in read_hooks(repo):
        write_hook(hook)
    installed = tuple(read_hooks(repo))
    marker_files.save_installed(repo, [hook.name for hook in installed if hook.is_ours])
    if aliases:
        for name, value in GIT_ALIASES.items():
            repo.run_text("config", "--local", f"alias.{name}", value)
    if (
        rewrite
        and NOTES_REF
        not in (repo.try_text("config", "--get-all", "notes.rewriteRef") or "").split()
    ):
        repo.run_text("config", "--local", "--add", "notes.rewriteRef", NOTES_REF)
    _write_commit_graph(repo)
    return Installation(id, directory, installed, is_shared_directory(repo, directory))


def is_shared_directory(repo: Repository, directory: Path) -> bool:
    """Whether the hooks directory is outside this repository, hence shared with others."""
    inside = [repo.common_git_directory, *([] if repo.is_bare else [repo.root])]
    return not any(directory.resolve().is_relative_to(each.resolve()) for each in inside)


def uninstall(repo: Repository) -> list[HookFile]:
    """Remove our hooks and restore the previous ones; records are kept."""
    # A hook manager that was installed after us may have moved the directory.
    folders = {hooks_directory(repo), repo.common_git_directory.absolute() / "hooks"}
    found = [read_hook(folder, name) for folder in sorted(folders) for name in HOOK_NAMES]
    installed = [hook for hook in found if hook.is_ours]
    for hook in installed:
        remove_hook(hook)
    marker_files.save_installed(repo, [])
    for name, value in GIT_ALIASES.items():
        if repo.try_text("config", "--local", f"alias.{name}") == value:
            repo.run_text("config", "--local", "--unset-all", f"alias.{name}")
    return installed


def _write_commit_graph(repo: Repository) -> None:
    """Write git's index of changed paths, which makes `accord why` ten times as fast."""
    with suppress(GitError):  # only an optimisation
        repo.run("commit-graph", "write", "--reachable", "--changed-paths", timeout_s=60.0)
