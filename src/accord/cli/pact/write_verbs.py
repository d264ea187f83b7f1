"""The verbs of `accord pact` that append to the ledger; each confirms what it did in one line."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.core.work.state import Work
    from accord.core.work.verbs import ActingSeat
    from accord.pact.verbs import VerbResult
    from accord.pact.workspace import Workspace

MAX_TASKS_NAMED = 5
SHORT_SHA_LENGTH = 10
CHECKPOINT = "`accord pact checkpoint {0} --evidence …`"
JUDGE = "`accord pact accept {0}` or `accord pact changes {0} --reason …`"
# The command for each kind of inbox item.
COMMAND_OF = {
    "review": JUDGE,
    "change": CHECKPOINT,
    "work": CHECKPOINT,
    "merge": "`accord pact merge {0}`",
}


def init(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    done = verbs.init(desk, caller, args.project, args.seat, args.base_branch, args.key)
    seats = ", ".join(seat.id for seat in desk.work.seats)
    commit = "commit the new files, then assign" if desk.location.repository else "assign"
    started = (
        f"Started the pact {args.project} with the seats {seats}. "
        f"Next: {commit} the first task with `accord pact assign`."
    )
    again = f"The pact {args.project} exists already; its files are up to date."
    return print_outcome(done, args, started if done.events else again)


def join(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    from accord.core.work.seat_inbox import inbox_of
    from accord.pact import verbs

    done = verbs.join(desk, caller, args.roles, args.id, git=not args.no_git)
    waiting = list(inbox_of(desk.work, caller.id))
    if not waiting:
        sentence = f"{caller.id} joined; nothing waits for you. `accord pact watch` reports changes"
        return print_outcome(done, args, f"{sentence}.")
    names = list_names([item.about for item in waiting])
    command = COMMAND_OF[waiting[0].do].format(waiting[0].about)
    return print_outcome(done, args, f"{caller.id} joined; for you: {names}. Next: {command}.")


def assign(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    from accord.core.work.verbs import Assignment
    from accord.pact import verbs

    names = ("task", "feature", "branch", "owner", "reviewer", "spec")
    assignment = Assignment(**{name: getattr(args, name) for name in names})
    done = verbs.assign(desk, caller, assignment)
    owner = desk.work.seat(args.owner)
    roles = ",".join(owner.roles) if owner else ""
    sentence = (
        f"Assigned {args.task} to {args.owner}; {args.reviewer} reviews it. Next: describe it in "
        f"{desk.work.tasks[args.task].spec}; "
        f"{args.owner} starts with `accord pact join {args.owner} --roles {roles}`."
    )
    return print_outcome(done, args, sentence)


def checkpoint(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    done = verbs.checkpoint(desk, caller, args.task, args.evidence, commit=args.commit)
    what = "Committed and submitted" if args.commit else "Submitted"
    reviewer = desk.work.tasks[args.task].reviewer
    sentence = f"{what} {args.task}. Next: {reviewer} runs {JUDGE.format(args.task)}."
    return print_outcome(done, args, sentence)


def accept(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    done = verbs.accept(desk, caller, args.task, args.commit)
    at = f" at {done.commit[:SHORT_SHA_LENGTH]}" if done.commit else ""
    return print_outcome(
        done, args, f"Accepted {args.task}{at}. Next: {after_accept(desk.work, args.task)}."
    )


def after_accept(work: "Work", task: str) -> str:
    """What the feature of an accepted task still needs."""
    feature = work.features[work.tasks[task].feature]
    if open_tasks := work.open_tasks(feature):
        return f"{feature.id} still needs {list_names(open_tasks)}"
    return f"{COMMAND_OF['merge'].format(feature.id)} ships the feature"


def changes(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    done = verbs.changes(desk, caller, args.task, args.reason)
    owner = desk.work.tasks[args.task].owner
    sentence = f"Requested changes to {args.task}. Next: {owner} changes it, then runs"
    return print_outcome(done, args, f"{sentence} {CHECKPOINT.format(args.task)}.")


def merge(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    done = verbs.merge(desk, caller, args.feature, git=not args.no_git, strict=args.strict)
    base, commit = desk.work.base_branch, done.commit[:SHORT_SHA_LENGTH]
    merged = f"Merged {args.feature} into {base} as {commit} and shipped it. Next: push {base}."
    advice = " Next: commit the ledger." if desk.location.repository else ""
    shipped = f"Shipped {args.feature}; no branch was merged.{advice}"
    return print_outcome(done, args, merged if commit else shipped)


def list_names(names: list[str]) -> str:
    """The first few names."""
    more = f" and {len(names) - MAX_TASKS_NAMED} more" if len(names) > MAX_TASKS_NAMED else ""
    return ", ".join(names[:MAX_TASKS_NAMED]) + more


def print_outcome(done: "VerbResult", args: argparse.Namespace, confirmation: str) -> int:
    """Print notes on standard error, then what was done."""
    from accord.show.text import one_line

    for note in done.notes:
        print(f"accord: {one_line(note)}", file=sys.stderr)
    if args.json:
        from accord.show.output import print_json

        commit = {"commit": done.commit} if done.commit else {}
        print_json({"events": done.events, "notes": done.notes, **commit})
    else:
        print(one_line(confirmation))
    return 0
