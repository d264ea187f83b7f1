"""`pre-push`: relink records of pushed commits and check decision coverage (OPEN-58)."""

import sys
from collections.abc import Iterator, Mapping

from accord.git import ancestry
from accord.git.process import GitError
from accord.git.records.record_refs import DECISIONS_REF
from accord.git.repository import Commit, Repository

MAX_COMMITS = 500
MAX_TIPS = 20


def check_push(repo: Repository, remote: str, lines: str) -> int:
    """1 if coverage is too low and enforced; otherwise 0, with a warning if it is too low."""
    updates = [(tip, old) for tip, old in _parse_ref_updates(lines) if tip]
    if not updates:
        return 0
    settings = repo.read_config(ancestry.SETTINGS_PATTERN)
    min_percent = _parse_percent(settings.get("accord.mincoverage", ""))
    names = ancestry.trunk_refs(settings)
    olds = {f"{old}^{{commit}}" for _, old in updates if old}
    shas = {
        name: object_.sha
        for name, object_ in repo.read_objects([DECISIONS_REF, *names, *olds]).items()
    }
    recorded = DECISIONS_REF in shas
    if not recorded and not min_percent:
        return 0
    tips = [tip for tip, _ in updates]
    known_olds = [shas[old] for old in olds if old in shas]
    commits = repo.commits(
        *_not_on_remote(remote), max_count=MAX_COMMITS, revisions=_revisions(tips, known_olds)
    )
    if recorded:
        base = next((shas[name] for name in names if name in shas), None)
        _relink_pushed(repo, commits, tips, base)
    return _check_coverage(commits, settings, min_percent) if min_percent else 0


def _check_coverage(commits: list[Commit], settings: Mapping[str, str], min_percent: float) -> int:
    from accord.git import decision_share

    result = decision_share.coverage_of(commits)
    if result.percent >= min_percent:
        return 0
    summary = f"{result.covered} of {result.commits} commits say how they were decided"
    print(f"accord: {summary}; this repository requires {min_percent:g} %", file=sys.stderr)  # noqa: T201
    is_enforced = settings.get("accord.enforcemetadata") == "true"
    return 1 if is_enforced and settings.get("accord.warnonly", "true") == "false" else 0


def _relink_pushed(
    repo: Repository, commits: list[Commit], tips: list[str], base: str | None
) -> None:
    from accord.git.records import decisions_ref, squash_merges

    shas = [commit.sha for commit in commits]
    try:
        linked, noted = decisions_ref.links_and_notes(repo, shas)
        unrecorded = decisions_ref.commits_without_record(shas, linked, noted)
        linked |= _relink(repo, [commit for commit in commits if commit.sha in unrecorded])
        known = dict.fromkeys(shas, frozenset[str]()) | linked
        for tip in tips[:MAX_TIPS]:
            squash_merges.record_branch_patch(repo, tip, base, known)
    except GitError:  # a failure to relink must not block the push
        pass


def _relink(repo: Repository, commits: list[Commit]) -> dict[str, frozenset[str]]:
    if not commits:
        return {}
    from accord.git.records import relink

    return {link.commit.sha: link.ids for link in relink.relink_commits(repo, commits)}


def _parse_ref_updates(lines: str) -> Iterator[tuple[str, str]]:
    """New and old commit of each pushed ref; empty for a deleted or new ref."""
    for line in lines.split("\n"):
        match line.rsplit(" ", 3):  # the local ref name may contain spaces
            case [_, tip, _, old]:
                yield tip.strip("0") and tip, old.strip("0") and old
            case _:
                pass


def _not_on_remote(remote: str) -> tuple[str, ...]:
    """Options that exclude what the remote already has, also for a new branch."""
    return ("--not", f"--remotes={remote}", "--not")


def _revisions(tips: list[str], known_olds: list[str]) -> Iterator[str]:
    """The pushed tips, without the history of the refs that they update."""
    yield from tips
    yield from (f"^{sha}" for sha in known_olds)


def _parse_percent(text: str) -> float:
    try:
        return min(100.0, max(0.0, float(text)))
    except ValueError:
        return 0.0
