"""Hooks into a repository and out again, to the byte (OPEN-76)."""

import os
import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.ulid import ulid

from .hook import HOOKS
from .ledger import NOTES
from .process import GitError
from .repository import Repository, refusal

MARK = "# Accord writes down why; `accord git uninstall` takes this file away again."
BEFORE = ".before-accord"
WITH_INPUT = frozenset({"post-rewrite", "pre-push"})
# Standard input is for both.
TAKES = ["given=$(cat)", 'give() { [ -z "$given" ] || printf "%s\\n" "$given"; }']
GIVES = "give | "
# Most messages do not speak of a session, and to see that takes no Python.
SPEAKS = 'LC_ALL=C grep -qi -e pvp -- "$1"; [ $? -ne 1 ] || return 0'
REFUSED = 65
BARE = "Nobody commits in a bare repository, so hooks would never run; install them in a clone"
ALIASES = {
    "pvp-log": (
        "log --format='%C(yellow)%h%C(reset) %s%n%C(dim)Session: "
        "%(trailers:key=PVP-Session,valueonly,separator=%x2C)%C(reset)%n%C(dim)Decision: "
        "%(trailers:key=Decision-By,valueonly,separator=%x2C)%C(reset)%n'"
    ),
    "pvp-notes": "notes --ref=pvp show",
    "pvp-session": '!f() { accord git log --session "$1"; }; f',
    "pvp-by": '!f() { accord git log --by "$1"; }; f',
}
# The package's place is given, so that neither PYTHONPATH nor the repository decides what runs;
# a Python or an Accord that is gone lets every commit pass. What runs for so short a time needs
# nobody to look for garbage: that would take a fifth of it. An older Accord cannot `leave`.
START = (
    "import gc, sys; gc.disable(); sys.path.insert(0, sys.argv.pop(1))\n"
    "try:\n from accord.git import hook\n"
    "except ImportError: sys.exit(0)\n"
    f"code = {REFUSED} if hook.main(sys.argv[1:]) else 0\n"
    "getattr(hook, 'leave', sys.exit)(code)"
)


class Hook(NamedTuple):
    """A hook as it lies there: `ours`, with or without one before it; else somebody's, or none."""

    name: str
    path: Path
    ours: bool
    current: bool
    chained: bool
    foreign: bool


class Installed(NamedTuple):
    """What was done."""

    repo: str
    folder: Path
    hooks: tuple[Hook, ...]
    shared: bool


def folder(repo: Repository) -> Path:
    """Where git looks for hooks: `core.hooksPath`, or the repository's own, also in a worktree."""
    done = repo.run("rev-parse", "--git-path", "hooks", hooks=True)
    if done.code:
        raise refusal(done)
    found = os.fsdecode(done.out.removesuffix(b"\n"))
    return (Path(repo.path or "") / Path(found).expanduser()).absolute()


def program(name: str) -> str:
    """The text of a hook: whatever was there first runs first, then Accord."""
    place = Path(__file__).resolve().parents[2]
    python, source, start = (shlex.quote(each) for each in (sys.executable, str(place), START))
    ours = f'{python} -I -S -c {start} {source} {name} "$@"'
    first = [SPEAKS] if name == "commit-msg" else []
    takes, gives = (TAKES, GIVES) if name in WITH_INPUT else ([], "")
    # After the fact nothing is refused: what went wrong before us keeps no record from being made.
    after = name.startswith("post-")
    fails, ends = ("code=$?", "exit ${code:-0}") if after else ("exit $?", f"[ $? -ne {REFUSED} ]")
    return "\n".join(
        [
            "#!/bin/sh",
            MARK,
            f'before="$0{BEFORE}"',
            "accord() {",
            *(f"  {each}" for each in first),
            f"  [ ! -x {python} ] || {ours}",
            "}",
            'if [ -x "$before" ]; then',
            *(f"  {each}" for each in takes),
            f'  {gives}"$before" "$@" || {fails}',
            f'  {gives}accord "$@"',
            "else",
            '  accord "$@"',
            "fi",
            ends,
            "",
        ]
    )


def look(repo: Repository) -> list[Hook]:
    """Each of our hooks as it lies there."""
    place = folder(repo)
    return [_look(place, name) for name in HOOKS]


def _look(place: Path, name: str) -> Hook:
    path = place / name
    there = path.is_file() or path.is_symlink()
    text = _text(path)
    ours = MARK in text
    chained = path.with_name(name + BEFORE).exists()
    return Hook(name, path, ours, text == program(name), chained, there and not ours)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def install(repo: Repository, *, aliases: bool = False, rewrite: bool = False) -> Installed:
    """Give the repository an id and its hooks; doing it again changes nothing."""
    if repo.bare and not any(Path(repo.file("worktrees")).glob("*")):
        raise Refused(Why.WRONG_STATE, BARE)
    place = folder(repo)
    id = repo.maybe("config", "--local", "accord.repo")
    if not id:
        id = ulid(time.time_ns() // 1_000_000, os.urandom(10))
        repo.ask("config", "--local", "accord.repo", id)
    place.mkdir(parents=True, exist_ok=True)
    for hook in look(repo):
        _put(hook)
    if aliases:
        for name, value in ALIASES.items():
            repo.ask("config", "--local", f"alias.{name}", value)
    if (
        rewrite
        and NOTES not in (repo.maybe("config", "--get-all", "notes.rewriteRef") or "").split()
    ):
        repo.ask("config", "--local", "--add", "notes.rewriteRef", NOTES)
    _graph(repo)
    return Installed(id, place, tuple(look(repo)), is_shared(repo, place))


def is_shared(repo: Repository, place: Path) -> bool:
    """Whether other repositories, or everybody who clones this one, use the same folder."""
    return not place.resolve().is_relative_to(repo.common.resolve())


def _put(hook: Hook) -> None:
    if hook.current:
        return
    if hook.foreign:
        before = hook.path.with_name(hook.name + BEFORE)
        if before.exists():
            detail = f"{hook.path} is not Accord's, but {before.name} is there too; remove one"
            raise Refused(Why.WRONG_STATE, detail)
        hook.path.rename(before)
    part = hook.path.with_name(f".{hook.name}.{os.getpid()}")
    part.write_text(program(hook.name), "utf-8", newline="\n")
    part.chmod(0o755)
    part.replace(hook.path)


def uninstall(repo: Repository) -> list[Hook]:
    """Take our hooks away and put back what was there; the records stay."""
    found = [hook for hook in look(repo) if hook.ours]
    for hook in found:
        before = hook.path.with_name(hook.name + BEFORE)
        if hook.chained:
            before.replace(hook.path)
        else:
            hook.path.unlink()
    for name, value in ALIASES.items():
        if repo.maybe("config", "--local", f"alias.{name}") == value:
            repo.ask("config", "--local", "--unset-all", f"alias.{name}")
    return found


def _graph(repo: Repository) -> None:
    """Git's own index of which commit touched which path: `accord why` is ten times as quick."""
    with suppress(GitError):  # a help, not a need
        repo.run("commit-graph", "write", "--reachable", "--changed-paths", patience=60.0)
