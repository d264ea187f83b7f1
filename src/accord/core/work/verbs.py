"""What each verb records, or why it does not. The refusals come in the order of PACT 7.1."""

from collections.abc import Sequence

import msgspec

from accord.core.kernel.refusal import Refused, Why
from accord.core.work.event import Draft
from accord.core.work.roster import declared, keyed, opening, roles_of
from accord.core.work.state import Feature, Seat, Task, Work
from accord.core.work.words import (
    LONGEST_SEAT,
    PROTOCOL,
    ROLE_OF,
    Kind,
    Status,
    is_branch,
    is_id,
    is_inside,
    is_seat,
    is_slug,
)

MOST_EVIDENCE = 1 << 20


class Caller(msgspec.Struct, frozen=True):
    """Whose seat asks; with `strict`, the roster's roles bind (OPEN-99)."""

    id: str
    strict: bool = False


class Assignment(msgspec.Struct, frozen=True):
    """What `assign` says."""

    task: str
    feature: str
    branch: str
    owner: str
    reviewer: str
    spec: str = ""


def identity(name: str) -> str:
    """PACT 6.5: nobody without a name does anything."""
    if not name:
        advice = "say who you are first, with export PACT_AGENT_ID=<seat>"
        raise Refused(Why.UNAUTHENTICATED, f"PACT_AGENT_ID not set; {advice}")
    if not is_seat(name):
        shown = repr(name[:LONGEST_SEAT])
        detail = f"PACT_AGENT_ID {shown} can be no seat; use up to {LONGEST_SEAT} of a-z, 0-9 and -"
        raise Refused(Why.MALFORMED, detail)
    return name


def understood(work: Work) -> None:
    """PACT 1.2: a later version is not guessed at."""
    if work.too_new:
        detail = (
            f"This pact is of protocol_version {work.protocol}, which exceeds the supported "
            f"{PROTOCOL}; upgrade accord to work with it"
        )
        raise Refused(Why.VERSION, detail, {"protocol_version": work.protocol})


def seated(work: Work, caller: Caller) -> Seat:
    """The caller's seat; a name that `init` did not declare has none."""
    understood(work)
    if not work.started:
        raise Refused(Why.UNKNOWN, "There is no pact here yet; `accord pact init` starts one")
    if not (seat := work.seat(caller.id)):
        known = ", ".join(each.id for each in work.seats)
        raise Refused(Why.FORBIDDEN, f"{caller.id} is not a seat of this pact ({known})")
    return seat


def mismatch(seat: Seat, kind: Kind) -> str:
    """What to say when the roster does not foresee this; nothing when it does."""
    role = ROLE_OF[kind]
    if role in seat.roles:
        return ""
    return f"{seat.id} has no role {role} in the roster ({', '.join(seat.roles)})"


def overclaimed(seat: Seat, roles: Sequence[str]) -> str:
    """The same for the roles that somebody takes with `join`, which is for every role."""
    more = [role for role in roles if role not in seat.roles]
    return f"{seat.id} is not {more[0]} in the roster ({', '.join(seat.roles)})" if more else ""


def fitting(seat: Seat, caller: Caller, kind: Kind) -> None:
    """With `--strict-roles` the roster's roles bind."""
    if caller.strict and (no := mismatch(seat, kind)):
        raise Refused(Why.FORBIDDEN, no)


# The verbs


def init(
    work: Work,
    caller: Caller,
    project: str,
    seats: Sequence[str],
    base: str,
    keys: Sequence[str] = (),
) -> list[Draft]:
    """Start a pact. The same again records nothing; anything else is refused (OPEN-101)."""
    understood(work)
    if not project.strip() or not project.isprintable():
        raise Refused(Why.MALFORMED, "Name the project with --project")
    if base and not is_branch(base):
        raise Refused(Why.MALFORMED, f"{base!r} can be no git branch")
    roster = keyed(declared(seats), keys)
    if caller.id not in {seat.id for seat in roster}:
        detail = f"PACT_AGENT_ID {caller.id} is not among the seats; declare it with --seat"
        raise Refused(Why.FORBIDDEN, detail)
    if not work.started:
        return [Draft(Kind.INIT, opening(project, roster, base))]
    if list(work.seats) != roster or work.project != project or base not in {"", work.base_branch}:
        detail = "There is a pact here already, with other parameters; its log is never rewritten"
        raise Refused(Why.WRONG_STATE, detail)
    return []


def join(work: Work, caller: Caller, id: str, roles: str) -> list[Draft]:
    """Come to one's seat, or back to it."""
    understood(work)
    if not id:
        raise Refused(Why.MALFORMED, "Say which seat joins: join <id> --roles <a,b>")
    if id != caller.id:
        detail = (
            f"{id} cannot be joined by {caller.id}, who PACT_AGENT_ID says you are; "
            f"export PACT_AGENT_ID={id} if you are {id}"
        )
        raise Refused(Why.FORBIDDEN, detail)
    seat = seated(work, caller)
    taken = roles_of(roles)
    if caller.strict and (no := overclaimed(seat, taken)):
        raise Refused(Why.FORBIDDEN, no)
    return [Draft(Kind.JOIN, {"roles": [*taken]})]


def assign(work: Work, caller: Caller, said: Assignment) -> list[Draft]:
    """Give a task to one seat, and its review to another."""
    fitting(seated(work, caller), caller, Kind.ASSIGN)
    for flag, given in (
        ("a task id", said.task),
        ("--feature", said.feature),
        ("--branch", said.branch),
        ("--owner", said.owner),
        ("--reviewer", said.reviewer),
    ):
        if not given:
            raise Refused(Why.MALFORMED, f"assign needs {flag}")
    if said.owner == said.reviewer:
        detail = f"Owner and reviewer must differ (separation of duties); both are {said.owner}"
        raise Refused(Why.FORBIDDEN, detail)
    _well_named(said)
    for seat in (said.owner, said.reviewer):
        if not work.seat(seat):
            raise Refused(Why.NO_MEMBER, f"{seat} is not a seat of this pact")
    _fits(work, said)
    spec = said.spec or f".pact/tasks/{said.task}.md"
    payload = {"owner": said.owner, "reviewer": said.reviewer, "branch": said.branch}
    return [Draft(Kind.ASSIGN, {**payload, "spec": spec}, said.task, said.feature)]


def _well_named(said: Assignment) -> None:
    for what, id in (("Task", said.task), ("Feature", said.feature)):
        if not is_id(id):
            detail = f"{what} id {id!r} must be up to 64 of A-Z, a-z, 0-9, `.`, `_` and `-`"
            raise Refused(Why.MALFORMED, detail)
    if not is_branch(said.branch):
        raise Refused(Why.MALFORMED, f"{said.branch!r} can be no git branch")
    if said.spec and not is_inside(said.spec):
        detail = f"--spec {said.spec!r} must stay inside the repository: relative, without `..`"
        raise Refused(Why.MALFORMED, detail)


def _fits(work: Work, said: Assignment) -> None:
    if old := work.tasks.get(said.task):
        detail = f"Task {said.task} already exists, in feature {old.feature}; ids are used once"
        raise Refused(Why.WRONG_STATE, detail)
    feature = work.features.get(said.feature)
    if feature and feature.shipped:
        detail = f"Feature {said.feature} is shipped; open another one for {said.task}"
        raise Refused(Why.WRONG_STATE, detail)
    if feature and feature.branch != said.branch:
        detail = f"Feature {said.feature} is on branch {feature.branch}, not {said.branch}"
        raise Refused(Why.WRONG_STATE, detail)


def checkpoint(
    work: Work, caller: Caller, id: str, evidence: str, commit: str = "", files: str = ""
) -> list[Draft]:
    """Show what was done; a task that nobody joined for is joined first (OPEN-96).

    `commit` is where its branch stands; `files` a digest of what this checkpoint's own commit after
    that one holds.
    """
    seat = seated(work, caller)
    if not id or not evidence.strip():
        raise Refused(
            Why.MALFORMED, "checkpoint needs a task id and --evidence that says something"
        )
    if size(evidence) > MOST_EVIDENCE:
        detail = "The evidence is over 1 MiB; name a file or a commit that holds it"
        raise Refused(Why.TOO_LARGE, detail)
    task = the_task(work, id)
    if task.owner != caller.id:
        detail = f"{caller.id} is not the owner of {id} (owner: {task.owner})"
        raise Refused(Why.FORBIDDEN, detail)
    fitting(seat, caller, Kind.CHECKPOINT)
    if task.status is Status.ACCEPTED:
        raise Refused(Why.WRONG_STATE, f"Task {id} is accepted; that is final")
    seen = {"commit": commit} | ({"files": files} if files else {}) if commit else {}
    shown = Draft(Kind.CHECKPOINT, {"evidence": evidence, **seen}, id, task.feature)
    if task.status is Status.ASSIGNED:
        return [Draft(Kind.JOIN, {"roles": [*seat.roles]}), shown]
    return [shown]


def accept(work: Work, caller: Caller, id: str, commit: str = "") -> list[Draft]:
    """Rule 1: the reviewer says that it is done, with all that leads to `commit`."""
    seat = seated(work, caller)
    if not id:
        raise Refused(Why.MALFORMED, "accept needs a task id")
    task = judged(work, caller, id, "accept")
    fitting(seat, caller, Kind.ACCEPT)
    return [Draft(Kind.ACCEPT, {"commit": commit} if commit else {}, id, task.feature)]


def changes(work: Work, caller: Caller, id: str, reason: str) -> list[Draft]:
    """Rule 1: the reviewer says what is missing."""
    seat = seated(work, caller)
    if not id or not reason.strip():
        raise Refused(Why.MALFORMED, "changes needs a task id and --reason that says something")
    if size(reason) > MOST_EVIDENCE:
        raise Refused(Why.TOO_LARGE, "The reason is over 1 MiB; say it in the task's file")
    task = judged(work, caller, id, "request changes")
    fitting(seat, caller, Kind.CHANGES)
    return [Draft(Kind.CHANGES, {"reason": reason}, id, task.feature)]


def judged(work: Work, caller: Caller, id: str, verb: str) -> Task:
    """The task, if the caller may judge it now."""
    task = the_task(work, id)
    if task.reviewer != caller.id or task.owner == caller.id:
        detail = f"Only the reviewer ({task.reviewer}) may {verb} {id}"
        raise Refused(Why.FORBIDDEN, detail)
    if not is_slug(task.owner):
        detail = f"{task.owner!r}, the owner of {id}, can be no seat, so nobody can judge its work"
        raise Refused(Why.FORBIDDEN, detail)
    if task.status is not Status.AWAITING_REVIEW:
        detail = f"Task {id} is {task.status}; only what is awaiting_review can be judged"
        raise Refused(Why.WRONG_STATE, detail)
    return task


def merge(work: Work, caller: Caller, id: str) -> list[Draft]:
    """Rule 2: a feature ships when all of it is accepted."""
    seat = seated(work, caller)
    fitting(seat, caller, Kind.MERGE)
    feature = shippable(work, id)
    return [Draft(Kind.MERGE, {}, feature=feature.id)]


def shippable(work: Work, id: str) -> Feature:
    """The feature, if Rule 2 lets it ship."""
    if not id:
        raise Refused(Why.MALFORMED, "merge needs a feature id")
    feature = work.features.get(id)
    if not feature or not feature.tasks:
        raise Refused(Why.UNKNOWN, f"There is no feature {id} (or it has no tasks)")
    if feature.shipped:
        raise Refused(Why.WRONG_STATE, f"Feature {id} is shipped already")
    if rest := work.open_tasks(feature):
        detail = f"Cannot merge {id}: not accepted are {', '.join(rest)}"
        raise Refused(Why.WRONG_STATE, detail, {"tasks": rest})
    return feature


def size(text: str) -> int:
    """How many bytes a text has in a log; what was typed in another encoding has no place there."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise Refused(Why.MALFORMED, "The text is not UTF-8; say it in that") from None


def the_task(work: Work, id: str) -> Task:
    """The task of that id."""
    if not (task := work.tasks.get(id)):
        raise Refused(Why.UNKNOWN, f"There is no task {id}")
    return task
