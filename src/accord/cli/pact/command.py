"""Share work in a repository with Pact: assign, review, accept and merge tasks.

Everything is stored in plain files under `.pact/`; no server is needed. PACT_AGENT_ID names your
seat. Two rules always apply: no one accepts their own work, and a feature is merged only when all
its tasks are accepted. Other Pact tools may be used in the same repository.

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

from accord.cli.pact import read_verbs, write_verbs
from accord.cli.parsing import BoundedInt

if TYPE_CHECKING:
    from accord.core.kernel.refusal import Refused
    from accord.core.work.verbs import ActingSeat
    from accord.pact.workspace import Workspace

AddFlags = Callable[[argparse.ArgumentParser], None]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs; missing arguments are refused by the verb, in the order of PACT 7.1."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, (help_, add, _) in VERBS.items():
        verb = verbs.add_parser(name, help=help_)
        add(verb)
        if name in WRITE_VERBS:
            verb.add_argument(
                "--strict-roles",
                action="store_true",
                help="refuse actions that the seat's roles do not cover",
            )
        if name != "help":
            verb.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the verb as the seat in PACT_AGENT_ID."""
    import os

    act = VERBS[args.verb][2]
    if args.verb == "help":
        print(verb_reference())
        return 0
    from accord.core.work.verbs import ActingSeat, check_agent_id

    seat = check_agent_id(os.environ.get("PACT_AGENT_ID", ""))
    here = open_workspace(seat)
    from accord.core.kernel.refusal import Refused

    try:
        code = act(here, ActingSeat(seat, getattr(args, "strict_roles", False)), args)
    except Refused as refusal:
        raise add_branch_hint(here, refusal, args) from None
    if args.verb in WRITE_VERBS | {"init"}:
        here.notify_server()
    return code


def add_branch_hint(desk: "Workspace", refusal: "Refused", args: argparse.Namespace) -> "Refused":
    """Add a hint to a refusal if another branch has more events about its task or feature."""
    from contextlib import suppress

    from accord.core.kernel.refusal import Reason, Refused
    from accord.git.process import GitError
    from accord.pact import other_branches
    from accord.show.text import plural

    about = getattr(args, "task", "") or getattr(args, "feature", "")
    if refusal.reason not in {Reason.NOT_FOUND, Reason.WRONG_STATE} or not about:
        return refusal
    with suppress(Refused, GitError, OSError):
        data, _ = desk.ledger.read()
        if found := other_branches.find_newer_ledger(desk.location, data, about):
            events = f"{plural(found.events, 'event')} about {about} that are missing here"
            commands = other_branches.commands_to_update(desk.location, found)
            hint = f"{found.branch} has {events}; `{commands}` adds them"
            return Refused(refusal.reason, f"{refusal.detail}. {hint}", refusal.details)
    return refusal


def open_workspace(seat: str) -> "Workspace":
    """The pact of the current directory."""
    import os
    from pathlib import Path

    from accord.pact.workspace import open_workspace
    from accord.settings.client import home_of

    home = home_of(os.environ)

    def max_log_bytes() -> int:
        from accord.settings.server import load_config  # slow; only needed for a large log

        return load_config({}, os.environ, home).require_valid().limits.pact_log

    return open_workspace(Path.cwd(), os.environ.get("PACT_DIR", ""), seat, home, max_log_bytes)


def verb_reference() -> str:
    """The text of `accord pact help`: the verbs and the two rules."""
    rows = "\n".join(f"  {name:11} {help_}" for name, (help_, _, _) in VERBS.items())
    return f"""accord pact VERB …        (or pact_VERB, after `source .pact/bin/pact.sh`)

{rows}

The two rules:
  1. No one accepts their own work: only a task's reviewer accepts it, and that
     is never its owner.
  2. A feature is merged when every one of its tasks is accepted.

PACT_AGENT_ID names your seat. `accord pact VERB --help` explains each verb,
with examples."""


# Flags


def _no_flags(parser: argparse.ArgumentParser) -> None:
    pass


def _init_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--project", default="", metavar="NAME", help="name of the project")
    add(
        *("--seat",),
        action="append",
        default=[],
        metavar="ID:ROLES:ENTRY",
        help="a seat, its roles and its instruction file; may be repeated",
    )
    add(
        *("--key",),
        action="append",
        default=[],
        metavar="SEAT=KEY",
        help="a seat's public key, as `accord pact key` prints it; its events are then signed",
    )
    add(
        "--base-branch",
        default="",
        metavar="NAME",
        help="branch to merge into (default: the current branch)",
    )


def _task_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", nargs="?", default="", metavar="TASK", help="which task")


def _join_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", default="", metavar="ID", help="your seat")
    parser.add_argument("--roles", default="", metavar="A,B", help="the roles you take")
    _no_git_flag(parser)


def _assign_flags(parser: argparse.ArgumentParser) -> None:
    _task_argument(parser)
    add = parser.add_argument
    add("--feature", default="", metavar="ID", help="the feature it belongs to")
    add("--branch", default="", metavar="NAME", help="the git branch of the feature")
    add("--owner", default="", metavar="SEAT", help="the seat that does it")
    add("--reviewer", default="", metavar="SEAT", help="the seat that accepts it; not the owner")
    add(
        "--spec",
        default="",
        metavar="PATH",
        help="description of the task (default: .pact/tasks/TASK.md, created if missing)",
    )


def _checkpoint_flags(parser: argparse.ArgumentParser) -> None:
    _task_argument(parser)
    parser.add_argument(
        "--evidence",
        default="",
        metavar="TEXT",
        help="what shows that it works, for example test results",
    )
    parser.add_argument(
        "--commit", action="store_true", help="also commit tracked files and the ledger"
    )


def _accept_flags(parser: argparse.ArgumentParser) -> None:
    _task_argument(parser)
    parser.add_argument(
        "--commit",
        default="",
        metavar="SHA",
        help="the commit you reviewed (default: the newest of its branch)",
    )


def _changes_flags(parser: argparse.ArgumentParser) -> None:
    _task_argument(parser)
    parser.add_argument("--reason", default="", metavar="TEXT", help="what is missing")


def _merge_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("feature", nargs="?", default="", metavar="FEATURE", help="which feature")
    parser.add_argument("--strict", action="store_true", help="refuse events that are not signed")
    _no_git_flag(parser)


def _no_git_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-git", action="store_true", help="do not switch, create or merge branches"
    )


def _status_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--board", action="store_true", help="print the board, as on a terminal")
    parser.add_argument(
        "--extended",
        action="store_true",
        help="include events that other tools added; only changes the view",
    )


def _log_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--replay", action="store_true", help="rebuild STATE.yml from the log")


def _validate_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strict", action="store_true", help="also report events that are not signed"
    )


def _watch_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--first", action="store_true", help="exit as soon as something waits for you")
    add(
        "--interval",
        type=BoundedInt(1, 60),
        default=1,
        metavar="S",
        help="check every S seconds (default: 1)",
    )
    add(
        "--timeout",
        type=BoundedInt(0, 86_400),
        metavar="S",
        help="exit with 6 after S seconds",
    )


VerbAction = Callable[["Workspace", "ActingSeat", argparse.Namespace], int]


def _help(desk: "Workspace", caller: "ActingSeat", args: argparse.Namespace) -> int:
    return 0


VERBS: dict[str, tuple[str, AddFlags, VerbAction]] = {
    "init": (
        "start a pact: create its log, its charter and a file for each seat",
        _init_flags,
        write_verbs.init,
    ),
    "join": ("take your seat and switch to the branch of your work", _join_flags, write_verbs.join),
    "assign": (
        "assign a task to one seat and its review to another",
        _assign_flags,
        write_verbs.assign,
    ),
    "checkpoint": ("submit your work for review", _checkpoint_flags, write_verbs.checkpoint),
    "accept": ("accept a task, as its reviewer", _accept_flags, write_verbs.accept),
    "changes": ("request changes to a task, as its reviewer", _changes_flags, write_verbs.changes),
    "merge": ("merge a feature whose tasks are all accepted", _merge_flags, write_verbs.merge),
    "status": ("features, tasks and their state", _status_flags, read_verbs.status),
    "log": ("the recorded events", _log_flags, read_verbs.log),
    "validate": (
        "check the log and its files for errors",
        _validate_flags,
        read_verbs.validate,
    ),
    "watch": ("report what waits for you, as it happens", _watch_flags, read_verbs.watch),
    "key": (
        "print your seat's public key; creates one if necessary",
        _no_flags,
        read_verbs.key,
    ),
    "help": ("explain the verbs and the two rules", _no_flags, _help),
}
WRITE_VERBS = frozenset({"join", "assign", "checkpoint", "accept", "changes", "merge"})
