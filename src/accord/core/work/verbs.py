"""The verbs: which events each records, or why it is refused, in the order of PACT 7.1."""

from collections.abc import Sequence

import msgspec

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.event import EventDraft
from accord.core.work.review_and_merge_rules import (
    check_separation_of_duties,
    feature_to_ship,
    find_task,
    task_to_review,
)
from accord.core.work.roster import init_payload, parse_roles, parse_roster, with_keys
from accord.core.work.state import Seat, Work
from accord.core.work.vocabulary import (
    MAX_SEAT_LENGTH,
    PROTOCOL_VERSION,
    ROLE_OF,
    EventKind,
    TaskStatus,
    is_branch_name,
    is_inside_repository,
    is_new_seat_id,
    is_work_id,
)

MAX_EVIDENCE_BYTES = 1 << 20


class ActingSeat(msgspec.Struct, frozen=True):
    """The seat that acts; with `strict`, the roster's roles are enforced (OPEN-99)."""

    id: str
    strict: bool = False


class Assignment(msgspec.Struct, frozen=True):
    """The arguments of `assign`."""

    task: str
    feature: str
    branch: str
    owner: str
    reviewer: str
    spec: str = ""


def check_agent_id(name: str) -> str:
    """Refuse a missing or invalid PACT_AGENT_ID (PACT 6.5)."""
    if not name:
        advice = "name your seat first: export PACT_AGENT_ID=<seat>"
        raise Refused(Reason.UNAUTHENTICATED, f"PACT_AGENT_ID not set; {advice}")
    if not is_new_seat_id(name):
        shown = repr(name[:MAX_SEAT_LENGTH])
        detail = (
            f"PACT_AGENT_ID {shown} is not a valid seat name; "
            f"use up to {MAX_SEAT_LENGTH} of a-z, 0-9 and -"
        )
        raise Refused(Reason.MALFORMED, detail)
    return name


def check_supported(work: Work) -> None:
    """Refuse a pact of a later protocol version (PACT 1.2)."""
    if work.too_new:
        detail = (
            f"This pact has protocol_version {work.protocol}, which exceeds the supported "
            f"{PROTOCOL_VERSION}; upgrade accord to work with it"
        )
        raise Refused(Reason.UNSUPPORTED_VERSION, detail, {"protocol_version": work.protocol})


def acting_seat(work: Work, caller: ActingSeat) -> Seat:
    """The caller's seat; refused if `init` did not declare it."""
    check_supported(work)
    if not work.started:
        raise Refused(
            Reason.NOT_FOUND, "There is no pact here yet; run `accord pact init` to start one"
        )
    if not (seat := work.seat(caller.id)):
        known = ", ".join(seat_.id for seat_ in work.seats)
        raise Refused(Reason.FORBIDDEN, f"{caller.id} is not a seat of this pact ({known})")
    return seat


def role_mismatch(seat: Seat, kind: EventKind) -> str:
    """The problem if the roster does not give the seat the role for this event; else empty."""
    role = ROLE_OF[kind]
    if role in seat.roles:
        return ""
    return f"{seat.id} does not have the role {role} in the roster ({', '.join(seat.roles)})"


def join_roles_mismatch(seat: Seat, roles: Sequence[str]) -> str:
    """The problem if a `join` claims roles that the roster does not list; else empty."""
    more = [role for role in roles if role not in seat.roles]
    return f"{seat.id} is not {more[0]} in the roster ({', '.join(seat.roles)})" if more else ""


def check_strict_role(seat: Seat, caller: ActingSeat, kind: EventKind) -> None:
    """Refuse a role mismatch if `--strict-roles` is given."""
    if caller.strict and (mismatch := role_mismatch(seat, kind)):
        raise Refused(Reason.FORBIDDEN, mismatch)


# The verbs


def init(
    work: Work,
    caller: ActingSeat,
    project: str,
    seats: Sequence[str],
    base: str,
    keys: Sequence[str] = (),
) -> list[EventDraft]:
    """Start a pact; repeating the same `init` records nothing, another is refused (OPEN-101)."""
    check_supported(work)
    if not project.strip() or not project.isprintable():
        raise Refused(Reason.MALFORMED, "Name the project with --project")
    if base and not is_branch_name(base):
        raise Refused(Reason.MALFORMED, f"{base!r} is not a valid branch name")
    roster = with_keys(parse_roster(seats), keys)
    if caller.id not in {seat.id for seat in roster}:
        detail = f"PACT_AGENT_ID {caller.id} is not among the seats; declare it with --seat"
        raise Refused(Reason.FORBIDDEN, detail)
    if not work.started:
        return [EventDraft(EventKind.INIT, init_payload(project, roster, base))]
    if list(work.seats) != roster or work.project != project or base not in {"", work.base_branch}:
        detail = "There is already a pact here with other parameters, and a log is never rewritten"
        raise Refused(Reason.WRONG_STATE, detail)
    return []


def join(work: Work, caller: ActingSeat, id: str, roles: str) -> list[EventDraft]:
    """Take one's seat and start the tasks that wait for it."""
    check_supported(work)
    if not id:
        raise Refused(Reason.MALFORMED, "Say which seat joins: join <id> --roles <a,b>")
    if id != caller.id:
        detail = (
            f"PACT_AGENT_ID is {caller.id}, so you cannot join as {id}; "
            f"if you are {id}, run: export PACT_AGENT_ID={id}"
        )
        raise Refused(Reason.FORBIDDEN, detail)
    seat = acting_seat(work, caller)
    roles_taken = parse_roles(roles)
    if caller.strict and (mismatch := join_roles_mismatch(seat, roles_taken)):
        raise Refused(Reason.FORBIDDEN, mismatch)
    return [EventDraft(EventKind.JOIN, {"roles": [*roles_taken]})]


def assign(work: Work, caller: ActingSeat, assignment: Assignment) -> list[EventDraft]:
    """Assign a task to an owner, and its review to another seat."""
    check_strict_role(acting_seat(work, caller), caller, EventKind.ASSIGN)
    for flag, value in (
        ("a task id", assignment.task),
        ("--feature", assignment.feature),
        ("--branch", assignment.branch),
        ("--owner", assignment.owner),
        ("--reviewer", assignment.reviewer),
    ):
        if not value:
            raise Refused(Reason.MALFORMED, f"assign needs {flag}")
    check_separation_of_duties(assignment.owner, assignment.reviewer)
    _check_names(assignment)
    for seat in (assignment.owner, assignment.reviewer):
        if not work.seat(seat):
            raise Refused(Reason.NO_MEMBER, f"{seat} is not a seat of this pact")
    _check_assignable(work, assignment)
    spec = assignment.spec or f".pact/tasks/{assignment.task}.md"
    payload = {
        "owner": assignment.owner,
        "reviewer": assignment.reviewer,
        "branch": assignment.branch,
    }
    return [
        EventDraft(EventKind.ASSIGN, {**payload, "spec": spec}, assignment.task, assignment.feature)
    ]


def _check_names(assignment: Assignment) -> None:
    for what, id in (("Task", assignment.task), ("Feature", assignment.feature)):
        if not is_work_id(id):
            detail = f"{what} id {id!r} must be up to 64 of A-Z, a-z, 0-9, `.`, `_` and `-`"
            raise Refused(Reason.MALFORMED, detail)
    if not is_branch_name(assignment.branch):
        raise Refused(Reason.MALFORMED, f"{assignment.branch!r} is not a valid branch name")
    if assignment.spec and not is_inside_repository(assignment.spec):
        detail = (
            f"--spec {assignment.spec!r} must stay inside the repository: relative, without `..`"
        )
        raise Refused(Reason.MALFORMED, detail)


def _check_assignable(work: Work, assignment: Assignment) -> None:
    if existing := work.tasks.get(assignment.task):
        detail = (
            f"Task {assignment.task} already exists, in feature {existing.feature}; "
            "choose another id"
        )
        raise Refused(Reason.WRONG_STATE, detail)
    if assignment.task in work.used_task_ids:
        detail = (
            f"An earlier `assign` in the log used the task id {assignment.task}, without effect; "
            "choose another id"
        )
        raise Refused(Reason.WRONG_STATE, detail)
    feature = work.features.get(assignment.feature)
    if feature and feature.shipped:
        detail = (
            f"Feature {assignment.feature} is already shipped; "
            f"assign {assignment.task} to another feature"
        )
        raise Refused(Reason.WRONG_STATE, detail)
    if feature and feature.branch != assignment.branch:
        detail = (
            f"Feature {assignment.feature} is on branch {feature.branch}, not {assignment.branch}"
        )
        raise Refused(Reason.WRONG_STATE, detail)


def checkpoint(
    work: Work, caller: ActingSeat, id: str, evidence: str, commit: str = "", files: str = ""
) -> list[EventDraft]:
    """Submit work for review; if the owner has not joined yet, a `join` comes first (OPEN-96).

    `commit` is the tip of the task's branch; `files` is the digest of this checkpoint's own commit,
    which follows that tip.
    """
    seat = acting_seat(work, caller)
    if not id or not evidence.strip():
        raise Refused(Reason.MALFORMED, "checkpoint needs a task id and a non-empty --evidence")
    if byte_length(evidence) > MAX_EVIDENCE_BYTES:
        detail = "The evidence is larger than 1 MiB; name a file or a commit instead"
        raise Refused(Reason.TOO_LARGE, detail)
    task = find_task(work, id)
    if task.owner != caller.id:
        detail = f"{caller.id} is not the owner of {id} (owner: {task.owner})"
        raise Refused(Reason.FORBIDDEN, detail)
    check_strict_role(seat, caller, EventKind.CHECKPOINT)
    if task.status is TaskStatus.ACCEPTED:
        raise Refused(Reason.WRONG_STATE, f"Task {id} is already accepted, which is final")
    commit_fields = {"commit": commit} | ({"files": files} if files else {}) if commit else {}
    draft = EventDraft(
        EventKind.CHECKPOINT, {"evidence": evidence, **commit_fields}, id, task.feature
    )
    if task.status is TaskStatus.ASSIGNED:
        return [EventDraft(EventKind.JOIN, {"roles": [*seat.roles]}), draft]
    return [draft]


def accept(work: Work, caller: ActingSeat, id: str, commit: str = "") -> list[EventDraft]:
    """Rule 1: the reviewer accepts the task, covering the history of `commit`."""
    seat = acting_seat(work, caller)
    if not id:
        raise Refused(Reason.MALFORMED, "accept needs a task id")
    task = task_to_review(work, caller.id, id, "accept")
    check_strict_role(seat, caller, EventKind.ACCEPT)
    return [EventDraft(EventKind.ACCEPT, {"commit": commit} if commit else {}, id, task.feature)]


def changes(work: Work, caller: ActingSeat, id: str, reason: str) -> list[EventDraft]:
    """Rule 1: the reviewer requests changes."""
    seat = acting_seat(work, caller)
    if not id or not reason.strip():
        raise Refused(Reason.MALFORMED, "changes needs a task id and a non-empty --reason")
    if byte_length(reason) > MAX_EVIDENCE_BYTES:
        raise Refused(
            Reason.TOO_LARGE,
            "The reason is larger than 1 MiB; write it into the task's file instead",
        )
    task = task_to_review(work, caller.id, id, "request changes")
    check_strict_role(seat, caller, EventKind.CHANGES)
    return [EventDraft(EventKind.CHANGES, {"reason": reason}, id, task.feature)]


def merge(work: Work, caller: ActingSeat, id: str) -> list[EventDraft]:
    """Rule 2: a feature ships once all its tasks are accepted."""
    seat = acting_seat(work, caller)
    check_strict_role(seat, caller, EventKind.MERGE)
    feature = feature_to_ship(work, id)
    return [EventDraft(EventKind.MERGE, {}, feature=feature.id)]


def byte_length(text: str) -> int:
    """The size of a text in UTF-8; refused if it was typed in another encoding."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise Refused(
            Reason.MALFORMED, "The text is not valid UTF-8; check the terminal's encoding"
        ) from None
