"""`pre-push`: records follow what is pushed, and a word on what is not covered (OPEN-58)."""

import sys
from collections.abc import Iterator, Mapping

from .ledger import DECISIONS
from .process import GitError
from .repository import Commit, Repository

MOST_COMMITS = 500
MOST_TIPS = 20
SETTINGS = r"^(accord\.|init\.defaultbranch$)"


def check(repo: Repository, remote: str, lines: str) -> int:
    """1 only where the repository is set to refuse; else at most a warning."""
    moves = [(tip, old) for tip, old in _moves(lines) if tip]
    if not moves:
        return 0
    settings = repo.settings(SETTINGS)
    least = _number(settings.get("accord.mincoverage", ""))
    recorded = bool(repo.refs(DECISIONS))
    if not recorded and not least:
        return 0
    commits = repo.commits(*_range(repo, remote, moves), most=MOST_COMMITS)
    if recorded:
        _heal(repo, settings, commits, [tip for tip, _ in moves])
    return _measured(commits, settings, least)


def _measured(commits: list[Commit], settings: Mapping[str, str], least: float) -> int:
    from . import coverage

    found = coverage.of(commits)
    if found.percent >= least:
        return 0
    said = f"{found.covered} of {found.commits} commits say how they were decided"
    print(f"accord: {said}; this repository wants {least:g} %", file=sys.stderr)  # noqa: T201
    strict = settings.get("accord.enforcemetadata") == "true"
    return 1 if strict and settings.get("accord.warnonly", "true") == "false" else 0


def _heal(
    repo: Repository, settings: Mapping[str, str], commits: list[Commit], tips: list[str]
) -> None:
    from . import healing

    try:
        healing.mend(repo, commits)
        trunk = next(iter(repo.refs(*healing.trunk_names(settings)).values()), None)
        for tip in tips[:MOST_TIPS]:
            healing.remember_branch(repo, tip, trunk)
    except GitError:  # a push is not held up by records
        pass


def _moves(lines: str) -> Iterator[tuple[str, str]]:
    """What shall be where, and what is there now; empty for nothing."""
    for line in lines.splitlines():
        match line.split():
            case [_, tip, _, old]:
                yield tip.strip("0") and tip, old.strip("0") and old
            case _:
                pass


def _range(repo: Repository, remote: str, moves: list[tuple[str, str]]) -> Iterator[str]:
    """What the remote does not have; a new branch leaves out what is on a remote already."""
    there = repo.objects(f"{old}^{{commit}}" for _, old in moves if old)
    yield from (tip for tip, _ in moves)
    yield from (f"^{each.sha}" for each in there.values())
    yield from ("--not", f"--remotes={remote}", "--not")


def _number(text: str) -> float:
    try:
        return min(100.0, max(0.0, float(text)))
    except ValueError:
        return 0.0
