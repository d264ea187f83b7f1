"""The verbs with their effects: events, files and git, in an order that no crash makes a lie."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import quote

import msgspec

from accord.core.dialects.pactfiles import unmarked
from accord.core.kernel.refusal import Refused, Why
from accord.core.work import verbs
from accord.core.work.event import Draft
from accord.core.work.roster import declared
from accord.core.work.state import Work
from accord.core.work.verbs import Assignment, Caller
from accord.core.work.words import Kind, Status, is_branch
from accord.git.repository import Repository
from accord.pact import merging, scaffold, shown
from accord.pact.desk import Desk, decided
from accord.pact.elsewhere import tracked
from accord.pact.merging import switched
from accord.stores.ledger import BASE_PATIENCE_S, flocked

MOST_NAMED = 3


class Done(msgspec.Struct):
    """What a verb did; `notes` are for people, `commit` is what was accepted."""

    events: list[str]
    notes: list[str] = []
    commit: str = ""


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
    if there := tracked(repository, branch):
        return [f"{branch} is only {there} so far; `git switch {quote(branch)}` makes it yours"]
    return [f"there is no branch {branch} yet; `git switch -c {quote(branch)}` makes it"]


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
    place, repository = desk.place, desk.place.repository

    def decide(work: Work, files: str = "") -> list[Draft]:
        head = shown.head(place, work, id, here=commit)
        return verbs.checkpoint(work, caller, id, evidence, head, files)

    if not commit:
        return done(desk, caller, Kind.CHECKPOINT, desk.write(decide))
    if not repository:
        raise Refused(Why.WRONG_STATE, "There is no git repository here to commit to")
    with desk.ledger.locked():
        desk.carry.recover()
        found = desk.begin()
        decided(found, decide)
        feature = found.work.features[found.work.tasks[id].feature]
        if not repository.branch():
            detail = (
                f"HEAD is on no branch, so a commit would be lost; go to {feature.branch} first"
            )
            raise Refused(Why.WRONG_STATE, detail)
        if repository.branch() == found.work.base_branch != feature.branch:
            detail = f"{id} belongs on branch {feature.branch}, and this is the base branch"
            raise Refused(Why.WRONG_STATE, detail)
        events, staged = list[str](), ""

        def write(tree: str) -> bytes:
            nonlocal staged
            staged = shown.files(place, repository, tree)
            ids, lines = desk.lines(decide(found.work, staged), found.at)
            events.extend(ids)
            return lines

        desk.carry.commit(repository, write, f"pact {id}: checkpoint by {caller.id}")
        if shown.files(place, repository, "HEAD") != staged:
            events += desk.record(decide)  # a hook changed what was committed: this is what it is
    return done(desk, caller, Kind.CHECKPOINT, events, *_left_out(desk, repository))


def _left_out(desk: Desk, repository: Repository) -> Iterator[str]:
    """A word on files that git does not know: they are never swept in, and may be the work."""
    if found := [each for each in repository.untracked() if not shown.is_ledger(desk.place, each)]:
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        names = f"{', '.join(found[:MOST_NAMED])}{more}"
        yield f"git does not know {names}, so that was not committed; `git add` takes it in"


def accept(desk: Desk, caller: Caller, id: str, commit: str = "") -> Done:
    """Say that it is done: what was shown, which is what the branch has or what `commit` names."""
    covered = ""

    def decide(work: Work) -> list[Draft]:
        nonlocal covered
        verbs.accept(work, caller, id)
        covered = shown.covered(desk.place, work, id, commit)
        return verbs.accept(work, caller, id, covered)

    events = desk.write(decide)
    return msgspec.structs.replace(done(desk, caller, Kind.ACCEPT, events), commit=covered)


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
        merging.uncontested(data)
        if strict:
            merging.proven(desk.unproven(found.work, data))
        feature, repository = found.work.features[id], desk.place.repository
        notes = list[str]()
        if (
            repository
            and git
            and is_branch(feature.branch)
            and repository.has_branch(feature.branch)
        ):
            notes += merging.merge(desk, repository, found.work, feature)
        return done(desk, caller, Kind.MERGE, desk.record(decide), *notes)


@contextmanager
def _base(desk: Desk) -> Iterator[None]:
    if not desk.place.repository:
        yield
        return
    with flocked(desk.place.base_lock, BASE_PATIENCE_S, desk.world.sleep):
        yield
