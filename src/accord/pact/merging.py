"""Shipping a feature with git: Rule 2 by every log there is, who reviewed it, then the merge."""

from collections.abc import Sequence

from accord.core.dialects import pact
from accord.core.kernel.refusal import Refused, Why
from accord.core.work import verbs
from accord.core.work.check import Finding, contested
from accord.core.work.fold import fold
from accord.core.work.state import Feature, Work
from accord.core.work.words import is_branch
from accord.git.repository import Repository
from accord.pact.carry import clean
from accord.pact.desk import Desk


def switched(desk: Desk, repository: Repository, branch: str) -> list[str]:
    """Go to the branch; nobody is moved without a word."""
    before = repository.branch()
    desk.carry.switch(repository, branch)
    return [] if before == branch else [f"switched to branch {branch}"]


def merge(desk: Desk, repository: Repository, work: Work, feature: Feature) -> list[str]:
    """Merge the branch of a feature into the base, or find that it was; what to tell of it."""
    from accord.pact import reviewed  # only a merge needs all of that

    base, branch = work.base_branch, feature.branch
    if base == branch:
        return []
    if not is_branch(base) or not repository.has_branch(base):
        raise Refused(Why.WRONG_STATE, f"There is no base branch {base}; --no-git ships without it")
    clean(repository, desk.place)
    _rule_two_on_all(desk, repository, base, feature)
    start = repository.branch()
    merged = repository.contains(f"refs/heads/{base}", f"refs/heads/{branch}")
    made = merged_before(repository, base, branch) if merged else ""
    if merged and not made:
        detail = f"{branch} has nothing that {base} lacks; --no-git ships {feature.id} as it is"
        raise Refused(Why.WRONG_STATE, detail)
    notes = switched(desk, repository, base)
    tip = repository.ask("rev-parse", f"refs/heads/{branch}")
    ends = reviewed.Merge(tip, f"{made}^1" if made else f"refs/heads/{base}")
    found = reviewed.find(desk.place, repository, work, feature, ends)
    by = reviewed.names(found, desk.ring().get("names") or {})
    if made:
        notes.append(f"git had merged {branch} already; only the event was missing")
        return [*notes, *reviewed.note(repository, made, found, by)]
    message = reviewed.message(f"Merge {feature.id} ({branch})", found, by)
    try:
        # What was compared with the reviews, and not what the branch may have become since.
        words = ("merge", "--quiet", "--no-ff", "--no-edit", "-m", message, tip)
        desk.carry.across(repository, words, branch)
    except Refused:
        if start:
            desk.carry.switch(repository, start)
        raise
    return [*notes, *found.gaps, *reviewed.note(repository, "HEAD", found, by)]


def _rule_two_on_all(desk: Desk, repository: Repository, base: str, feature: Feature) -> None:
    """The branch may know of tasks that the ledger here does not; they count too."""
    data, _ = desk.ledger.read()
    every = data
    name = desk.place.name(desk.place.log)
    for branch in (feature.branch, base):
        there = repository.show(f"refs/heads/{branch}", name) or b""
        data += pact.missing(data, there)
        every += there if there.endswith(b"\n") else there + b"\n"
    uncontested(every)
    verbs.shippable(fold(pact.read(data).entries), feature.id)


def uncontested(data: bytes) -> None:
    """Refuse to ship on a log in which a line hides another one: it may be a task, or a verdict."""
    if id := contested(list(pact.objects(data))):
        detail = (
            f"Two lines say different things under the event_id {id}; nothing ships until "
            "somebody has looked, and `accord pact validate` tells where"
        )
        raise Refused(Why.DAMAGED, detail)


def proven(found: Sequence[Finding]) -> None:
    """Refuse to ship what no signature proves."""
    for first in found[:1]:
        where = f"line {first.line}: " if first.line else ""
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        detail = f"{where}{first.sentence}{more}; `accord pact validate --strict` tells all"
        raise Refused(Why.FORBIDDEN, detail)


def merged_before(repository: Repository, base: str, branch: str) -> str:
    """The merge commit that the base has of this very branch: then only the event is missing."""
    tip = repository.ask("rev-parse", f"refs/heads/{branch}")
    merges = repository.ask("log", "--merges", "--format=%H %P", f"refs/heads/{base}", "--")
    rows = (line.split() for line in merges.splitlines())
    return next((sha for sha, _, *others in rows if tip in others), "")
