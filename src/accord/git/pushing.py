"""`pre-push`: records follow what is pushed, and a word on what is not covered (OPEN-58)."""

import sys
from collections.abc import Iterator, Mapping

from . import trunk
from .ledger import DECISIONS
from .process import GitError
from .repository import Commit, Repository

MOST_COMMITS = 500
MOST_TIPS = 20


def check(repo: Repository, remote: str, lines: str) -> int:
    """1 only where the repository is set to refuse; else at most a warning."""
    moves = [(tip, old) for tip, old in _moves(lines) if tip]
    if not moves:
        return 0
    settings = repo.settings(trunk.SETTINGS)
    least = _number(settings.get("accord.mincoverage", ""))
    names = trunk.names(settings)
    olds = {f"{old}^{{commit}}" for _, old in moves if old}
    found = {name: each.sha for name, each in repo.objects([DECISIONS, *names, *olds]).items()}
    recorded = DECISIONS in found
    if not recorded and not least:
        return 0
    tips = [tip for tip, _ in moves]
    there = [found[old] for old in olds if old in found]
    commits = repo.commits(*_unseen(remote), most=MOST_COMMITS, asked=_range(tips, there))
    if recorded:
        base = next((found[name] for name in names if name in found), None)
        _heal(repo, commits, tips, base)
    return _measured(commits, settings, least) if least else 0


def _measured(commits: list[Commit], settings: Mapping[str, str], least: float) -> int:
    from . import coverage

    found = coverage.of(commits)
    if found.percent >= least:
        return 0
    said = f"{found.covered} of {found.commits} commits say how they were decided"
    print(f"accord: {said}; this repository wants {least:g} %", file=sys.stderr)  # noqa: T201
    strict = settings.get("accord.enforcemetadata") == "true"
    return 1 if strict and settings.get("accord.warnonly", "true") == "false" else 0


def _heal(repo: Repository, commits: list[Commit], tips: list[str], base: str | None) -> None:
    from . import branches, decisions

    shas = [commit.sha for commit in commits]
    try:
        linked, noted = decisions.on_record(repo, shas)
        due = decisions.lacking(shas, linked, noted)
        linked |= _tied(repo, [commit for commit in commits if commit.sha in due])
        known = dict.fromkeys(shas, frozenset[str]()) | linked
        for tip in tips[:MOST_TIPS]:
            branches.remember(repo, tip, base, known)
    except GitError:  # a push is not held up by records
        pass


def _tied(repo: Repository, commits: list[Commit]) -> dict[str, frozenset[str]]:
    if not commits:
        return {}
    from . import healing

    return {each.commit.sha: each.ids for each in healing.tie(repo, commits)}


def _moves(lines: str) -> Iterator[tuple[str, str]]:
    """What shall be where, and what is there now; empty for nothing."""
    for line in lines.split("\n"):
        match line.rsplit(" ", 3):  # what is pushed may be named with spaces
            case [_, tip, _, old]:
                yield tip.strip("0") and tip, old.strip("0") and old
            case _:
                pass


def _unseen(remote: str) -> tuple[str, ...]:
    """A new branch leaves out what is on the remote already."""
    return ("--not", f"--remotes={remote}", "--not")


def _range(tips: list[str], there: list[str]) -> Iterator[str]:
    """What the remote does not have."""
    yield from tips
    yield from (f"^{sha}" for sha in there)


def _number(text: str) -> float:
    try:
        return min(100.0, max(0.0, float(text)))
    except ValueError:
        return 0.0
