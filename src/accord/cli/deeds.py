"""The verbs of Pact that record something, each as one types it."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.core.work.verbs import Caller
    from accord.pact.desk import Desk
    from accord.pact.verbs import Done


def init(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    done = verbs.init(desk, caller, args.project, args.seat, args.base_branch, args.key)
    return told(done, args)


def join(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    return told(verbs.join(desk, caller, args.roles, args.id, git=not args.no_git), args)


def assign(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    from accord.core.work.verbs import Assignment
    from accord.pact import verbs

    names = ("task", "feature", "branch", "owner", "reviewer", "spec")
    said = Assignment(**{name: getattr(args, name) for name in names})
    return told(verbs.assign(desk, caller, said), args)


def checkpoint(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    done = verbs.checkpoint(desk, caller, args.task, args.evidence, commit=args.commit)
    return told(done, args)


def accept(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    return told(verbs.accept(desk, caller, args.task, args.commit), args)


def changes(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    return told(verbs.changes(desk, caller, args.task, args.reason), args)


def merge(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    from accord.pact import verbs

    done = verbs.merge(desk, caller, args.feature, git=not args.no_git, strict=args.strict)
    return told(done, args)


def told(done: "Done", args: argparse.Namespace) -> int:
    """Success is silent, but for what somebody should know."""
    if done.notes:
        from accord.show.text import line

        for note in done.notes:
            print(f"accord: {line(note)}", file=sys.stderr)
    if args.json:
        from accord.show.output import tell

        said = {"commit": done.commit} if done.commit else {}
        tell({"events": done.events, "notes": done.notes, **said})
    return 0
