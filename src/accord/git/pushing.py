"""`pre-push`: records follow what is pushed, and a word on what is not covered (OPEN-58)."""

import sys
from collections.abc import Iterator

from . import coverage, decisions, healing
from .history import History
from .repository import GitError

MOST_COMMITS = 500
SETTINGS = r"^accord\.(enforcemetadata|mincoverage|warnonly)$"


def check(repo: History, remote: str, lines: str) -> int:
    """1 only where the repository is set to refuse; else at most a warning."""
    which = list(_ranges(repo, remote, lines))
    if not which:
        return 0
    settings = repo.settings(SETTINGS)
    least = _number(settings.get("accord.mincoverage", ""))
    if not decisions.there(repo) and not least:
        return 0
    _heal(repo, which)
    found = coverage.measure(repo, which, MOST_COMMITS)
    if found.percent >= least:
        return 0
    said = f"{found.covered} of {found.commits} commits say how they were decided"
    print(f"accord: {said}; this repository wants {least:g} %", file=sys.stderr)  # noqa: T201
    strict = settings.get("accord.enforcemetadata") == "true"
    return 1 if strict and settings.get("accord.warnonly", "true") == "false" else 0


def _heal(repo: History, which: list[str]) -> None:
    try:
        healing.heal(repo, which, MOST_COMMITS)
        healing.remember_branch(repo)
    except GitError:  # a push is not held up by records
        pass


def _ranges(repo: History, remote: str, lines: str) -> Iterator[str]:
    """What the remote does not have; a new branch leaves out what is on a remote already."""
    tips: list[str] = []
    bounds: list[str] = []
    for line in lines.splitlines():
        match line.split():
            case [_, tip, _, old] if set(tip) != {"0"}:
                tips.append(tip)
                if set(old) != {"0"} and repo.resolve(old):
                    bounds.append(f"^{old}")
            case _:
                pass
    if tips:
        yield from (*tips, *bounds, "--not", f"--remotes={remote}", "--not")


def _number(text: str) -> float:
    try:
        return min(100.0, max(0.0, float(text)))
    except ValueError:
        return 0.0
