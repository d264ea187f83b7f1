"""Work in a repository that no worker accepts for itself: the verbs of Pact.

Everything is in plain files under `.pact/`, and no server is needed. PACT_AGENT_ID says which seat
you are. Two rules hold whatever anyone does: nobody accepts their own work, and a feature is merged
when every one of its tasks is accepted. Other Pact tools may work in the same repository.

Examples:
  accord pact init --project shop --seat ann:orchestrator,reviewer:A.md --seat bob:worker:B.md
  accord pact assign T1 --feature cart --branch cart --owner bob --reviewer ann
  accord pact join bob --roles worker
  accord pact checkpoint T1 --evidence "make test: 12 passed" --commit
  accord pact changes T1 --reason "The empty cart is missing"
  accord pact accept T1
  accord pact merge cart
  accord pact status --board
  accord pact log --replay
  accord pact validate --json
  accord pact watch --first
  accord pact key
  accord pact help
"""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from accord.cli import deeds, looks
from accord.cli.main import HELD
from accord.cli.parsing import Whole

if TYPE_CHECKING:
    from accord.core.kernel.refusal import Refused
    from accord.core.work.verbs import Caller
    from accord.pact.desk import Desk

Add = Callable[[argparse.ArgumentParser], None]


def arguments(parser: argparse.ArgumentParser) -> None:
    """A verb and its flags. What is missing is refused by the verb, in the order of PACT 7.1."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (help_, add, _) in VERBS.items():
        made = verbs.add_parser(name, help=help_)
        add(made)
        if name in WRITING:
            made.add_argument(
                "--strict-roles",
                action="store_true",
                help="refuse what the roster does not foresee",
            )
        if name != "help":
            made.add_argument("--json", action="store_true", help="the outcome for programs")


def run(args: argparse.Namespace) -> int:
    """Do what the verb says, as the seat in PACT_AGENT_ID."""
    import gc
    import os

    # Nothing here lives long; looking for cycles in 100,000 events takes a quarter of the time.
    gc.disable()
    act = VERBS[args.verb][2]
    if args.verb == "help":
        print(reference())
        return 0
    from accord.core.work.verbs import Caller, identity

    seat = identity(os.environ.get("PACT_AGENT_ID", ""))
    here = desk_of(seat)
    HELD.append(here)
    from accord.core.kernel.refusal import Refused

    try:
        code = act(here, Caller(seat, getattr(args, "strict_roles", False)), args)
    except Refused as no:
        raise with_news(here, no, args) from None
    if args.verb in WRITING | {"init"}:
        here.ring()
    return code


def with_news(desk: "Desk", no: "Refused", args: argparse.Namespace) -> "Refused":
    """A refusal, with where to look if another branch knows more of what it is about."""
    from contextlib import suppress

    from accord.core.kernel.refusal import Refused, Why
    from accord.git.process import GitError
    from accord.pact import elsewhere
    from accord.show.text import count

    about = getattr(args, "task", "") or getattr(args, "feature", "")
    if no.why not in {Why.UNKNOWN, Why.WRONG_STATE} or not about:
        return no
    with suppress(Refused, GitError, OSError):
        data, _ = desk.ledger.read()
        if found := elsewhere.news(desk.place, data, about):
            more = f"{found.branch} has {count(found.events, 'event')} of {about} that the log here"
            hint = f"{more} lacks; `{elsewhere.advice(desk.place, found)}` brings them"
            return Refused(no.why, f"{no.detail}. {hint}", no.details)
    return no


def desk_of(seat: str) -> "Desk":
    """The pact that is here."""
    import os
    from pathlib import Path

    from accord.pact.desk import desk
    from accord.settings import home_of

    home = home_of(os.environ)

    def most() -> int:
        from accord.config import choose  # only for a log that is larger than usual

        return choose({}, os.environ, home).usable().limits.pact_log

    return desk(Path.cwd(), os.environ.get("PACT_DIR", ""), seat, home, most)


def reference() -> str:
    """What `help` prints: the verbs and the two rules."""
    rows = "\n".join(f"  {name:11} {help_}" for name, (help_, _, _) in VERBS.items())
    return f"""accord pact VERB …        (or pact_VERB, after `source .pact/bin/pact.sh`)

{rows}

The two rules:
  1. Nobody accepts their own work: only a task's reviewer accepts it, and that
     is never its owner.
  2. A feature is merged when every one of its tasks is accepted.

PACT_AGENT_ID names your seat. `accord pact VERB --help` explains each verb,
with examples."""


# Flags


def _none(parser: argparse.ArgumentParser) -> None:
    """No flags."""


def _init_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--project", default="", metavar="NAME", help="what the project is called")
    add(
        *("--seat",),
        action="append",
        default=[],
        metavar="ID:ROLES:ENTRY",
        help="a seat, its roles, and the file that tells it so; as often as needed",
    )
    add(
        *("--key",),
        action="append",
        default=[],
        metavar="SEAT=KEY",
        help="a seat's public key, as `accord pact key` prints it; its events are then signed",
    )
    add("--base-branch", default="", metavar="NAME", help="default: the branch you are on")


def _task(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", nargs="?", default="", metavar="TASK", help="which task")


def _join_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", default="", metavar="ID", help="your seat")
    parser.add_argument("--roles", default="", metavar="A,B", help="the roles you take")
    _git(parser)


def _assign_flags(parser: argparse.ArgumentParser) -> None:
    _task(parser)
    add = parser.add_argument
    add("--feature", default="", metavar="ID", help="what it is a part of")
    add("--branch", default="", metavar="NAME", help="the git branch of the feature")
    add("--owner", default="", metavar="SEAT", help="who does it")
    add("--reviewer", default="", metavar="SEAT", help="who says that it is done; somebody else")
    add("--spec", default="", metavar="PATH", help="default: .pact/tasks/TASK.md, made if missing")


def _checkpoint_flags(parser: argparse.ArgumentParser) -> None:
    _task(parser)
    parser.add_argument("--evidence", default="", metavar="TEXT", help="how one sees that it works")
    parser.add_argument(
        "--commit", action="store_true", help="commit tracked files and the ledger with it"
    )


def _accept_flags(parser: argparse.ArgumentParser) -> None:
    _task(parser)
    parser.add_argument(
        "--commit", default="", metavar="SHA", help="what you looked at; default: its branch now"
    )


def _changes_flags(parser: argparse.ArgumentParser) -> None:
    _task(parser)
    parser.add_argument("--reason", default="", metavar="TEXT", help="what is missing")


def _merge_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("feature", nargs="?", default="", metavar="FEATURE", help="which feature")
    parser.add_argument("--strict", action="store_true", help="refuse what no signature proves")
    _git(parser)


def _git(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-git", action="store_true", help="leave branches as they are")


def _status_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--board", action="store_true", help="for people, as on a terminal")
    parser.add_argument(
        "--extended", action="store_true", help="with events that other tools added; a view only"
    )


def _log_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--replay", action="store_true", help="make STATE.yml anew from the log")


def _validate_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strict", action="store_true", help="also what no signature proves, key by key"
    )


def _watch_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--first", action="store_true", help="end as soon as something waits for you")
    add("--interval", type=Whole(1, 60), default=1, metavar="S", help="look every S seconds (1)")
    add(
        "--timeout", type=Whole(0, 86_400), metavar="S", help="give up after S seconds, with code 6"
    )


Act = Callable[["Desk", "Caller", argparse.Namespace], int]


def _help(desk: "Desk", caller: "Caller", args: argparse.Namespace) -> int:
    return 0


VERBS: dict[str, tuple[str, Add, Act]] = {
    "init": (
        "start a pact: its log, its charter, and a file for each seat",
        _init_flags,
        deeds.init,
    ),
    "join": ("come to your seat, on the branch of your work", _join_flags, deeds.join),
    "assign": ("give a task to one seat and its review to another", _assign_flags, deeds.assign),
    "checkpoint": ("show what you did, for review", _checkpoint_flags, deeds.checkpoint),
    "accept": ("say that a task is done, as its reviewer", _accept_flags, deeds.accept),
    "changes": ("say what a task lacks, as its reviewer", _changes_flags, deeds.changes),
    "merge": ("ship a feature whose tasks are all accepted", _merge_flags, deeds.merge),
    "status": ("where everything stands", _status_flags, looks.status),
    "log": ("the events as they were recorded", _log_flags, looks.log),
    "validate": ("find everything that is not as it should be", _validate_flags, looks.validate),
    "watch": ("tell what waits for you, as soon as it does", _watch_flags, looks.watch),
    "key": ("print your seat's public key, and make one if there is none", _none, looks.key),
    "help": ("explain the verbs and the two rules", _none, _help),
}
WRITING = frozenset({"join", "assign", "checkpoint", "accept", "changes", "merge"})
