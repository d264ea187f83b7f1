"""The verbs with their effects: events, files and git, in an order that no crash makes a lie."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import quote

import msgspec

from accord.core.dialects import pact
from accord.core.dialects.pactfiles import unmarked
from accord.core.kernel.refusal import Refused, Why
from accord.core.work import verbs
from accord.core.work.check import Finding, contested
from accord.core.work.event import Draft
from accord.core.work.fold import fold
from accord.core.work.roster import declared
from accord.core.work.state import Feature, Work
from accord.core.work.verbs import Assignment, Caller
from accord.core.work.words import Kind, Status, is_branch
from accord.git.repository import Repository
from accord.pact import scaffold, shown
from accord.pact.carry import clean
from accord.pact.desk import Desk, decided
from accord.stores.ledger import BASE_PATIENCE_S, flocked


class Done(msgspec.Struct):
    """What a verb did; `notes` are for people."""

    events: list[str]
    notes: list[str] = []


def done(desk: Desk, caller: Caller, kind: Kind, events: list[str], *notes: str) -> Done:
    """The outcome, with a word to whom the roster does not foresee in this (OPEN-99)."""
    seat = desk.work.seat(caller.id)
    said = [allowed(verbs.mismatch(seat, kind))] if seat and kind is not Kind.JOIN else []
    if desk.unrendered:
        said.append(f"{desk.unrendered}; it was recorded, and `accord pact log --replay` shows it")
    if desk.unsigned:
        said.append(f"the key of {caller.id} is not on this machine, so nothing was signed")
    return Done(events, [*notes, *(each for each in said if each)])


def allowed(no: str) -> str:
    """A mismatch as it is told when it does not bind; else it would read as a refusal."""
    return f"{no}; it was recorded all the same, and --strict-roles would refuse it" if no else ""


def init(
    desk: Desk,
    caller: Caller,
    project: str,
    seats: Sequence[str],
    base: str,
    keys: Sequence[str] = (),
) -> Done:
    """Start a pact, or refresh the files of one; the log is never rewritten."""
    place = desk.place
    verbs.init(Work(), caller, project, seats, base, keys)
    unmarked(project)
    scaffold.inside(place, declared(seats))
    here = place.repository.branch() if place.repository else ""
    with desk.ledger.locked():
        desk.carry.recover()

        def decide(work: Work) -> list[Draft]:
            branch = base if work.started else base or here
            return verbs.init(work, caller, project, seats, branch, keys)

        events = desk.record(decide)
        found = desk.load()
        scaffold.scaffold(place, found.work)
        desk.render(found.work, found.mark)
    return Done(events)


def join(desk: Desk, caller: Caller, roles: str, id: str, *, git: bool) -> Done:
    """Come to one's seat, on the branch of one's work."""
    notes = list[str]()

    def decide(work: Work) -> list[Draft]:
        return verbs.join(work, caller, id, roles)

    with desk.ledger.locked():
        desk.carry.recover()
        found = desk.begin()
        decided(found, decide)
        repository = desk.place.repository
        branch = branch_for(found.work, caller.id, repository) if repository and git else ""
        if repository and branch:
            notes += moved(desk, repository, branch)
        if seat := found.work.seat(caller.id):
            notes.append(allowed(verbs.overclaimed(seat, roles.split(","))))
        return done(desk, caller, Kind.JOIN, desk.record(decide), *filter(None, notes))


def moved(desk: Desk, repository: Repository, branch: str) -> list[str]:
    """Go where the work is, or say why not; a log may call something a branch that is a flag."""
    if not is_branch(branch):
        return [f"{branch!r}, the branch of your task by the log, can be no git branch"]
    if repository.has_branch(branch):
        return switched(desk, repository, branch)
    if repository.branch() == branch:
        return []
    return [f"there is no branch {branch} yet; `git switch -c {quote(branch)}` makes it"]


def switched(desk: Desk, repository: Repository, branch: str) -> list[str]:
    """Go to the branch; nobody is moved without a word."""
    before = repository.branch()
    desk.carry.switch(repository, branch)
    return [] if before == branch else [f"switched to branch {branch}"]


def branch_for(work: Work, seat: str, repository: Repository) -> str:
    """The branch of the seat's work: where one is already, else its first open task's."""
    mine = [task for task in work.tasks.values() if task.owner == seat]
    left = [task for task in mine if task.status is not Status.ACCEPTED]
    branches = [work.features[task.feature].branch for task in left or mine]
    here = repository.branch()
    return here if here in branches else next(iter(branches), "")


def assign(desk: Desk, caller: Caller, said: Assignment) -> Done:
    """Give a task away; its file is made where there is none."""
    spec = said.spec or desk.place.name(desk.place.directory / "tasks" / f"{said.task}.md")
    whole = msgspec.structs.replace(said, spec=spec)

    def decide(work: Work) -> list[Draft]:
        drafts = verbs.assign(work, caller, whole)
        scaffold.within(desk.place.directory, desk.place.directory / "tasks" / f"{said.task}.md")
        return drafts

    events = desk.write(decide)
    try:
        scaffold.task_file(desk.place, desk.work.tasks[said.task])
    except OSError as no:
        note = f"the file of {said.task} could not be made: {no.strerror}"
        return done(desk, caller, Kind.ASSIGN, events, note)
    return done(desk, caller, Kind.ASSIGN, events)


def checkpoint(desk: Desk, caller: Caller, id: str, evidence: str, *, commit: bool) -> Done:
    """Show what was done; with `commit`, tracked files and the ledger are committed first."""
    repository = desk.place.repository

    def decide(work: Work) -> list[Draft]:
        head = shown.head(desk.place, work, id, here=commit)
        return verbs.checkpoint(work, caller, id, evidence, head, own=commit)

    if not commit:
        return done(desk, caller, Kind.CHECKPOINT, desk.write(decide))
    if not repository:
        raise Refused(Why.WRONG_STATE, "There is no git repository here to commit to")
    with desk.ledger.locked():
        desk.carry.recover()
        found = desk.begin()
        drafts = decided(found, decide)
        feature = found.work.features[found.work.tasks[id].feature]
        if not repository.branch():
            detail = (
                f"HEAD is on no branch, so a commit would be lost; go to {feature.branch} first"
            )
            raise Refused(Why.WRONG_STATE, detail)
        if repository.branch() == found.work.base_branch != feature.branch:
            detail = f"{id} belongs on branch {feature.branch}, and this is the base branch"
            raise Refused(Why.WRONG_STATE, detail)
        events, lines = desk.lines(drafts, found.at)
        desk.carry.commit(repository, lines, f"pact {id}: checkpoint by {caller.id}")
    return done(desk, caller, Kind.CHECKPOINT, events)


def accept(desk: Desk, caller: Caller, id: str) -> Done:
    """Say that it is done."""

    def decide(work: Work) -> list[Draft]:
        return verbs.accept(work, caller, id, shown.commit(desk.place, work, id))

    events = desk.write(decide)
    return done(desk, caller, Kind.ACCEPT, events)


def changes(desk: Desk, caller: Caller, id: str, reason: str) -> Done:
    """Say what is missing."""
    events = desk.write(lambda work: verbs.changes(work, caller, id, reason))
    return done(desk, caller, Kind.CHANGES, events)


def merge(desk: Desk, caller: Caller, id: str, *, git: bool, strict: bool = False) -> Done:
    """Ship a feature: Rule 2, then git, then the event (UNI-21); `strict` asks for signatures."""

    def decide(work: Work) -> list[Draft]:
        return verbs.merge(work, caller, id)

    with _base(desk), desk.ledger.locked():
        desk.carry.recover()
        found = desk.begin(fresh=True)
        decided(found, decide)
        data, _ = desk.ledger.read()
        uncontested(data)
        if strict:
            proven(desk.unproven(found.work, data))
        feature, repository = found.work.features[id], desk.place.repository
        notes = list[str]()
        if (
            repository
            and git
            and is_branch(feature.branch)
            and repository.has_branch(feature.branch)
        ):
            notes += _merge(desk, repository, found.work, feature)
        return done(desk, caller, Kind.MERGE, desk.record(decide), *notes)


@contextmanager
def _base(desk: Desk) -> Iterator[None]:
    if not desk.place.repository:
        yield
        return
    with flocked(desk.place.base_lock, BASE_PATIENCE_S, desk.world.sleep):
        yield


def _merge(desk: Desk, repository: Repository, work: Work, feature: Feature) -> list[str]:
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
    if merged and not merged_before(repository, base, branch):
        detail = f"{branch} has nothing that {base} lacks; --no-git ships {feature.id} as it is"
        raise Refused(Why.WRONG_STATE, detail)
    notes = switched(desk, repository, base)
    if merged:
        return [*notes, f"git had merged {branch} already; only the event was missing"]
    tip = repository.ask("rev-parse", f"refs/heads/{branch}")
    found = reviewed.find(desk.place, repository, work, feature, tip)
    by = reviewed.names(found, desk.ring().get("names") or {})
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


def merged_before(repository: Repository, base: str, branch: str) -> bool:
    """Whether the base has a merge commit of this very branch: then only the event is missing."""
    tip = repository.ask("rev-parse", f"refs/heads/{branch}")
    merges = repository.ask("log", "--merges", "--format=%P", f"refs/heads/{base}", "--")
    return any(tip in line.split()[1:] for line in merges.splitlines())
